#include "lang/cuda/assign.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <set>

namespace heddle::lang::cuda {
namespace {

constexpr int64_t kAccessBytes = 16;

bool is_tile(const Kernel& kernel, ValueId v) {
  return kernel.type(v).is_tile();
}

// Which values have one layout.
class Classes {
 public:
  explicit Classes(const Kernel& kernel) : kernel_(kernel), parent_(kernel.values.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for_each_op(kernel.body, [&](const Op& op) {
      const bool passes_on = (info_of(op.code).has(kElementwise) && op.regions.empty()) ||
                             op.code == OpCode::kBroadcast || op.code == OpCode::kExpandDims;
      const bool same = passes_on && std::all_of(op.operands.begin(), op.operands.end(), [&](ValueId v) {
                          return kernel.type(v).is_scalar() || anywhere_.count(v) != 0;
                        });
      if (op.code == OpCode::kConstant || op.code == OpCode::kSplat || same) anywhere_.insert(op.results[0]);
    });
    join(kernel.body);
  }
  ValueId root(ValueId v) const {
    while (parent_[static_cast<size_t>(v)] != v) v = parent_[static_cast<size_t>(v)];
    return v;
  }

 private:
  void join(ValueId a, ValueId b) {
    if (!is_tile(kernel_, a) || !is_tile(kernel_, b) || anywhere_.count(a) + anywhere_.count(b) != 0) return;
    a = root(a);
    b = root(b);
    if (a != b) parent_[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
  }
  void join(const std::vector<ValueId>& a, size_t from_a, const std::vector<ValueId>& b, size_t from_b) {
    for (size_t i = 0; from_a + i < a.size() && from_b + i < b.size(); ++i) join(a[from_a + i], b[from_b + i]);
  }
  void join_all(const Op& op, size_t first = 0) {
    std::vector<ValueId> all(op.operands.begin() + static_cast<std::ptrdiff_t>(std::min(first, op.operands.size())),
                             op.operands.end());
    all.insert(all.end(), op.results.begin(), op.results.end());
    join_all_of(all);
  }
  void join(const Region& region) {
    for (const Op& op : region.ops) join(op);
  }
  void join(const Op& op) {
    switch (op.code) {
      case OpCode::kLoad:
        join_all_of(op.operands);
        break;
      case OpCode::kStore:
        if (op.operands.size() > 2) join(op.operands[0], op.operands[2]);
        break;
      case OpCode::kAtomicRmw:
      case OpCode::kAtomicCas:
      case OpCode::kScan:
      case OpCode::kSort:
      case OpCode::kFlip:
      case OpCode::kMap:
      case OpCode::kInlineAsm:
      case OpCode::kAssert:
        join_all(op);
        break;
      case OpCode::kJoin:
        join(op.operands[0], op.operands[1]);
        break;
      case OpCode::kSplit:
        join(op.results[0], op.results[1]);
        break;
      case OpCode::kGather:
        join(op.operands[1], op.results[0]);
        break;
      case OpCode::kDot:
      case OpCode::kDotScaled:
        join(op.operands.back(), op.results[0]);
        break;
      case OpCode::kReduce:
        join_all_of(op.operands);
        join_all_of(op.results);
        break;
      case OpCode::kFor: {
        const Region& body = op.regions[0];
        join(body.arguments, 1, op.operands, 3);
        join(body.arguments, 1, op.results, 0);
        join(body.arguments, 1, body.ops.back().operands, 0);
        break;
      }
      case OpCode::kWhile:
        join(op.regions[0].arguments, 0, op.operands, 0);
        join(op.regions[0].arguments, 0, op.regions[1].ops.back().operands, 0);
        join(op.results, 0, op.regions[1].arguments, 0);
        join(op.regions[0].ops.back().operands, 1, op.results, 0);
        break;
      case OpCode::kIf:
        for (const Region& region : op.regions) {
          if (!region.ops.empty()) join(region.ops.back().operands, 0, op.results, 0);
        }
        break;
      default:
        if (info_of(op.code).has(kElementwise)) join_all(op);
    }
    if (op.code == OpCode::kFor || op.code == OpCode::kWhile || op.code == OpCode::kIf) {
      for (const Region& region : op.regions) join(region);
    }
  }
  void join_all_of(std::vector<ValueId> values) {
    std::erase_if(values, [&](ValueId v) { return anywhere_.count(v) != 0; });
    for (size_t i = 1; i < values.size(); ++i) join(values[0], values[i]);
  }

  const Kernel& kernel_;
  std::vector<ValueId> parent_;
  std::set<ValueId> anywhere_;  // the same number everywhere: in whatever layout it is wanted
};

using Derive = std::function<std::optional<Layout>(const Layout&)>;

// What multiplies the operands of a product.
DotPlan multiplied_by(const Kernel& kernel, const Op& op) {
  const Element a = kernel.type(op.operands[0]).element, b = kernel.type(op.operands[1]).element;
  const std::string_view precision = op.attributes.word("precision", "ieee");
  DotPlan plan;
  if (a == Element::kBF16) {
    plan.by = "block::by_bf16";
  } else if (a == Element::kF16 || is_float8(a)) {
    plan.by = "block::by_f16";
  } else if (a == Element::kF32 && precision != "ieee") {
    plan.by = precision == "tf32" ? "block::by_tf32" : "block::by_tf32x3";
    plan.pieces = precision == "tf32" ? 1 : 2;
    plan.element = 4;
  } else if (a == b && (a == Element::kI8 || a == Element::kU8)) {
    plan.by = a == Element::kI8 ? "block::by_int8<int8_t>" : "block::by_int8<uint8_t>";
    plan.element = 1;
  } else {
    const char* const element = a == Element::kF64 ? "double" : a == Element::kF32 ? "float" : "int32_t";
    plan.by = fmt::format("block::by_thread<{}>", element);
    plan.by_thread = true;
    plan.element = a == Element::kF64 ? 8 : 4;
  }
  return plan;
}

// The layout of one half of a tile whose last dimension lies in registers.
std::optional<Layout> half_of(const Layout& l, int last) {
  const bool in_registers = std::all_of(l.digits.begin(), l.digits.end(),
                                        [&](const Digit& d) { return d.dim != last || d.part == Part::kRegister; });
  return in_registers ? std::optional(slice(l, last)) : std::nullopt;
}

class Assigner {
 public:
  Assigner(const Kernel& kernel, const std::vector<AxisFacts>& facts, const AssignOptions& options)
      : kernel_(kernel), facts_(facts), options_(options), classes_(kernel) {}

  Assignment run() {
    for_each_op(kernel_.body, [&](const Op& op) { collect(op); });
    for (const auto& [v, layout] : sums_) settle(v, layout);
    std::stable_sort(memory_.begin(), memory_.end(),
                     [](const Anchor& a, const Anchor& b) { return a.bytes > b.bytes; });
    for (const Anchor& anchor : memory_) settle(anchor.value, best_of(anchor.value));
    for (size_t v = 0; v < kernel_.values.size(); ++v) {
      if (kernel_.values[v].type.is_tile()) settle(static_cast<ValueId>(v), plain(kernel_.values[v].type.shape));
    }
    Assignment result;
    result.layouts.resize(kernel_.values.size());
    for (size_t v = 0; v < kernel_.values.size(); ++v) {
      if (kernel_.values[v].type.is_tile()) result.layouts[v] = settled_.at(classes_.root(static_cast<ValueId>(v)));
    }
    result.dots = std::move(dots_);
    return result;
  }

 private:
  struct Anchor {
    ValueId value;
    int64_t bytes;
    std::vector<int> order;
    int64_t vector;
  };
  struct Edge {
    ValueId to;
    Derive derive;
  };

  static std::vector<int> last_first(size_t rank) {
    std::vector<int> order(rank);
    for (size_t d = 0; d < rank; ++d) order[d] = static_cast<int>(rank - 1 - d);
    return order;
  }
  // A vector that leaves work for all threads.
  int64_t shared_out(int64_t vector, const std::vector<int64_t>& shape) const {
    int64_t elements = 1;
    for (const int64_t n : shape) elements *= n;
    while (vector > 1 && elements < vector * 32 * options_.warps) vector /= 2;
    return std::max<int64_t>(vector, 1);
  }
  Layout plain(const std::vector<int64_t>& shape) const {
    return blocked(shape, last_first(shape.size()), shared_out(4, shape), options_.warps);
  }

  void edge(ValueId from, ValueId to, Derive derive) {
    if (is_tile(kernel_, from) && is_tile(kernel_, to)) {
      edges_.emplace(classes_.root(from), Edge{to, std::move(derive)});
    }
  }
  void same(ValueId a, ValueId b) {
    const Derive identity = [](const Layout& l) { return l; };
    edge(a, b, identity);
    edge(b, a, identity);
  }

  void collect(const Op& op) {
    switch (op.code) {
      case OpCode::kLoad:
      case OpCode::kAtomicRmw:
      case OpCode::kAtomicCas:
        anchor_pointer(op.operands[0], op.code == OpCode::kLoad && feeds_products(op));
        if (op.code == OpCode::kLoad) same(op.operands[0], op.results[0]);
        break;
      case OpCode::kStore:
        anchor_pointer(op.operands[0]);
        edge(op.operands[0], op.operands[1], [](const Layout& l) { return l; });
        break;
      case OpCode::kLoadView:
        anchor_view(op, op.results[0]);
        break;
      case OpCode::kDot:
      case OpCode::kDotScaled:
        plan_dot(op);
        break;
      case OpCode::kReduce: {
        const int axis = static_cast<int>(op.attributes.integer("axis"));
        edge(op.operands[0], op.results[0], [axis](const Layout& l) { return slice(l, axis); });
        break;
      }
      case OpCode::kExpandDims: {
        const int axis = static_cast<int>(op.attributes.integer("axis"));
        edge(op.operands[0], op.results[0], [axis](const Layout& l) { return expand(l, axis); });
        edge(op.results[0], op.operands[0], [axis](const Layout& l) { return slice(l, axis); });
        break;
      }
      case OpCode::kBroadcast: {
        const std::vector<int> axes = broadcast_axes(kernel_.type(op.operands[0]), kernel_.type(op.results[0]));
        edge(op.results[0], op.operands[0], [axes](const Layout& l) {
          Layout from = l;
          for (const int axis : axes) from = squeeze(from, axis);
          return from;
        });
        break;
      }
      case OpCode::kPermute: {
        const std::vector<int64_t> order = op.attributes.list("order");
        std::vector<int64_t> back(order.size());
        for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
        edge(op.operands[0], op.results[0], [order](const Layout& l) { return permute(l, order); });
        edge(op.results[0], op.operands[0], [back](const Layout& l) { return permute(l, back); });
        break;
      }
      case OpCode::kReshape: {
        const std::vector<int64_t> from = kernel_.type(op.operands[0]).shape, to = kernel_.type(op.results[0]).shape;
        edge(op.operands[0], op.results[0], [to](const Layout& l) { return reshape(l, to); });
        edge(op.results[0], op.operands[0], [from](const Layout& l) { return reshape(l, from); });
        break;
      }
      case OpCode::kJoin:
        edge(op.operands[0], op.results[0], [](const Layout& l) { return join(l); });
        break;
      case OpCode::kSplit: {
        const int last = kernel_.type(op.results[0]).rank();
        edge(op.operands[0], op.results[0], [last](const Layout& l) { return half_of(l, last); });
        break;
      }
      default:
        break;
    }
  }

  static std::vector<int> broadcast_axes(const Type& from, const Type& to) {
    std::vector<int> axes;
    for (int d = 0; d < from.rank(); ++d) {
      if (from.shape[static_cast<size_t>(d)] != to.shape[static_cast<size_t>(d)]) axes.push_back(d);
    }
    return axes;
  }

  // `shifts`: neighbours need not be aligned.
  void add_anchor(ValueId v, const AxisFacts& facts, int64_t element, bool shifts = false) {
    const Type& type = kernel_.type(v);
    Anchor anchor{v, type.elements() * element, last_first(type.shape.size()), 1};
    size_t best = type.shape.size() - 1;
    for (size_t d = type.shape.size(); d-- > 0;) {
      if (facts.contiguous[d] > facts.contiguous[best]) best = d;
    }
    const auto at = std::find(anchor.order.begin(), anchor.order.end(), static_cast<int>(best));
    std::rotate(anchor.order.begin(), at, at + 1);
    const int64_t neighbours = facts.contiguous[best] & -facts.contiguous[best];
    anchor.vector = std::min(kAccessBytes / element, neighbours);
    if (!shifts) anchor.vector = std::min(anchor.vector, std::max<int64_t>(1, facts.divisor[best] / element));
    anchor.vector = shared_out(anchor.vector, type.shape);
    memory_.push_back(std::move(anchor));
  }
  void anchor_pointer(ValueId pointer, bool shifts = false) {
    if (!is_tile(kernel_, pointer)) return;
    add_anchor(pointer, facts_[static_cast<size_t>(pointer)], size_of(kernel_.type(pointer).element), shifts);
  }
  // Whether a load is only an operand of products by warpgroups, for which neighbours may be loaded that begin
  // anywhere.
  bool feeds_products(const Op& load) {
    if (users_.empty()) {
      users_.resize(kernel_.values.size());
      for_each_op(kernel_.body, [&](const Op& op) {
        for (const ValueId v : op.operands) users_[static_cast<size_t>(v)].push_back(&op);
      });
    }
    const auto all_products = [&](ValueId v, const auto& self) -> bool {
      const std::vector<const Op*>& users = users_[static_cast<size_t>(v)];
      return std::all_of(users.begin(), users.end(), [&](const Op* user) {
        return (user->code == OpCode::kDot && (goes_by_group(*user, {}) || goes_swapped(*user, {}))) ||
               (user->code == OpCode::kPermute && self(user->results[0], self));
      });
    };
    return all_products(load.results[0], all_products);
  }
  void anchor_view(const Op& op, ValueId value) {
    (void)op;
    const Type& type = kernel_.type(value);
    // Neighbours along the last dimension, which is packed in nearly every view.
    AxisFacts facts = AxisFacts::unknown(type.shape.size());
    facts.contiguous.back() = power_of_two_from(type.shape.back());
    facts.divisor.back() = kAccessBytes;
    add_anchor(value, facts, size_of(type.element));
  }

  // The widest access to memory of a class decides.
  Layout best_of(ValueId v) const {
    const ValueId root = classes_.root(v);
    const Anchor* best = nullptr;
    for (const Anchor& a : memory_) {
      if (classes_.root(a.value) == root && (best == nullptr || a.vector > best->vector)) best = &a;
    }
    return blocked(kernel_.type(v).shape, best->order, best->vector, options_.warps);
  }

  WarpGrid warp_grid(int64_t m, int64_t n) const {
    const int64_t most_m = power_of_two_from((m + 15) / 16), most_n = power_of_two_from((n + 7) / 8);
    if (products_ > 1) {
      // Rows of one product go on as rows of the next one.
      const int64_t along_m = std::min(options_.warps, most_m);
      return {along_m, std::min(options_.warps / along_m, most_n)};
    }
    WarpGrid best{1, 1};
    for (int64_t wm = 1; wm <= std::min(options_.warps, most_m); wm *= 2) {
      const int64_t wn = std::min(options_.warps / wm, most_n);
      const auto operands = [&](const WarpGrid& g) { return (m + g.m - 1) / g.m + (n + g.n - 1) / g.n; };
      const WarpGrid now{wm, wn};
      if (wm * wn > best.m * best.n || (wm * wn == best.m * best.n && operands(now) < operands(best))) best = now;
    }
    return best;
  }

  // Whether warpgroups multiply: 16-bit floats, whole blocks of rows, whole steps of k.
  bool goes_by_group(const Op& op, const DotPlan& plan) const {
    const Type& sum = kernel_.type(op.results[0]);
    return is_for_groups(op, plan) && fits_groups(sum.shape[0], sum.shape[1]);
  }
  // Few rows are columns of the transpose. Where other products follow, their rows had better stay with their warps.
  bool goes_swapped(const Op& op, const DotPlan& plan) const {
    const Type& sum = kernel_.type(op.results[0]);
    return is_for_groups(op, plan) && products_ == 1 && fits_groups(sum.shape[1], sum.shape[0]);
  }
  bool is_for_groups(const Op& op, const DotPlan& plan) const {
    constexpr int64_t kDepth = 16;
    const Type &a = kernel_.type(op.operands[0]), &sum = kernel_.type(op.results[0]);
    return options_.warpgroups && sum.rank() == 2 && plan.element == 2 && size_of(a.element) == 2 &&
           sum.element == Element::kF32 && a.shape[1] % kDepth == 0;
  }
  bool fits_groups(int64_t rows, int64_t columns) const {
    constexpr int64_t kRows = 64, kWarps = 4, kMostColumns = 256, kColumns = 16;
    return options_.warps % kWarps == 0 && rows % (kRows * (options_.warps / kWarps)) == 0 && columns % kColumns == 0 &&
           columns <= kMostColumns;
  }

  void plan_dot(const Op& op) {
    const ValueId sum = op.results[0];
    const Type& type = kernel_.type(sum);
    DotPlan plan = multiplied_by(kernel_, op);
    const size_t rank = type.shape.size();
    const int64_t m = type.shape[rank - 2], n = type.shape[rank - 1];
    Layout layout;
    if (plan.by_thread) {
      plan.sums = fmt::format("block::by_plain<{}, {}>", m, n);
      layout = blocked({m, n}, {1, 0}, shared_out(4, {m, n}), options_.warps);
      if (rank == 3) layout = batched(layout, type.shape[0]);
    } else if (goes_by_group(op, plan)) {
      plan.by_group = true;
      plan.sums = warpgroup_type(type.shape, options_.warps);
      layout = warpgroup(type.shape, options_.warps);
    } else if (goes_swapped(op, plan)) {
      plan.by_group = plan.swapped = true;
      plan.sums = warpgroup_type({n, m}, options_.warps);
      layout = permute(warpgroup({n, m}, options_.warps), {1, 0});
    } else {
      const WarpGrid grid = warp_grid(m, n);
      plan.grid = grid;
      plan.sums = mma_type(type.shape, grid, options_.warps);
      layout = mma(type.shape, grid, options_.warps);
    }
    plan.layout = layout;
    sums_.emplace_back(sum, layout);
    dots_.emplace(&op, std::move(plan));
  }

  // Gives a class its layout unless it has one, and classes beside it theirs, which need no conversions then.
  void settle(ValueId v, const Layout& layout) {
    std::queue<std::pair<ValueId, Layout>> next;
    next.emplace(classes_.root(v), layout);
    while (!next.empty()) {
      const auto [root, chosen] = std::move(next.front());
      next.pop();
      if (!settled_.emplace(root, chosen).second) continue;
      const auto [first, last] = edges_.equal_range(root);
      for (auto e = first; e != last; ++e) {
        const ValueId to = classes_.root(e->second.to);
        if (settled_.count(to) != 0) continue;
        if (std::optional<Layout> derived = e->second.derive(chosen)) next.emplace(to, std::move(*derived));
      }
    }
  }

 public:
  void count_products() {
    for_each_op(kernel_.body, [&](const Op& op) { products_ += op.code == OpCode::kDot ? 1 : 0; });
  }

 private:
  const Kernel& kernel_;
  const std::vector<AxisFacts>& facts_;
  const AssignOptions options_;
  const Classes classes_;
  int products_ = 0;
  std::vector<std::pair<ValueId, Layout>> sums_;
  std::vector<Anchor> memory_;
  std::multimap<ValueId, Edge> edges_;
  std::map<ValueId, Layout> settled_;
  std::unordered_map<const Op*, DotPlan> dots_;
  std::vector<std::vector<const Op*>> users_;  // by value
};

}  // namespace

Assignment assign_layouts(const Kernel& kernel, const std::vector<AxisFacts>& facts, const AssignOptions& options) {
  Assigner assigner(kernel, facts, options);
  assigner.count_products();
  return assigner.run();
}

int64_t access_vector(const Layout& layout, const AxisFacts& facts, int64_t element) {
  int64_t best = 1;
  for (int d = 0; d < layout.rank(); ++d) {
    const auto dim = static_cast<size_t>(d);
    const int64_t run = layout.run(d), neighbours = facts.contiguous[dim] & -facts.contiguous[dim];
    int64_t vector = std::min({run & -run, neighbours, std::max<int64_t>(1, facts.divisor[dim] / element)});
    best = std::max(best, std::min(vector, int64_t{64} / element));
  }
  return best;
}

bool is_shifted(const Layout& layout, const AxisFacts& facts, int64_t element) {
  constexpr int64_t kRun = 8, kAligned = 8;  // bytes that are copied as they are
  if (element * kRun != kAccessBytes || access_vector(layout, facts, element) * element >= kAligned) return false;
  for (int d = 0; d < layout.rank(); ++d) {
    if (layout.run(d) % kRun == 0 && facts.contiguous[static_cast<size_t>(d)] % kRun == 0) return true;
  }
  return false;
}

int64_t view_vector(const Kernel& kernel, const std::vector<AxisFacts>& facts, ValueId view,
                    const std::vector<ValueId>& offsets) {
  const Op* made = nullptr;
  for_each_op(kernel.body, [&](const Op& op) {
    if (op.code == OpCode::kMakeView && op.results[0] == view) made = &op;
  });
  if (made == nullptr) return 1;
  const auto of = [&](ValueId v) -> const AxisFacts& { return facts[static_cast<size_t>(v)]; };
  const Type& type = kernel.type(view);
  const auto rank = type.shape.size();
  const int64_t element = size_of(type.element);
  if (of(made->operands[2 * rank]).value != 1) return 1;
  int64_t bytes = std::gcd(of(made->operands[0]).divisor[0], kAccessBytes);
  for (size_t d = 0; d + 1 < rank; ++d) bytes = std::gcd(bytes, of(made->operands[1 + rank + d]).divisor[0] * element);
  if (!offsets.empty()) bytes = std::gcd(bytes, of(offsets.back()).divisor[0] * element);
  return std::max<int64_t>(1, bytes / element);
}

}  // namespace heddle::lang::cuda
