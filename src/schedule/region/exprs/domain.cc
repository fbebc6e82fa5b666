#include "schedule/region/exprs/domain.h"

#include "base/check.h"

namespace heddle::schedule {

void make_vars(IndexPool& indices, IterationDomain& domain) {
  domain.vars.clear();
  // Sets of variables are 64-bit words; the mapping adds a few of its own.
  constexpr size_t kMaxVars = 56;
  if (indices.var_count() + domain.extents.size() > kMaxVars) {
    fail(ErrorCode::kUnsupportedOperator, "stitch group", "its kernel would have too many loops");
  }
  for (int64_t extent : domain.extents) domain.vars.push_back(indices.new_var(extent));
}

void split_by(IterationDomain& domain, const std::map<VarId, int64_t>& factors) {
  // From the last to the first, so that positions stay valid.
  for (size_t i = domain.vars.size(); i-- > 0;) {
    const auto factor = factors.find(domain.vars[i]);
    if (factor == factors.end()) continue;
    domain.extents[i] /= factor->second;
    domain.extents.insert(domain.extents.begin() + static_cast<int64_t>(i) + 1, factor->second);
  }
}

int64_t product(std::span<const int64_t> extents) {
  int64_t n = 1;
  for (int64_t e : extents) n *= e;
  return n;
}

std::vector<int64_t> without_ones(const Shape& shape) {
  std::vector<int64_t> r;
  for (int64_t e : shape) {
    if (e != 1) r.push_back(e);
  }
  return r;
}

std::optional<std::pair<size_t, size_t>> run_of(std::span<const int64_t> extents, int64_t count,
                                                std::optional<int64_t> behind) {
  std::optional<std::pair<size_t, size_t>> outermost;
  for (size_t first = 0; first <= extents.size(); ++first) {
    int64_t n = 1;
    size_t last = first;
    while (last < extents.size() && n < count) n *= extents[last++];
    if (n != count) continue;
    if (!behind || product(extents.subspan(last)) == *behind) return std::pair(first, last);
    if (!outermost) outermost = std::pair(first, last);
  }
  return outermost;
}

std::optional<std::vector<VarId>> place_on(const IterationDomain& domain, const Shape& shape, bool by_dims,
                                           std::optional<int64_t> behind) {
  if (const auto run = run_of(domain.extents, element_count(shape), behind)) {
    const auto vars = domain.vars.begin();
    return std::vector<VarId>(vars + static_cast<int64_t>(run->first), vars + static_cast<int64_t>(run->second));
  }
  if (!by_dims) return std::nullopt;
  std::vector<VarId> vars;
  size_t next = 0;
  for (int64_t extent : without_ones(shape)) {
    while (next < domain.vars.size() && domain.extents[next] != extent) ++next;
    if (next == domain.vars.size()) return std::nullopt;
    vars.push_back(domain.vars[next++]);
  }
  return vars;
}

std::optional<std::vector<VarId>> place_part(const IterationDomain& domain, const Shape& shape, size_t part_dim) {
  size_t first = 0, end = domain.vars.size();
  int64_t before = 1, after = 1;
  for (size_t d = 0; d < shape.size(); ++d) (d <= part_dim ? before : after) *= shape[d];
  int64_t leading = 1, trailing = 1;
  for (; leading < before; leading *= domain.extents[first++]) {
    if (first == end) return std::nullopt;
  }
  for (; trailing < after; trailing *= domain.extents[--end]) {
    if (first == end) return std::nullopt;
  }
  if (leading * trailing != before * after) return std::nullopt;
  std::vector<VarId> vars(domain.vars.begin(), domain.vars.begin() + static_cast<int64_t>(first));
  vars.insert(vars.end(), domain.vars.begin() + static_cast<int64_t>(end), domain.vars.end());
  return vars;
}

void split_for_part(IterationDomain& domain, const Shape& shape, size_t part_dim) {
  std::vector<int64_t>& extents = domain.extents;
  size_t at = 0;
  for (size_t d = 0; d <= part_dim; ++d) {
    for (int64_t rest = shape[d]; rest > 1 && at < extents.size(); ++at) {
      if (extents[at] > rest && extents[at] % rest == 0) {
        extents.insert(extents.begin() + static_cast<int64_t>(at) + 1, extents[at] / rest);
        extents[at] = rest;
      }
      if (rest % extents[at] != 0) return;
      rest /= extents[at];
    }
  }
  size_t end = extents.size();
  for (size_t d = shape.size(); d-- > part_dim + 1;) {
    for (int64_t rest = shape[d]; rest > 1 && end > at; --end) {
      if (extents[end - 1] > rest && extents[end - 1] % rest == 0) {
        extents[end - 1] /= rest;
        extents.insert(extents.begin() + static_cast<int64_t>(end), rest);
        ++end;
      }
      if (rest % extents[end - 1] != 0) return;
      rest /= extents[end - 1];
    }
  }
}

Index linear(IndexPool& indices, const std::vector<VarId>& vars) {
  Index r;
  int64_t stride = 1;
  for (size_t i = vars.size(); i-- > 0;) {
    r = indices.add(r, indices.scale(indices.var(vars[i]), stride));
    stride *= indices.extent(vars[i]);
  }
  return r;
}

}  // namespace heddle::schedule
