#include "schedule/product/cuda/long_sums.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/divide.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kLongK = 65536;

// Additions of a chain. A pairwise sum of n terms has an error of about sqrt(log2(n)) roundings, a chain of L that
// round to nearest one of sqrt(L / 2): 256 are 2.7 times the former at n = 10^5. The sum of a chain that cuts off is
// off by up to L / 2 units of f32: 4096 are half a unit of f16.
int64_t most_additions(int64_t out_bytes) {
  return out_bytes <= 2 ? 4096 : 256;
}

}  // namespace

int64_t fewest_parts(int64_t k, int64_t joined, int64_t out_bytes) {
  return k > kLongK ? ceil_div(k, joined * most_additions(out_bytes)) : 1;
}

int64_t joined_by_tensor_cores(DType multiplied) {
  constexpr int64_t kBytes = 32;  // of each row
  return kBytes / static_cast<int64_t>(size_of(multiplied));
}

void reject_long_chains(const ProductTask& task, std::vector<CudaCandidate>& candidates) {
  const auto& stores = task.epilogue.stores;
  if (task.product.k <= kLongK || !is_float(task.product.multiply_a)) return;
  int64_t bytes = stores.empty() ? 4 : 0, shortest = task.product.k;
  for (const Epilogue::Store& s : stores) {
    bytes = std::max(bytes, static_cast<int64_t>(size_of(task.operands[s.operand].dtype)));
  }
  for (const CudaCandidate& c : candidates) {
    if (c.rejected.empty()) shortest = std::min(shortest, c.additions);
  }
  const int64_t most = std::max(most_additions(bytes), shortest);
  for (CudaCandidate& c : candidates) {
    if (!c.rejected.empty() || c.additions <= most) continue;
    c.rejected = fmt::format("a sum would be {} additions in a row, {} keep its digits", c.additions, most);
    c.config.predicted_us = 0;
  }
}

}  // namespace heddle::schedule
