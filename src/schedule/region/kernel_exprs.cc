#include "schedule/region/kernel_exprs.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "schedule/expr/expr_walk.h"
#include "schedule/expr/kernel_size.h"

namespace heddle::schedule {

using ir::Op;

Combine combine_of(const ir::Node& node) {
  const std::string& kind = node.attrs.text("kind");
  const bool arg = node.op == Op::kArgReduce;
  if (kind == "sum") return Combine::kSum;
  if (kind == "prod") return Combine::kProd;
  if (kind == "max") return arg ? Combine::kArgMax : Combine::kMax;
  if (kind == "min") return arg ? Combine::kArgMin : Combine::kMin;
  if (kind == "any") return Combine::kAny;
  HEDDLE_CHECK(kind == "all", "reduction {}", kind);
  return Combine::kAll;
}

namespace {

constexpr int kMaxRebuilds = 24;

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

std::vector<int64_t> reduced_dims(const ir::Node& node) {
  if (node.op == Op::kArgReduce) return {node.attrs.integer("dim")};
  return node.attrs.ints("dims");
}

}  // namespace

KernelExprs::KernelExprs(const KernelContext& context, std::vector<ir::ValueId> values, std::vector<int64_t> extents)
    : context_(context), values_(std::move(values)) {
  for (ir::ValueId v : values_) add_targets(v);
  const auto size = [&](const Target& t) { return element_count(context_.graph.shape(t.part)); };
  std::stable_sort(targets_.begin(), targets_.end(), [&](auto& a, auto& b) { return size(a) > size(b); });
  domain.dims = context_.graph.shape(targets_[0].part);
  by_dims_ = !extents.empty();
  domain.extents = by_dims_ ? std::move(extents) : without_ones(domain.dims);
  for (size_t i = 1; i < targets_.size(); ++i) {
    const ir::ValueId v = targets_[i].part;
    if (const auto dim = part_dim(v)) split_for_part(context_.graph.shape(v), *dim);
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

void KernelExprs::make_vars(IterationDomain& s) {
  s.vars.clear();
  // Sets of variables are 64-bit words; the mapping adds a few of its own.
  constexpr size_t kMaxVars = 56;
  if (pool.indices.var_count() + s.extents.size() > kMaxVars) {
    fail(ErrorCode::kUnsupportedOperator, "stitch group", "its kernel would have too many loops");
  }
  for (int64_t extent : s.extents) s.vars.push_back(pool.indices.new_var(extent));
}

Index KernelExprs::linear(const std::vector<VarId>& vars) {
  Index r;
  int64_t stride = 1;
  for (size_t i = vars.size(); i-- > 0;) {
    r = pool.indices.add(r, pool.indices.scale(pool.indices.var(vars[i]), stride));
    stride *= pool.indices.extent(vars[i]);
  }
  return r;
}

// Whether this kernel would reduce something for the value.
bool KernelExprs::reduces(ir::ValueId value) const {
  std::set<ir::ValueId> seen;
  std::vector<ir::ValueId> open = {value};
  while (!open.empty()) {
    const ir::ValueId v = open.back();
    open.pop_back();
    if (!seen.insert(v).second || context_.is_input(v)) continue;
    const ir::Node& node = context_.graph.producer(v);
    if (node.op == Op::kReduce || node.op == Op::kArgReduce) return true;
    if (Inliner::inlines(node.op)) open.insert(open.end(), node.inputs.begin(), node.inputs.end());
  }
  return false;
}

void KernelExprs::add_targets(ir::ValueId value) {
  constexpr size_t kMostParts = 8;
  const auto shape = [&](ir::ValueId v) { return context_.graph.shape(v); };
  const ir::Node& last = context_.graph.producer(value);
  const bool casts =
      last.op == Op::kCast && !context_.is_input(last.inputs[0]) && !context_.must_be_input(last.inputs[0]);
  const ir::Node& node = casts ? context_.graph.producer(last.inputs[0]) : last;
  const bool apart =
      context_.parts_apart && node.op == Op::kConcat && node.inputs.size() <= kMostParts &&
      std::all_of(node.inputs.begin(), node.inputs.end(),
                  [&](ir::ValueId v) { return shape(v) == shape(node.inputs[0]) && element_count(shape(v)) > 0; }) &&
      reduces(value);
  if (!apart) {
    targets_.push_back({value, value});
    return;
  }
  const auto dim = static_cast<size_t>(node.attrs.integer("dim"));
  int64_t first = 0;
  for (ir::ValueId part : node.inputs) {
    targets_.push_back({value, part, dim, first, casts ? &last : nullptr});
    first += shape(part)[dim];
  }
}

// The position in the root's value of an element of what it is computed of.
Index KernelExprs::place_in(const Target& target, const std::vector<Index>& at) {
  std::vector<Index> there = at;
  if (target.part != target.value) there[target.dim] = pool.indices.offset(there[target.dim], target.first);
  return pool.indices.linear(there, context_.graph.shape(target.value));
}

void KernelExprs::build() {
  pool = ExprPool();
  roots.clear();
  sites.clear();
  inputs.clear();
  site_ids_.clear();
  places_.clear();
  make_vars(domain);
  for (auto& [key, extra] : extra_) extra.vars.clear();
  Inliner inliner(context_.graph, pool);
  inliner_ = &inliner;
  inliner.set_binding([this](ir::ValueId value, const std::vector<Index>& at) { return bind(value, at); });
  for (size_t i = 0; i < targets_.size(); ++i) {
    const Target& target = targets_[i];
    Root root{target.value, {}, 0, {}};
    if (!place(root, target.part, i)) {
      fits = false;
      return;
    }
    const ir::Node& node = context_.graph.producer(root.value);
    if (node.op == Op::kScan) {
      scan_root(root, node);
      roots.push_back(std::move(root));
      continue;
    }
    const Index flat = linear(root.vars);
    const std::vector<Index> at = pool.indices.delinear(flat, context_.graph.shape(target.part));
    root.expr = inliner.at(target.part, at);
    if (target.cast != nullptr) root.expr = inliner.cast(*target.cast, root.expr);
    root.at = target.part == target.value ? flat : place_in(target, at);
    roots.push_back(std::move(root));
  }
  inliner_ = nullptr;
  made_.clear();
  for (const auto& [place, e] : inliner.made()) made_.emplace_back(place.first, e);
}

int KernelExprs::level_of(ExprId operand) const {
  int level = 0;
  visit_exprs(pool, {operand}, [&](ExprId e) {
    const Expr& expr = pool[e];
    if (expr.kind == Expr::Kind::kLocal && expr.id < sites.size()) {
      level = std::max(level, sites[expr.id].level + 1);
    }
  });
  return level;
}

// A scan is a reduction whose running result is stored at each step. Backwards, the loop counts from the end.
void KernelExprs::scan_root(Root& root, const ir::Node& node) {
  const Shape& shape = context_.graph.shape(root.value);
  const auto dim = static_cast<size_t>(node.attrs.integer("dim"));
  std::vector<Index> at = pool.indices.delinear(linear(root.vars), shape);
  ReductionSite site{root.value, &node, linear(root.vars), 0, pool.vars(at[dim]), 0, 0, 0, 0};
  for (size_t d = 0; d < at.size(); ++d) {
    if (d != dim) site.kept |= pool.vars(at[d]);
  }
  if (node.attrs.flag("reverse")) at[dim] = pool.indices.offset(pool.indices.scale(at[dim], -1), shape[dim] - 1);
  site.operand = inliner_->at(node.inputs[0], at);
  site.level = level_of(site.operand);
  site.local = static_cast<uint32_t>(sites.size());
  root.at = pool.indices.linear(at, shape);
  sites.push_back(site);
  root.expr = result(site.local, context_.graph.dtype(root.value));
}

// Which variables of the root domain the elements of a smaller root lie on: a run of variables with its element count,
// the first one that inputs its reductions as parallel as they are; any would be correct.
bool KernelExprs::place(Root& root, ir::ValueId value, size_t index) {
  const Shape& shape = context_.graph.shape(value);
  const int64_t size = element_count(shape);
  if (index == 0 || size == product(domain.extents)) {
    root.vars = domain.vars;
    return true;
  }
  if (const auto dim = part_dim(value); dim && place_part(root, shape, *dim)) return true;
  for (size_t first = 0; first <= domain.vars.size(); ++first) {
    int64_t n = 1;
    for (size_t last = first; last <= domain.vars.size(); ++last) {
      if (n == size) {
        root.vars.assign(domain.vars.begin() + static_cast<int64_t>(first),
                         domain.vars.begin() + static_cast<int64_t>(last));
        return true;
      }
      if (last < domain.vars.size()) n *= domain.extents[last];
    }
  }
  if (!by_dims_) return false;
  // Dimension by dimension, others between them.
  size_t next = 0;
  for (int64_t extent : without_ones(shape)) {
    while (next < domain.vars.size() && domain.extents[next] != extent) ++next;
    if (next == domain.vars.size()) return false;
    root.vars.push_back(domain.vars[next++]);
  }
  return true;
}

std::optional<size_t> KernelExprs::part_dim(ir::ValueId value) const {
  return context_.part_dim ? context_.part_dim(value) : std::nullopt;
}

// The dimensions of a part, up to the one that counts parts, are the first variables of the root domain, the others its
// last ones; between them lies what a part reduces. Splits variables of which a part has a factor.
void KernelExprs::split_for_part(const Shape& shape, size_t part_dim) {
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

bool KernelExprs::place_part(Root& root, const Shape& shape, size_t part_dim) {
  size_t first = 0, end = domain.vars.size();
  int64_t before = 1, after = 1;
  for (size_t d = 0; d < shape.size(); ++d) (d <= part_dim ? before : after) *= shape[d];
  for (int64_t n = 1; n < before; n *= domain.extents[first++]) {
    if (first == end) return false;
  }
  for (int64_t n = 1; n < after; n *= domain.extents[--end]) {
    if (first == end) return false;
  }
  root.vars.assign(domain.vars.begin(), domain.vars.begin() + static_cast<int64_t>(first));
  root.vars.insert(root.vars.end(), domain.vars.begin() + static_cast<int64_t>(end), domain.vars.end());
  int64_t count = 1;
  for (VarId v : root.vars) count *= pool.indices.extent(v);
  return count == before * after;
}

std::optional<ExprId> KernelExprs::bind(ir::ValueId value, const std::vector<Index>& at) {
  const ir::Graph& graph = context_.graph;
  const ir::Node& node = graph.producer(value);
  if (context_.is_input(value)) {
    const Shape& shape = graph.shape(value);
    auto leaf = std::find_if(inputs.begin(), inputs.end(), [&](const InputOperand& l) { return l.value == value; });
    if (leaf == inputs.end()) leaf = inputs.insert(leaf, {value, graph.dtype(value), shape});
    return pool.load(leaf->dtype, static_cast<uint32_t>(leaf - inputs.begin()), pool.indices.linear(at, shape));
  }
  const bool own = std::find(values_.begin(), values_.end(), value) != values_.end();
  if (context_.must_be_input(value) && !own) {
    needed.insert(value);
    return pool.local(graph.dtype(value), ~0u);
  }
  if (outgrows(value, at)) return pool.local(graph.dtype(value), ~0u);
  if (node.op == Op::kReduce || node.op == Op::kArgReduce) return reduce(value, at);
  if (!Inliner::inlines(node.op)) {
    needed.insert(value);
    return pool.local(graph.dtype(value), ~0u);
  }
  return std::nullopt;
}

// Whether computing a value here, too, is more than one kernel should do. Then `needed` says what to make before.
bool KernelExprs::outgrows(ir::ValueId value, const std::vector<Index>& at) {
  if (too_large) return true;
  ++places_[value];
  uint32_t size = 0;
  for (const Index& index : at) size = std::max(size, pool.indices.size(index));
  if (size > kMostIndexSize && can_be_handed_over(context_.graph, value)) {
    too_large = true;
    needed.insert(value);
  } else if (pool.size() > (values_.size() > 1 ? kMostExprs : kMostExprs / 4)) {
    need_repeated();
  }
  return too_large;
}

// Every way to a value makes expressions of its own where the ways change the index: 2^n for n such steps. What is
// computed at several places is made before, as late as possible.
void KernelExprs::need_repeated() {
  constexpr int kOften = 8;
  const auto found = std::find_if(places_.rbegin(), places_.rend(), [&](const auto& place) {
    const bool own = std::find(values_.begin(), values_.end(), place.first) != values_.end();
    return place.second >= kOften && !own && can_be_handed_over(context_.graph, place.first);
  });
  if (values_.size() > 1 || found == places_.rend()) {
    fail(ErrorCode::kUnsupportedOperator, "stitch group", "its kernel would have too many expressions");
  }
  too_large = true;
  needed.insert(found->first);
}

void KernelExprs::check_size() {
  std::vector<ExprId> all;
  for (const Root& root : roots) all.push_back(root.expr);
  for (const ReductionSite& site : sites) all.push_back(site.operand);
  if (values_.size() > 1 && compile_weight(pool, all) > kMostJoinedWeight) {
    fail(ErrorCode::kUnsupportedOperator, "stitch group", "its kernel would take long to compile");
  }
  for (const ExprId root : all) {
    if (too_large) return;
    const std::map<ExprId, double> sizes = statements(pool, root);
    if (sizes.at(root) > kMostStatements) need_shared(sizes);
  }
}

// Of what guards choose from or between, the largest that is a kernel of moderate size.
void KernelExprs::need_shared(const std::map<ExprId, double>& sizes) {
  constexpr double kModerate = kMostStatements / 64;
  std::optional<std::pair<double, ir::ValueId>> best;
  for (const auto& [value, e] : made_) {
    const bool own = std::find(values_.begin(), values_.end(), value) != values_.end();
    if (own || !can_be_handed_over(context_.graph, value)) continue;
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
  if (values_.size() > 1 || !best) {
    fail(ErrorCode::kUnsupportedOperator, "stitch group", "its kernel would have too many statements");
  }
  too_large = true;
  needed.insert(best->second);
}

std::vector<VarId> KernelExprs::reduced_vars(const Shape& reduced, uint64_t kept) {
  const int64_t count = product(reduced);
  // Loops over the same range share variables: then what two stages compute alike has equal expressions.
  std::vector<VarId> unused;
  for (VarId v : domain.vars) {
    if (!(kept >> v & 1)) unused.push_back(v);
  }
  for (size_t first = 0; first < unused.size(); ++first) {
    int64_t n = 1;
    for (size_t last = first; last < unused.size() && n < count; ++last) {
      n *= pool.indices.extent(unused[last]);
      if (n == count) {
        return {unused.begin() + static_cast<int64_t>(first), unused.begin() + static_cast<int64_t>(last) + 1};
      }
    }
  }
  for (int copy = 0;; ++copy) {
    IterationDomain& extra = extra_[{reduced, copy}];
    if (extra.extents.empty()) extra = {reduced, without_ones(reduced), {}};
    if (extra.vars.empty()) make_vars(extra);
    const bool free = std::none_of(extra.vars.begin(), extra.vars.end(), [&](VarId v) { return kept >> v & 1; });
    if (free) return extra.vars;
  }
}

ExprId KernelExprs::reduce(ir::ValueId value, const std::vector<Index>& at) {
  const auto key = std::make_pair(value, at);
  const ir::Graph& graph = context_.graph;
  const DType dtype = graph.dtype(value);
  if (const auto known = site_ids_.find(key); known != site_ids_.end()) {
    return result(known->second, dtype);
  }
  const ir::Node& node = graph.producer(value);
  const Shape& shape = graph.shape(node.inputs[0]);
  const std::vector<int64_t> dims = reduced_dims(node);
  Shape reduced;
  for (int64_t d : dims) reduced.push_back(shape[static_cast<size_t>(d)]);
  if (product(reduced) == 0) {
    switch (combine_of(node)) {
      case Combine::kMax:
      case Combine::kMin: {
        // The lowest or highest of the type: what casting an infinity saturates to.
        const double inf = combine_of(node) == Combine::kMax ? -HUGE_VAL : HUGE_VAL;
        const ExprId e = pool.constant(DType::kF64, inf);
        return pool.add({.kind = Expr::Kind::kOp, .dtype = dtype, .op = Op::kCast, .args = {e}, .lo = 0});
      }
      default:
        return pool.integer(dtype, combine_of(node) == Combine::kProd || combine_of(node) == Combine::kAll);
    }
  }
  const Index position = pool.indices.linear(at, graph.shape(value));
  uint64_t kept = 0;
  for (const Index& index : at) kept |= pool.vars(index);
  ReductionSite site{value, &node, position, kept, 0, 0, 0, 0, 0};
  const std::vector<VarId> vars = reduced_vars(reduced, kept);
  for (VarId v : vars) site.reduced |= uint64_t{1} << v;
  const std::vector<Index> inner = pool.indices.delinear(linear(vars), reduced);
  std::vector<Index> from(shape.size());
  size_t next_kept = 0, next_reduced = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool is_reduced = std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) != dims.end();
    from[d] = is_reduced ? inner[next_reduced++] : at[next_kept++];
  }
  site.operand = inliner_->at(node.inputs[0], from);
  if (node.op == Op::kArgReduce) {
    const DType position = reduced[0] <= INT32_MAX ? DType::kI32 : DType::kI64;
    site.along = pool.add({.kind = Expr::Kind::kIndex, .dtype = position, .index = inner[0]});
  }
  site.level = level_of(site.operand);
  // Inner reductions were added meanwhile: the number is known only now.
  site.local = static_cast<uint32_t>(sites.size());
  site_ids_.emplace(key, site.local);
  sites.push_back(site);
  return result(site.local, dtype);
}

// Integers of less than a byte are reduced in bytes: what an overflow left above their bits goes when they are read.
ExprId KernelExprs::result(uint32_t site, DType dtype) {
  const ExprId local = pool.local(dtype, site, sites[site].position);
  if (is_float(dtype) || dtype == DType::kBool || bits_of(dtype) >= 8) return local;
  // So does a byte's least or largest value, before the first element.
  const Combine combine = combine_of(*sites[site].node);
  if (is_signed_int(dtype) && (combine == Combine::kMax || combine == Combine::kMin)) {
    const int64_t half = int64_t{1} << (bits_of(dtype) - 1);
    const ExprId limit = pool.integer(dtype, combine == Combine::kMax ? -half : half - 1);
    const Op op = combine == Combine::kMax ? Op::kMax : Op::kMin;
    return pool.add({.kind = Expr::Kind::kOp, .dtype = dtype, .op = op, .args = {local, limit}});
  }
  return pool.add({.kind = Expr::Kind::kOp, .dtype = dtype, .op = Op::kCast, .args = {local}});
}

IterationDomain* KernelExprs::domain_of(VarId var, size_t& position) {
  const auto in = [&](IterationDomain& s) {
    const auto at = std::find(s.vars.begin(), s.vars.end(), var);
    position = static_cast<size_t>(at - s.vars.begin());
    return at != s.vars.end();
  };
  if (in(domain)) return &domain;
  for (auto& [key, extra] : extra_) {
    if (in(extra)) return &extra;
  }
  return nullptr;
}

// Splits variables that an address divides by a factor of their extent. Returns whether anything changed.
bool KernelExprs::split() {
  std::map<VarId, int64_t> factors;
  const std::function<void(const Index&)> look = [&](const Index& index) {
    for (const auto& term : index.terms) {
      const Atom& atom = pool.indices.atom(term.first);
      look(atom.arg);
      if (atom.kind != Atom::Kind::kDiv && atom.kind != Atom::Kind::kMod) continue;
      for (const auto& [id, c] : atom.arg.terms) {
        const Atom& inner = pool.indices.atom(id);
        if (inner.kind != Atom::Kind::kVar || c < 1 || atom.a % c != 0) continue;
        const int64_t k = atom.a / c, extent = pool.indices.extent(inner.id);
        if (k > 1 && k < extent && extent % k == 0) factors.emplace(inner.id, k);
      }
    }
  };
  visit_exprs(pool, values(), [&](ExprId e) {
    if (pool[e].kind == Expr::Kind::kLoad || pool[e].kind == Expr::Kind::kLocal) look(pool[e].index);
  });
  for (const Root& root : roots) look(root.at);
  // From the last to the first, so that positions stay valid.
  for (auto at = factors.rbegin(); at != factors.rend(); ++at) {
    size_t position = 0;
    IterationDomain* s = domain_of(at->first, position);
    if (s == nullptr) continue;
    s->extents[position] /= at->second;
    s->extents.insert(s->extents.begin() + static_cast<int64_t>(position) + 1, at->second);
  }
  return !factors.empty();
}

bool KernelExprs::mergeable(VarId a, VarId b) {
  const uint64_t bit_a = uint64_t{1} << a, bit_b = uint64_t{1} << b;
  const int64_t extent = pool.indices.extent(b);
  const auto splits = [&](uint64_t set) { return ((set & bit_a) != 0) != ((set & bit_b) != 0); };
  for (const Root& root : roots) {
    const auto has = [&](VarId v) { return std::find(root.vars.begin(), root.vars.end(), v) != root.vars.end(); };
    if (has(a) != has(b)) return false;
  }
  for (const ReductionSite& i : sites) {
    if (splits(i.kept) || splits(i.reduced)) return false;
  }
  bool good = true;
  const auto look = [&](const Index& index) {
    int64_t ca = 0, cb = 0;
    for (const auto& [id, c] : index.terms) {
      const Atom& atom = pool.indices.atom(id);
      if (atom.kind == Atom::Kind::kVar) {
        if (atom.id == a) ca = c;
        if (atom.id == b) cb = c;
      } else {
        const Index alone{0, {{id, 1}}};
        // The expressions behind a dynamic index are visited themselves.
        if (atom.kind != Atom::Kind::kDynamic && (pool.vars(alone) & (bit_a | bit_b)) != 0) good = false;
      }
    }
    if (ca != cb * extent) good = false;
  };
  visit_exprs(pool, values(), [&](ExprId e) { look(pool[e].index); });
  for (const Root& root : roots) look(root.at);
  return good;
}

// Merges neighbouring variables where every address walks over both at once, so that rows are long.
void KernelExprs::merge() {
  const auto merged = [&](IterationDomain& s) {
    std::vector<int64_t> extents = s.extents;
    for (size_t i = extents.size(); i-- > 1;) {
      if (!mergeable(s.vars[i - 1], s.vars[i])) continue;
      extents[i - 1] *= extents[i];
      extents.erase(extents.begin() + static_cast<int64_t>(i));
    }
    return extents;
  };
  const IterationDomain old_domain = domain;
  const auto old_extra = extra_;
  std::vector<int64_t> root_extents = merged(domain);
  std::map<ExtraKey, std::vector<int64_t>> extra_extents;
  bool changed = root_extents != domain.extents;
  for (auto& [key, extra] : extra_) {
    if (extra.vars.empty()) continue;
    extra_extents[key] = merged(extra);
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
