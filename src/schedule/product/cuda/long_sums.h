#pragma once

#include <cstdint>
#include <vector>

#include "schedule/product/cuda/family.h"

namespace heddle::schedule {

// The accuracy of GPU sums over a long k. An f32 accumulator performs a chain of additions, each of which depends on
// the previous one. The rounding error grows with the square root of the number of additions, or linearly where tensor
// cores truncate. Splitting k into parts shortens these chains. A second kernel then adds the sums of the parts.

// Returns the minimum number of parts of k that keeps each chain of additions within its bound; 1 if k is not long.
// `joined`: the number of elements of k that one addition contributes; it is above 1 if several lanes or warps share a
// sum or one instruction adds several products. `out_bytes`: the size of a stored result; a narrow result has few
// digits to lose, so its bound is larger.
int64_t fewest_parts(int64_t k, int64_t joined, int64_t out_bytes);

// The number of elements of k that one tensor-core instruction adds.
int64_t joined_by_tensor_cores(DType multiplied);

// If k is long, rejects the candidates whose chains of additions exceed the bound. If all candidates exceed it, keeps
// those with the shortest chains.
void reject_long_chains(const ProductTask& task, std::vector<CudaCandidate>& candidates);

}  // namespace heddle::schedule
