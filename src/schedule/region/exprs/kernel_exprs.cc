#include "schedule/region/exprs/kernel_exprs.h"

#include <algorithm>

#include "base/check.h"
#include "schedule/expr/expr_walk.h"
#include "schedule/expr/kernel_size.h"
#include "schedule/region/exprs/refine.h"

namespace heddle::schedule {
namespace {

constexpr int kMaxRebuilds = 24;
constexpr int kOften = 8;  // places at which a kernel may compute a value

// Of what guards choose from or between, the largest that is a kernel of moderate size. `sizes` are statements of
// sides of guards; `made` are the values that may be handed over and their expressions.
std::optional<ir::ValueId> largest_shared(const ExprPool& pool, const std::map<ExprId, double>& sizes,
                                          const std::vector<std::pair<ir::ValueId, ExprId>>& made) {
  constexpr double kModerate = kMostStatements / 64;
  std::optional<std::pair<double, ir::ValueId>> best;
  for (const auto& [value, e] : made) {
    double size = 1;
    if (const auto side = sizes.find(e); side != sizes.end()) {
      size = side->second;
    } else if (pool[e].kind != Expr::Kind::kGuard) {
      continue;
    } else {
      for (const ExprId arg : pool[e].args) size += sizes.contains(arg) ? sizes.at(arg) : 0;
    }
    if (size <= kModerate && (!best || *best < std::pair(size, value))) best = {size, value};
  }
  return best ? std::optional(best->second) : std::nullopt;
}

// Whether a computed value is read at computed indices. Chains of gathers multiply the places where it is computed, and
// texts load lane by lane at each of them.
bool is_gathered(const ir::Graph& graph, const IndexPool& indices, ir::ValueId value, const std::vector<Index>& at) {
  return ir::is_elementwise(graph.producer(value).op) &&
         std::any_of(at.begin(), at.end(), [&](const Index& index) { return indices.reads_values(index); });
}

// For a value that is computed, element by element, from reductions of `elements` elements: how many of these lie
// behind those that the first such reduction keeps. nullopt where there is none, or where it keeps no neighbouring
// dimensions.
std::optional<int64_t> behind_kept(const ir::Graph& graph, ir::ValueId value, int64_t elements) {
  constexpr int kMostSteps = 64;
  const int64_t count = element_count(graph.shape(value));
  std::vector<ir::ValueId> open = {value};
  for (int step = 0; step < kMostSteps && !open.empty(); ++step) {
    const ir::Node& node = graph.producer(open.back());
    open.pop_back();
    if (node.op == Op::kReduce && element_count(graph.shape(node.inputs[0])) == elements) {
      const Shape& shape = graph.shape(node.inputs[0]);
      const auto& dims = node.attrs.ints("dims");
      const auto is_reduced = [&](size_t d) {
        return std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) != dims.end();
      };
      size_t first = 0, end = shape.size();
      while (first < end && is_reduced(first)) ++first;
      while (end > first && is_reduced(end - 1)) --end;
      const auto from = shape.begin();
      if (product({from + static_cast<int64_t>(first), from + static_cast<int64_t>(end)}) != count) return std::nullopt;
      return product({from + static_cast<int64_t>(end), shape.end()});
    }
    if (!ir::is_elementwise(node.op) && node.op != Op::kReshape) continue;
    for (const ir::ValueId v : node.inputs) {
      if (element_count(graph.shape(v)) == count) open.push_back(v);
    }
  }
  return std::nullopt;
}

// An element of a value that lies in memory, which becomes one of the inputs.
ExprId load(ExprPool& pool, std::vector<InputOperand>& inputs, const KernelContext& context, ir::ValueId value,
            const std::vector<Index>& at) {
  const ValueMemory memory = context.memory_of(value);
  auto leaf = std::find_if(inputs.begin(), inputs.end(), [&](const InputOperand& l) { return l.value == value; });
  if (leaf == inputs.end()) leaf = inputs.insert(leaf, {value, context.graph.dtype(value), memory.shape});
  return pool.load(leaf->dtype, static_cast<uint32_t>(leaf - inputs.begin()), memory.position(pool.indices, at));
}

// A scan is a reduction whose running result is stored at each step. Backwards, the loop counts from the end.
void scan_root(ExprPool& pool, std::vector<ReductionSite>& sites, Inliner& inliner, const KernelContext& context,
               Root& root) {
  const ir::Node& node = context.graph.producer(root.value);
  const Shape& shape = context.graph.shape(root.value);
  const auto dim = static_cast<size_t>(node.attrs.integer("dim"));
  std::vector<Index> at = pool.indices.delinear(linear(pool.indices, root.vars), shape);
  ReductionSite site{root.value, &node, linear(pool.indices, root.vars), 0, pool.vars(at[dim]), 0, 0, 0, 0};
  for (size_t d = 0; d < at.size(); ++d) {
    if (d != dim) site.kept |= pool.vars(at[d]);
  }
  if (node.attrs.flag("reverse")) at[dim] = pool.indices.offset(pool.indices.scale(at[dim], -1), shape[dim] - 1);
  site.operand = inliner.at(node.inputs[0], at);
  site.level = level_of(pool, sites, site.operand);
  site.local = static_cast<uint32_t>(sites.size());
  root.at = context.memory_of(root.value).position(pool.indices, at);
  sites.push_back(site);
  root.expr = result_of(pool, site, context.graph.dtype(root.value));
}

// The indices, limited to the value's shape. Below the guard of a padding or a concatenation they take other values,
// too, and a reduction is computed for each of them, without the guard.
std::vector<Index> within(ExprPool& pool, const ir::Graph& graph, ir::ValueId value, std::vector<Index> at) {
  const Shape& shape = graph.shape(value);
  for (size_t d = 0; d < at.size(); ++d) at[d] = pool.indices.clamp(at[d], 0, std::max<int64_t>(shape[d] - 1, 0));
  return at;
}

}  // namespace

KernelExprs::KernelExprs(const KernelContext& context, std::vector<ir::ValueId> values, std::optional<RowParts> parts)
    : context_(context), values_(std::move(values)) {
  for (ir::ValueId v : values_) {
    const std::vector<RootTarget> targets = targets_of(context_, v, values_.size() > 1);
    targets_.insert(targets_.end(), targets.begin(), targets.end());
  }
  const auto size = [&](const RootTarget& t) { return element_count(context_.graph.shape(t.part)); };
  std::stable_sort(targets_.begin(), targets_.end(), [&](auto& a, auto& b) { return size(a) > size(b); });
  domain.dims = context_.graph.shape(targets_[0].part);
  by_dims_ = parts.has_value();
  if (parts) {
    domain.extents = std::move(parts->extents);
    domain.dims = {parts->rows, product(std::span<const int64_t>(domain.extents).subspan(2))};
    parts_ = domain.extents[1];
    if (domain.extents[0] * parts_ != parts->rows) rows = parts->rows;
  } else {
    domain.extents = without_ones(domain.dims);
  }
  for (size_t i = 1; i < targets_.size(); ++i) {
    const ir::ValueId v = targets_[i].part;
    if (const auto dim = part_dim(v)) split_for_part(domain, context_.graph.shape(v), *dim);
  }
  build();
  for (int i = 0; i < kMaxRebuilds && fits && needed.empty() && split(); ++i) build();
  if (fits && needed.empty()) merge();
  if (fits && needed.empty()) check_size();
}

int64_t KernelExprs::volume(uint64_t vars) const {
  int64_t n = 1;
  for (VarId v = 0; v < pool.indices.var_count(); ++v) {
    if (vars >> v & 1) n *= pool.indices.extent(v);
  }
  return n;
}

uint64_t KernelExprs::all_root_vars() const {
  uint64_t set = 0;
  for (VarId v : domain.vars) set |= uint64_t{1} << v;
  return set;
}

std::vector<ExprId> KernelExprs::values() const {
  std::vector<ExprId> all;
  for (const ReductionSite& site : sites) all.push_back(site.operand);
  for (const Root& root : roots) all.push_back(root.expr);
  return all;
}

void KernelExprs::build() {
  pool = ExprPool();
  roots.clear();
  sites.clear();
  inputs.clear();
  site_ids_.clear();
  places_.clear();
  make_vars(pool.indices, domain);
  if (rows) {
    fits = domain.extents[1] == parts_ && domain.extents[0] * parts_ < *rows + parts_;
    if (!fits) return;
    pool.indices.limit(domain.vars[0], parts_, domain.vars[1], *rows);
  }
  for (auto& [key, extra] : extra_) extra.vars.clear();
  Inliner inliner(context_.graph, pool);
  inliner_ = &inliner;
  inliner.set_binding([this](ir::ValueId value, const std::vector<Index>& at) { return bind(value, at); });
  for (const RootTarget& target : targets_) {
    auto vars = place(target.part);
    fits = vars.has_value();
    if (!fits) return;
    Root root{target.value, std::move(*vars), 0, {}};
    const ir::Node& node = context_.graph.producer(root.value);
    if (node.op == Op::kScan) {
      scan_root(pool, sites, inliner, context_, root);
      roots.push_back(std::move(root));
      continue;
    }
    const Index flat = linear(pool.indices, root.vars);
    const std::vector<Index> at = pool.indices.delinear(flat, context_.graph.shape(target.part));
    root.expr = inliner.at(target.part, at);
    if (target.cast != nullptr) root.expr = inliner.cast(*target.cast, root.expr);
    const auto load_old = [&](const std::vector<Index>& there) {
      return load(pool, inputs, context_, root.value, there);
    };
    root.at = target.scatter != nullptr
                  ? scatter_to(inliner, pool, context_.graph, *target.scatter, at, load_old, root.expr)
                  : place_in(pool.indices, context_, target, at, flat);
    roots.push_back(std::move(root));
  }
  inliner_ = nullptr;
  made_.clear();
  for (const auto& [place, e] : inliner.made()) made_.emplace_back(place.first, e);
}

std::optional<std::vector<VarId>> KernelExprs::place(ir::ValueId value) const {
  const Shape& shape = context_.graph.shape(value);
  const int64_t elements = element_count(domain.dims);
  if (element_count(shape) == elements) return domain.vars;
  if (rows && element_count(shape) == *rows) return std::vector<VarId>{domain.vars[0], domain.vars[1]};
  if (const auto dim = part_dim(value)) {
    if (auto vars = place_part(domain, shape, *dim)) return vars;
  }
  return place_on(domain, shape, by_dims_, behind_kept(context_.graph, value, elements));
}

std::optional<size_t> KernelExprs::part_dim(ir::ValueId value) const {
  return context_.part_dim ? context_.part_dim(value) : std::nullopt;
}

std::optional<ExprId> KernelExprs::bind(ir::ValueId value, const std::vector<Index>& at) {
  const ir::Graph& graph = context_.graph;
  const ir::Node& node = graph.producer(value);
  if (context_.is_input(value)) return load(pool, inputs, context_, value, at);
  if (context_.must_be_input(value) && !is_own(value)) {
    needed.insert(value);
    return pool.local(graph.dtype(value), ~0u);
  }
  if (outgrows(value, at)) return pool.local(graph.dtype(value), ~0u);
  if (node.op == Op::kReduce || node.op == Op::kArgReduce) return reduce(value, within(pool, graph, value, at));
  if (!Inliner::inlines(node.op)) {
    needed.insert(value);
    return pool.local(graph.dtype(value), ~0u);
  }
  return std::nullopt;
}

// Whether computing a value here, too, is more than one kernel should do. Then `needed` says what to make before.
bool KernelExprs::outgrows(ir::ValueId value, const std::vector<Index>& at) {
  if (too_large) return true;
  uint32_t size = 0;
  for (const Index& index : at) size = std::max(size, pool.indices.size(index));
  const bool is_often_gathered = ++places_[value] >= kOften && is_gathered(context_.graph, pool.indices, value, at);
  if ((is_often_gathered && may_be_made_before(value)) ||
      (size > kMostIndexSize && can_be_handed_over(context_.graph, value))) {
    too_large = true;
    needed.insert(value);
  } else if (pool.size() > (values_.size() > 1 ? kMostExprs : kMostExprs / 4)) {
    need(repeated(), "expressions");
  }
  return too_large;
}

// Every way to a value makes expressions of its own where the ways change the index: 2^n for n such steps. What is
// computed at several places is made before, as late as possible.
std::optional<ir::ValueId> KernelExprs::repeated() const {
  const auto found = std::find_if(places_.rbegin(), places_.rend(), [&](const auto& place) {
    return place.second >= kOften && may_be_made_before(place.first);
  });
  return found == places_.rend() ? std::nullopt : std::optional(found->first);
}

void KernelExprs::check_size() {
  std::vector<ExprId> all;
  for (const Root& root : roots) all.push_back(root.expr);
  for (const ReductionSite& site : sites) all.push_back(site.operand);
  if (values_.size() > 1 && compile_weight(pool, all) > kMostJoinedWeight) {
    fail(ErrorCode::kUnsupportedOperator, "stitch group", "its kernel would take long to compile");
  }
  for (const ExprId root : all) {
    const std::map<ExprId, double> sizes = statements(pool, root);
    if (sizes.at(root) <= kMostStatements) continue;
    std::erase_if(made_, [&](const auto& made) { return !may_be_made_before(made.first); });
    return need(largest_shared(pool, sizes, made_), "statements");
  }
}

// Makes one kernel smaller by having a value made before.
void KernelExprs::need(std::optional<ir::ValueId> value, std::string_view of) {
  if (values_.size() > 1 || !value) {
    fail(ErrorCode::kUnsupportedOperator, "stitch group", fmt::format("its kernel would have too many {}", of));
  }
  too_large = true;
  needed.insert(*value);
}

bool KernelExprs::may_be_made_before(ir::ValueId value) const {
  return !is_own(value) && can_be_handed_over(context_.graph, value);
}

bool KernelExprs::is_own(ir::ValueId value) const {
  return std::find(values_.begin(), values_.end(), value) != values_.end();
}

std::vector<VarId> KernelExprs::reduced_vars(const Shape& reduced, uint64_t kept) {
  // Loops over the same range share variables: then what two stages compute alike has equal expressions.
  std::vector<VarId> unused;
  for (VarId v : domain.vars) {
    if (!(kept >> v & 1)) unused.push_back(v);
  }
  std::vector<int64_t> extents;
  for (VarId v : unused) extents.push_back(pool.indices.extent(v));
  if (const auto run = run_of(extents, product(reduced))) {
    return {unused.begin() + static_cast<int64_t>(run->first), unused.begin() + static_cast<int64_t>(run->second)};
  }
  for (int copy = 0;; ++copy) {
    IterationDomain& extra = extra_[{reduced, copy}];
    if (extra.extents.empty()) extra = {reduced, without_ones(reduced), {}};
    if (extra.vars.empty()) make_vars(pool.indices, extra);
    const bool free = std::none_of(extra.vars.begin(), extra.vars.end(), [&](VarId v) { return kept >> v & 1; });
    if (free) return extra.vars;
  }
}

ExprId KernelExprs::reduce(ir::ValueId value, const std::vector<Index>& at) {
  const auto key = std::make_pair(value, at);
  const ir::Graph& graph = context_.graph;
  const DType dtype = graph.dtype(value);
  if (const auto known = site_ids_.find(key); known != site_ids_.end()) {
    return result_of(pool, sites[known->second], dtype);
  }
  const ir::Node& node = graph.producer(value);
  const Shape& shape = graph.shape(node.inputs[0]);
  const std::vector<int64_t> dims = reduced_dims(node);
  Shape reduced;
  for (int64_t d : dims) reduced.push_back(shape[static_cast<size_t>(d)]);
  if (product(reduced) == 0) return result_of_nothing(pool, combine_of(node), dtype);
  const Index position = pool.indices.linear(at, graph.shape(value));
  uint64_t kept = 0;
  for (const Index& index : at) kept |= pool.vars(index);
  ReductionSite site{value, &node, position, kept, 0, 0, 0, 0, 0};
  const std::vector<VarId> vars = reduced_vars(reduced, kept);
  for (VarId v : vars) site.reduced |= uint64_t{1} << v;
  const std::vector<Index> inner = pool.indices.delinear(linear(pool.indices, vars), reduced);
  site.operand = inliner_->at(node.inputs[0], operand_index(dims, at, inner));
  if (node.op == Op::kArgReduce) {
    const DType position = reduced[0] <= INT32_MAX ? DType::kI32 : DType::kI64;
    site.along = pool.add({.kind = Expr::Kind::kIndex, .dtype = position, .index = inner[0]});
  }
  site.level = level_of(pool, sites, site.operand);
  // Inner reductions were added meanwhile: the number is known only now.
  site.local = static_cast<uint32_t>(sites.size());
  site_ids_.emplace(key, site.local);
  sites.push_back(site);
  return result_of(pool, site, dtype);
}

// Splits what addresses want to be split. Returns whether anything changed.
bool KernelExprs::split() {
  const std::map<VarId, int64_t> factors = split_factors(*this);
  split_by(domain, factors);
  for (auto& [key, extra] : extra_) split_by(extra, factors);
  return !factors.empty();
}

// Merges neighbouring variables where every address walks over both at once, so that rows are long.
void KernelExprs::merge() {
  const IterationDomain old_domain = domain;
  const auto old_extra = extra_;
  // A domain with given extents begins with the rows of a part and the parts. A kernel walks these in different ways,
  // so they stay apart.
  std::vector<int64_t> root_extents = merged_extents(*this, domain, by_dims_ ? 2 : 0);
  std::map<ExtraKey, std::vector<int64_t>> extra_extents;
  bool changed = root_extents != domain.extents;
  for (auto& [key, extra] : extra_) {
    if (extra.vars.empty()) continue;
    extra_extents[key] = merged_extents(*this, extra);
    changed = changed || extra_extents[key] != extra.extents;
  }
  if (!changed) return;
  domain.extents = root_extents;
  for (auto& [key, extents] : extra_extents) extra_[key].extents = extents;
  build();
  if (!fits || split()) {  // a merged variable would be taken apart again
    fits = true;
    domain = old_domain;
    extra_ = old_extra;
    build();
  }
}

}  // namespace heddle::schedule
