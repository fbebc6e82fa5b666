#pragma once

#include <cstdint>
#include <vector>

#include "schedule/product/cuda/family.h"

namespace heddle::schedule {

// Accuracy of GPU sums over a long k. An f32 accumulator takes one addition after the other. The rounding error grows
// with the square root of their number, or linearly where tensor cores truncate. Cutting k into parts shortens these
// chains; a second kernel adds the sums of the parts.

// The fewest parts of k that keep each chain within its bound; 1 if k is not long. `joined`: elements of k that one
// addition brings, by lanes or warps that share a sum and by an instruction that adds several. `out_bytes`: of a stored
// result; a narrow one has few digits to lose.
int64_t fewest_parts(int64_t k, int64_t joined, int64_t out_bytes);

// Elements of k that one tensor-core instruction adds up.
int64_t joined_by_tensor_cores(DType multiplied);

// If k is long, rejects candidates whose chains exceed the bound. If all exceed it, keeps those with the shortest.
void reject_long_chains(const ProductTask& task, std::vector<CudaCandidate>& candidates);

}  // namespace heddle::schedule
