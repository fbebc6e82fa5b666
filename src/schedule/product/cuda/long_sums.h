#pragma once

#include <cstdint>
#include <vector>

#include "schedule/product/cuda/family.h"

namespace heddle::schedule {

// How exactly a GPU sums over a long k. An accumulator in f32 takes one addition after the other; their roundings add
// up to an error that grows with the root of their number, and with the number itself where tensor cores cut off.
// Cutting k into parts shortens these chains: the parts' sums meet in a second kernel.

// Parts of k that keep each chain within its bound, where an addition brings `joined` elements of k to a sum: the lanes
// or warps that share a sum, and what an instruction adds up by itself. `out_bytes`: of a stored result, which has few
// digits to lose if it is narrow. 1 where k is not long.
int64_t fewest_parts(int64_t k, int64_t joined, int64_t out_bytes);

// Elements of k that one instruction of tensor cores joins.
int64_t joined_by_tensor_cores(DType multiplied);

// Where k is long, rejects candidates whose chains exceed the bound, or the shortest chain of all where none keeps it.
void reject_long_chains(const ProductTask& task, std::vector<CudaCandidate>& candidates);

}  // namespace heddle::schedule
