#include "schedule/region/cuda/stitch.h"

#include "base/divide.h"

namespace heddle::schedule {

std::vector<ExprId> CudaStage::values() const {
  std::vector<ExprId> all;
  for (const CudaReduction& r : reductions) {
    all.push_back(r.value);
    if (is_arg(r.combine)) all.push_back(r.position);
  }
  return all;
}

std::vector<ExprId> CudaStage::roots() const {
  std::vector<ExprId> all = values();
  for (const Store& s : stores) all.push_back(s.value);
  for (const CachedValue& k : cached) all.push_back(k.value);
  return all;
}

bool CudaStitchDesc::counts_iterations() const {
  return walks_grid() || iterations() % iterations_at_once() != 0;
}

int64_t CudaStitchDesc::rows(const ThreadLayout& s) const {
  int64_t n = 1;
  for (size_t k = 0; k < s.outer_loops; ++k) n *= extent(s.loops[k]);
  return n;
}
int64_t CudaStitchDesc::columns(const ThreadLayout& s) const {
  int64_t n = 1;
  for (size_t k = s.outer_loops; k < s.loops.size(); ++k) {
    n *= k + 1 == s.loops.size() ? ceil_div(extent(s.loops[k]), s.vector) : extent(s.loops[k]);
  }
  return n;
}
int64_t CudaStitchDesc::outer_steps(const ThreadLayout& s) const {
  if (!s.by_columns) return ceil_div(rows(s), s.active / s.group);
  return columns(s) <= s.active ? 1 : ceil_div(columns(s), s.active);
}
int64_t CudaStitchDesc::inner_steps(const ThreadLayout& s) const {
  if (!s.by_columns) return ceil_div(columns(s), s.group);
  return columns(s) <= s.active ? ceil_div(rows(s), s.active / columns(s)) : rows(s);
}

int64_t CudaStitchDesc::full_steps(const ThreadLayout& s) const {
  if (!s.by_columns) return columns(s) / s.group;
  return columns(s) <= s.active ? rows(s) / (s.active / columns(s)) : rows(s);
}

}  // namespace heddle::schedule
