#include "lang/cuda/pipeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "lang/analysis/waits.h"
#include "lang/cuda/scalar_text.h"

namespace heddle::lang::cuda {
namespace {

bool is_in(const Region& region, const Op* op) {
  return !region.ops.empty() && op >= &region.ops.front() && op <= &region.ops.back();
}

class PipelinePlanner {
 public:
  PipelinePlanner(const Kernel& kernel, const Op& loop, const WindowAnalysis& windows,
                  const std::vector<AxisFacts>& facts, const Assignment& layouts, bool boxes)
      : kernel_(kernel),
        loop_(loop),
        body_(loop.regions[0]),
        windows_(windows),
        uses_(windows.uses()),
        facts_(facts),
        layouts_(layouts),
        boxes_(boxes) {}

  Pipeline run() {
    Pipeline all;
    for (const Op& op : body_.ops) {
      if (op.code != OpCode::kLoad && op.code != OpCode::kLoadView) continue;
      const std::optional<StagedLoad> staged = stage(op);
      add(staged, op, all);
      if (staged && !staged->shifted) add(staged, op, pipeline_);
    }
    if (all.loads.size() > pipeline_.loads.size() && accumulating_product(loop_, all, uses_, layouts_)) {
      all.by_registers = true;
      return all;
    }
    if (boxes_ && plan_boxes()) pipeline_.by_boxes = true;
    return std::move(pipeline_);
  }

  // How to copy a load of which only products of the body need the result.
  std::optional<StagedLoad> stage(const Op& op) const {
    const Type& type = kernel_.type(op.results[0]);
    const bool view = op.code == OpCode::kLoadView;
    if (!type.is_tile() || type.rank() != 2 || is_volatile(op)) return std::nullopt;
    if (view ? !pads_with_zero_outside(op) : !pads_with_zero(uses_, op)) return std::nullopt;
    std::vector<Use> products;
    if (!add_products(op.results[0], false, products)) return std::nullopt;
    std::optional<StagedLoad> staged;
    for (const Use& use : products) {
      std::optional<StagedLoad> one = stage_for(op, use);
      if (!one || (staged && !are_one_image(*staged, *one, type))) return std::nullopt;
      if (staged) {
        staged->reads.push_back(std::move(one->reads[0]));
      } else {
        staged = std::move(one);
      }
    }
    return staged;
  }

 private:
  // Adds a load where all that it needs can be computed ahead.
  void add(const std::optional<StagedLoad>& staged, const Op& op, Pipeline& to) const {
    Pipeline with = to;

    // All operands but what stands in for masked elements, which is zero.
    const size_t count = op.code == OpCode::kLoad ? std::min<size_t>(2, op.operands.size()) : op.operands.size();
    bool known = staged.has_value();
    for (size_t i = 0; known && i < count; ++i) known = need(op.operands[i], with);
    if (!known) return;
    with.loads.push_back(*staged);
    to = std::move(with);
  }

  // Whether TMA can bring all loads; then only their corners are computed ahead.
  bool plan_boxes() {
    Pipeline with;
    with.loads = pipeline_.loads;
    for (const StagedLoad& load : with.loads) {
      if (!load.box) return false;
      for (const Polynomial& corner : load.box->corners) {
        for (const auto& [product, factor] : corner.terms()) {
          if (!std::all_of(product.begin(), product.end(), [&](ValueId v) { return need(v, with); })) return false;
        }
      }
    }
    pipeline_ = std::move(with);
    return true;
  }

  // How TMA brings a load of whole swizzled lines.
  std::optional<BoxLoad> box_for(const StagedLoad& s, const OperandShape& shape) const {
    constexpr int64_t kMostRows = 256, kLine = 64;  // elements of 128 bytes
    if (!boxes_ || !shape.swizzled) return std::nullopt;
    std::optional<BoxLoad> box = box_of(kernel_, facts_, windows_, *s.load);
    const bool inner_is_k = box && static_cast<int>(box->inner_dim) != s.row_dim;
    if (!box || inner_is_k != shape.along_k) return std::nullopt;
    if (inner_is_k && shape.depth % kLine != 0) return std::nullopt;
    // Strips that reach beyond the tile read what the source does not.
    if (!inner_is_k && shape.rows % kLine != 0 && !box->map.size[0]) return std::nullopt;
    box->map.box = {kLine, inner_is_k ? shape.rows : shape.depth};
    return box->map.box[1] <= kMostRows ? box : std::nullopt;
  }

  struct Use {
    const Op* dot;
    ValueId value;  // what it reads: what was loaded, or that turned by a permute
    bool turned;
  };

  // The products of the body that read `value`, or its transpose; false where anything else does, too.
  bool add_products(ValueId value, bool turned, std::vector<Use>& products) const {
    const std::vector<const Op*>& users = uses_.users(value);
    return std::all_of(users.begin(), users.end(), [&](const Op* user) {
      const std::vector<ValueId>& operands = user->operands;
      if (!is_in(body_, user)) return false;
      if (user->code == OpCode::kPermute && !turned) return add_products(user->results[0], true, products);
      if (user->code != OpCode::kDot || operands[0] == operands[1] || operands[2] == value) return false;
      products.push_back({user, value, turned});
      return true;
    });
  }

  // Whether the bytes of one operand are those of the other. Swizzled lines of 128 bytes are, whichever way they are
  // read, where they are whole and come in eights.
  static bool are_one_image(const StagedLoad& a, const StagedLoad& b, const Type& type) {
    if (a.operand == b.operand) return true;
    constexpr int64_t kLine = 64;  // elements of 128 bytes
    const auto fits = [&](size_t line) { return type.shape[line] % kLine == 0 && type.shape[1 - line] % 8 == 0; };
    return a.by_group && b.by_group && a.element == b.element && a.bytes == b.bytes && !a.shifted && !b.shifted &&
           a.line_dim == b.line_dim && fits(static_cast<size_t>(a.line_dim));
  }

  std::optional<StagedLoad> stage_for(const Op& op, const Use& use) const {
    const Type& type = kernel_.type(op.results[0]);
    const bool view = op.code == OpCode::kLoadView, is_b = use.dot->operands[1] == use.value;
    const DotPlan& plan = layouts_.dots.at(use.dot);
    const int64_t element = size_of(type.element);
    // What is converted on its way, or multiplied in two pieces, goes through registers.
    if (plan.by_thread || plan.pieces != 1 || element != plan.element || is_float8(type.element)) return std::nullopt;
    StagedLoad s;
    s.load = &op;
    s.by_group = plan.by_group;
    s.row_dim = is_b != use.turned ? 1 : 0;
    const Layout& layout = layouts_.of(view ? op.results[0] : op.operands[0]);
    const bool lies_along_k = layout.run(1 - s.row_dim) >= layout.run(s.row_dim);
    s.line_dim = lies_along_k ? 1 - s.row_dim : s.row_dim;
    s.vector = view ? view_vector(kernel_, facts_, op.operands[0], {op.operands.begin() + 1, op.operands.end()})
                    : access_vector(layout, facts_[static_cast<size_t>(op.operands[0])], element);
    const int64_t run = layout.run(s.line_dim);
    s.vector = std::min({s.vector, 16 / element, run & -run});
    const bool along_k = element != 2 || lies_along_k;
    if (along_k != lies_along_k) s.vector = 1;
    s.shifted = !view && plan.by_group && lies_along_k == along_k &&
                is_shifted(layout, facts_[static_cast<size_t>(op.operands[0])], element);
    if (s.vector * element < 4 && !s.shifted) return std::nullopt;
    const auto row = static_cast<size_t>(s.row_dim);
    const OperandShape shape{type.shape[row], type.shape[1 - row], along_k, covered_rows(plan, type.shape[row], is_b),
                             plan.by_group};
    if (shape.depth % (32 / element) != 0) return std::nullopt;
    s.element = plan.by == "block::by_tf32" ? "tile::cuda::tf32" : element_type(type.element);
    s.operand = operand_type(shape, s.element);
    s.reads = {{use.value, s.operand}};
    s.bytes = operand_bytes(shape, element);
    s.box = box_for(s, shape);
    return s;
  }

  bool pads_with_zero_outside(const Op& load) const {
    const Op* const made = uses_.definer(load.operands[0]);
    return made != nullptr && made->code == OpCode::kMakeView && made->attributes.word("padding") != "nan";
  }

  // What the value depends on within the loop, into `with`; whether all of it can be computed ahead.
  bool need(ValueId v, Pipeline& with) const {
    const auto argument = std::find(body_.arguments.begin(), body_.arguments.end(), v);
    if (argument != body_.arguments.end()) {
      if (argument == body_.arguments.begin()) return true;
      const auto i = static_cast<size_t>(argument - body_.arguments.begin()) - 1;
      if (std::find(with.carried.begin(), with.carried.end(), i) != with.carried.end()) return true;
      with.carried.push_back(i);
      return need(body_.ops.back().operands[i], with);
    }
    const Op* const op = uses_.definer(v);
    if (op == nullptr || !is_in(body_, op)) return true;
    if (!info_of(op->code).has(kPure) || !op->regions.empty()) return false;
    if (!with.ahead.insert(op).second) return true;
    return std::all_of(op->operands.begin(), op->operands.end(), [&](ValueId o) { return need(o, with); });
  }

  const Kernel& kernel_;
  const Op& loop_;
  const Region& body_;
  const WindowAnalysis& windows_;
  const Uses& uses_;
  const std::vector<AxisFacts>& facts_;
  const Assignment& layouts_;
  const bool boxes_;
  Pipeline pipeline_;
};

}  // namespace

bool pads_with_zero(const Uses& uses, const Op& load) {
  return load.operands.size() < 3 || is_zero(uses, load.operands[2]);
}

std::string operand_type(const OperandShape& shape, const std::string& element) {
  if (shape.swizzled) {
    return fmt::format("block::SwizzledOperand<{}, {}, {}, {}>", element, shape.rows, shape.depth, shape.along_k);
  }
  return fmt::format("block::Operand<{}, {}, {}, {}, {}>", element, shape.rows, shape.depth, shape.along_k,
                     shape.covered);
}

int64_t operand_bytes(const OperandShape& shape, int64_t element) {
  if (shape.swizzled) {
    constexpr int64_t kLine = 128, kStrip = 64;
    return shape.along_k ? (shape.depth + kStrip - 1) / kStrip * ((shape.rows + 7) / 8 * 8) * kLine
                         : (shape.rows + kStrip - 1) / kStrip * shape.depth * kLine;
  }
  const int64_t step = element > 4 ? 1 : 32 / element;
  const int64_t depth = (shape.depth + step - 1) / step * step, rows = (shape.covered + 15) / 16 * 16;
  const int64_t lines = shape.along_k ? rows : depth, line = shape.along_k ? depth : rows;
  const int64_t pieces = (line * element + 15) / 16;
  return lines * (pieces + (pieces % 2 == 0 ? 1 : 0)) * 16;
}

int64_t covered_rows(const DotPlan& plan, int64_t rows, bool is_b) {
  if (plan.by_thread || plan.by_group) return rows;
  const int64_t block = is_b ? 8 * plan.grid.n : 16 * plan.grid.m;
  return block * ((rows + block - 1) / block) + (is_b ? 8 : 0);
}

std::optional<Pipeline> plan_pipeline(const Kernel& kernel, const Op& loop, const WindowAnalysis& windows,
                                      const std::vector<AxisFacts>& facts, const Assignment& layouts,
                                      const PipelineLimits& limits) {
  if (has_trait(loop.regions[0], kWrites) || orders_loads(loop.regions[0])) return std::nullopt;
  Pipeline pipeline = PipelinePlanner(kernel, loop, windows, facts, layouts, limits.boxes).run();
  if (pipeline.loads.empty()) return std::nullopt;
  // A product that is not waited for reads one slot more than the loop's own.
  const bool holds_slot =
      !pipeline.by_boxes && accumulating_product(loop, pipeline, windows.uses(), layouts).has_value();
  constexpr int kRegisterSlots = 3;  // one is laid down, one is read, and others may still read one
  const int least = holds_slot ? 3 : 2,
            stages = pipeline.by_registers ? kRegisterSlots : limits.stages + (holds_slot ? 1 : 0);
  pipeline.stages = std::min<int>(stages, static_cast<int>(limits.bytes / pipeline.slot_bytes()));
  if (pipeline.stages < least) return std::nullopt;
  return pipeline;
}

std::optional<StagedLoad> plan_kept_load(const Kernel& kernel, const Op& loop, const Op& load,
                                         const WindowAnalysis& windows, const std::vector<AxisFacts>& facts,
                                         const Assignment& layouts) {
  std::optional<StagedLoad> staged = PipelinePlanner(kernel, loop, windows, facts, layouts, false).stage(load);
  return staged && !staged->shifted ? staged : std::nullopt;
}

std::optional<AccumulatingProduct> accumulating_product(const Op& loop, const Pipeline& pipeline, const Uses& uses,
                                                        const Assignment& layouts) {
  const Region& body = loop.regions[0];
  AccumulatingProduct found;
  for (const Op& op : body.ops) {
    if (!op.regions.empty() && op.code != OpCode::kReduce) return std::nullopt;
    if (op.code != OpCode::kDot) continue;
    if (found.dot != nullptr) return std::nullopt;
    found.dot = &op;
  }
  if (found.dot == nullptr) return std::nullopt;
  const ValueId sum = found.dot->results[0], before = found.dot->operands[2];
  const auto argument = std::find(body.arguments.begin() + 1, body.arguments.end(), before);
  if (argument == body.arguments.end()) return std::nullopt;
  found.carried = static_cast<size_t>(argument - body.arguments.begin()) - 1;
  const Op& yield = body.ops.back();
  const auto is_staged = [&](ValueId operand) {
    return std::any_of(pipeline.loads.begin(), pipeline.loads.end(), [&](const StagedLoad& l) {
      return std::any_of(l.reads.begin(), l.reads.end(), [&](const auto& read) { return read.value == operand; });
    });
  };
  const DotPlan& plan = layouts.dots.at(found.dot);
  const bool alone = uses.users(sum).size() == 1 && uses.users(before).size() == 1 &&
                     yield.operands[found.carried] == sum && plan.by_group && layouts.of(before) == plan.layout;
  return alone && is_staged(found.dot->operands[0]) && is_staged(found.dot->operands[1]) ? std::optional(found)
                                                                                         : std::nullopt;
}

}  // namespace heddle::lang::cuda
