#include "schedule/region/cuda/launch/last_step.h"

#include <algorithm>

#include "schedule/expr/expr_walk.h"
#include "schedule/region/bundle.h"

namespace heddle::schedule {
namespace {

using Role = Operand::Role;

// One grid dimension of a kernel beside a value in memory: along it, blocks access different elements of the value.
struct Step {
  int64_t extent, block, stride;
  bool operator==(const Step&) const = default;
};

template <typename F>
void each_stage(const CudaStitchDesc& body, const F& f) {
  for (const auto* stages : {&body.before, &body.ahead, &body.stages, &body.after}) {
    for (const CudaStage& stage : *stages) f(stage);
  }
}

// The indices at which a kernel stores operand `operand`, or loads it. nullopt if it is loaded through a tile.
std::optional<std::vector<Index>> accesses(const CudaStitchDesc& body, uint32_t operand, Role role) {
  std::vector<Index> found;
  bool by_tile = false;
  each_stage(body, [&](const CudaStage& stage) {
    if (role == Role::kOutput) {
      for (const Store& store : stage.stores) {
        if (store.buffer == operand) found.push_back(store.at);
      }
      return;
    }
    for (const TransposedLoad& load : stage.transposed) by_tile = by_tile || load.from == operand;
    visit_exprs(body.pool, stage.roots(), [&](ExprId e) {
      const Expr& load = body.pool[e];
      if (load.kind == Expr::Kind::kLoad && load.id == operand) found.push_back(load.index);
    });
  });
  return by_tile ? std::nullopt : std::optional(std::move(found));
}

// True if each variable is a digit of its own in the index: equal digits then mean the same elements. Windows and other
// sums of variables are not.
bool has_digits(const IndexPool& indices, const Index& index) {
  std::vector<std::pair<int64_t, int64_t>> digits;  // stride, extent
  for (const auto& [id, stride] : index.terms) {
    const Atom& atom = indices.atom(id);
    if (atom.kind != Atom::Kind::kVar) return false;
    if (indices.extent(atom.id) > 1) digits.emplace_back(stride, indices.extent(atom.id));
  }
  std::sort(digits.begin(), digits.end());
  int64_t reach = 0;
  for (const auto& [stride, extent] : digits) {
    if (stride <= reach) return false;
    reach += stride * (extent - 1);
  }
  return true;
}

// The steps of a value's elements along the grid. nullopt if an index does not begin at the value's first element or
// has no digits, or if two accesses differ.
std::optional<std::vector<Step>> steps_of(const CudaStitchDesc& body, uint32_t operand, Role role) {
  const auto indices = accesses(body, operand, role);
  if (!indices || indices->empty()) return std::nullopt;
  std::optional<std::vector<Step>> steps;
  for (const Index& index : *indices) {
    if (index.constant != 0 || !has_digits(body.pool.indices, index)) return std::nullopt;
    std::vector<Step> own;
    for (const GridDim& d : body.grid) own.push_back({body.pool.indices.extent(d.var), d.block, 0});
    for (const auto& [id, stride] : index.terms) {
      for (size_t k = 0; k < body.grid.size(); ++k) {
        if (body.grid[k].var == body.pool.indices.atom(id).id) own[k].stride = stride;
      }
    }
    if (steps && *steps != own) return std::nullopt;
    steps = std::move(own);
  }
  return steps;
}

// For each grid dimension of `second` with several blocks, the dimension of `first` that takes the same steps through a
// value that the one stores and the other loads. Steps are along different digits of an element's position, so blocks
// with equal numbers along these dimensions access the same elements.
std::optional<std::vector<size_t>> match(const CudaStitchDesc& first, const std::vector<Step>& stores,
                                         const CudaStitchDesc& second, const std::vector<Step>& loads) {
  std::vector<size_t> matched;
  for (size_t k = 0; k < second.grid.size(); ++k) {
    if (second.blocks_of(second.grid[k]) == 1) continue;
    const auto found = std::find(stores.begin(), stores.end(), loads[k]);
    if (loads[k].stride == 0 || found == stores.end()) return std::nullopt;
    matched.push_back(static_cast<size_t>(found - stores.begin()));
  }
  return matched;
}

bool one_iteration_each(const CudaStitchDesc& body) {
  return body.cta_group == 1 && body.iterations_at_once() == 1 && body.blocks == body.iterations();
}

std::vector<CudaBundleDesc::LastStep::Digit> digits_of(const CudaStitchDesc& body, const std::vector<size_t>& dims) {
  std::vector<int64_t> below(body.grid.size(), 1);
  for (size_t k = body.grid.size(); k-- > 1;) below[k - 1] = below[k] * body.blocks_of(body.grid[k]);
  std::vector<CudaBundleDesc::LastStep::Digit> digits;
  int64_t weight = 1;
  for (auto k = dims.rbegin(); k != dims.rend(); ++k) {
    const int64_t count = body.blocks_of(body.grid[*k]);
    digits.push_back({below[*k], count, weight});
    weight *= count;
  }
  return digits;
}

}  // namespace

std::optional<CudaBundleDesc::LastStep> last_step_of(const ScheduledKernel& first, const ScheduledKernel& second,
                                                     std::string* why) {
  const auto a = first.desc.get<CudaStitchDesc>(), b = second.desc.get<CudaStitchDesc>();
  const auto refuse = [&](const char* reason) {
    *why = reason;
    return std::nullopt;
  };
  if (a == nullptr || b == nullptr) return refuse("one of them is a library kernel or several kernels");
  if (!one_iteration_each(*a) || !one_iteration_each(*b)) return refuse("their blocks share or repeat iterations");
  std::optional<std::vector<size_t>> dims;
  for (size_t i = 0; i < second.bindings.size(); ++i) {
    for (size_t k = 0; k < first.bindings.size(); ++k) {
      if (first.desc.operands[k].role != Role::kOutput || place_of(first.bindings[k]) != place_of(second.bindings[i]))
        continue;
      if (second.desc.operands[i].role != Role::kInput) return refuse("both write one value");
      const auto stores = steps_of(*a, static_cast<uint32_t>(k), Role::kOutput);
      const auto loads = steps_of(*b, static_cast<uint32_t>(i), Role::kInput);
      auto found = stores && loads ? match(*a, *stores, *b, *loads) : std::nullopt;
      if (!found || (dims && *dims != *found))
        return refuse("its blocks need results of all blocks, not of a few each");
      dims = std::move(found);
    }
  }
  if (!dims) return refuse("the second one reads no result of the first");
  if (b->threads > a->threads) return refuse("the second one has larger blocks");
  CudaBundleDesc::LastStep last{{b, second.desc.operands, first.desc.operands.size()}, 1, digits_of(*a, *dims)};
  last.arrivals = a->blocks / b->blocks;
  return last;
}

}  // namespace heddle::schedule
