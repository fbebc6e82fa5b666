#include "schedule/product/dot.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/divide.h"
#include "schedule/product/blocking.h"
#include "schedule/product/candidates.h"
#include "schedule/product/dot_problem.h"
#include "schedule/product/packing.h"

namespace heddle::schedule {
namespace {

class DotScheduler {
 public:
  explicit DotScheduler(ContractionBuilder& builder)
      : builder_(builder),
        graph_(builder.graph()),
        node_(builder.anchor()),
        p_(builder, {.swapped = !builder.keeps_rows() && swaps(builder)}),
        words_(words_for(graph_.dtype(node_.inputs[p_.swapped ? 1 : 0]), graph_.dtype(node_.inputs[p_.swapped ? 0 : 1]),
                         builder.target())) {}

  ScheduledGroup run() {
    const bool loops = p_.k.size() > 1 || p_.batch.size() > tile::kBatchDims;
    GemmDesc desc;
    set_shape(desc.shape, loops);
    desc.words = words_, desc.terms = desc.shape.k;
    desc.shape.k = ceil_div(desc.terms, elements_of(words_));
    const DType compute = *contraction_compute(graph_.dtype(node_.inputs[0]), graph_.dtype(node_.inputs[1]),
                                               graph_.dtype(node_.outputs[0]));
    builder_.desc().compute = compute;
    find_packed(desc, compute, loops);
    const Config config = choose_config(builder_.configs(), {problem_text(desc.shape, compute, loops)}, [&] {
      if (desc.packed) return std::vector{block_packed(desc, builder_.target())};
      return builder_.for_extents(gemm_candidates(desc, compute, builder_.target()), [&](Config pick) {
        pick = with_common_height(std::move(pick), desc.shape.m, micro_rows(builder_.target(), words_, desc.shape.m));
        return packs_b(loops) ? pick : with_wide_panels(std::move(pick), builder_.target(), compute);
      });
    });
    const int64_t width = config.as<CpuGemmConfig>().micro_n;
    make_a(desc, compute, width, loops);
    make_b(desc, width, loops);
    make_epilogue(desc.shape, compute);
    const std::string types = words_label(words_, graph_.dtype(p_.a_view.value), graph_.dtype(p_.b_view.value));
    const std::string bits = desc.packed ? fmt::format(" of {} bits", desc.packed->bits) : "";
    const std::string label = p_.label() + types + bits + builder_.epilogue_label();
    builder_.desc().problem = std::move(desc);
    ScheduledGroup result;
    result.notes.push_back(label + ": " + config.reason);
    result.kernels.push_back(builder_.finish(config, label, p_.operations()));
    return result;
  }

 private:
  // Packed weights are operand B. Bytes are multiplied fastest if A is unsigned and B signed.
  static bool swaps(ContractionBuilder& builder) {
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const View view = builder.view_of(builder.anchor().inputs[side]);
      if (has_packed_weights(builder, view.value)) return side == 0;
    }
    const auto type = [&](size_t side) { return builder.graph().dtype(builder.anchor().inputs[side]); };
    return words_for(type(0), type(1), builder.target()) != Words::kBytes &&
           has_few_columns(builder.graph(), builder.anchor());
  }

  std::string problem_text(const tile::GemmShape& s, DType compute, bool loops) const {
    const auto dim = [](const std::vector<DotDim>& dims) { return dims.empty() ? DotDim{1, 0, 0} : dims[0]; };
    std::string a = "computed", b = "computed";
    if (p_.a_affine && p_.m.size() <= 1 && !loops) {
      a = gemm_operand_text(graph_, p_.a_view.value, dim(p_.m).a, dim(p_.k).a);
    }
    if (const auto* packed = packed_node()) {
      b = fmt::format("u{} {} constant", packed->attrs.integer("bits"), packed->attrs.integer("block"));
    } else if (p_.b_affine && p_.n.size() <= 1 && !loops) {
      b = gemm_operand_text(graph_, p_.b_view.value, dim(p_.k).b, dim(p_.n).b);
    }
    return gemm_problem_text(s, compute, a, b);
  }

  void set_shape(tile::GemmShape& s, bool loops) {
    s.m = DotProblem::count(p_.m), s.n = DotProblem::count(p_.n), s.k = DotProblem::count(p_.k);
    if (loops) {
      s.batch[tile::kBatchDims - 1] = DotProblem::count(p_.batch);
      return;
    }
    const size_t first = tile::kBatchDims - p_.batch.size();
    for (size_t i = 0; i < p_.batch.size(); ++i) s.batch[first + i] = p_.batch[i].extent;
  }

  // An operand as an expression of its loops: (batch, row, k) or (batch, k, column).
  void compute(GemmDesc& desc, GemmOperand& operand, bool is_a) {
    IndexPool& pool = desc.pool.indices;
    const tile::GemmShape& s = desc.shape;
    operand.form = GemmOperand::Form::kComputed;
    const int64_t extents[3] = {s.batches(), is_a ? s.m : desc.terms, is_a ? desc.terms : s.n};
    std::vector<Index> loops;
    for (size_t i = 0; i < 3; ++i) {
      operand.vars[i] = pool.new_var(std::max<int64_t>(extents[i], 1));
      loops.push_back(pool.var(operand.vars[i]));
    }
    operand.element = p_.element(desc.pool, is_a, loops[0], loops[is_a ? 1 : 2], loops[is_a ? 2 : 1]);
  }

  void set_strides(GemmOperand& operand, bool is_a) {
    const DotProblem& p = p_;
    const size_t first = tile::kBatchDims - p.batch.size();
    for (size_t i = 0; i < p.batch.size(); ++i) operand.batch[first + i] = is_a ? p.batch[i].a : p.batch[i].b;
    operand.offset = is_a ? p.a_view.offset : p.b_view.offset;
    const int64_t k = p.k.empty() ? 1 : is_a ? p.k[0].a : p.k[0].b;
    operand.row = is_a ? (p.m.empty() ? 0 : p.m[0].a) : k;
    operand.col = is_a ? k : (p.n.empty() ? 1 : p.n[0].b);
  }

  void make_a(GemmDesc& desc, DType compute_dtype, int64_t width, bool loops) {
    const View& view = p_.a_view;
    if (!p_.a_affine || p_.m.size() > 1 || loops) return compute(desc, desc.a, true);
    set_strides(desc.a, true);
    desc.a.dtype = graph_.dtype(view.value);
    desc.a.operand = builder_.input(view.value);
    const DType in_words = words_ == Words::kNone ? compute_dtype : element_of(words_, true);
    const int64_t element = static_cast<int64_t>(size_of(in_words));
    const int64_t most = micro_rows(builder_.target(), words_, desc.shape.m);
    const int64_t rows = builder_.for_any_extents() ? most : tile::split_rows(desc.shape.m, most).mr;
    const bool collide = tile::rows_collide(desc.a.row * element, rows) && desc.shape.n > width;
    const bool in_place = desc.a.dtype == in_words && desc.a.col == 1 && !collide && is_of_words(desc);
    desc.a.form = in_place ? GemmOperand::Form::kDirect : GemmOperand::Form::kCopied;
  }

  // Whether A consists of whole words.
  bool is_of_words(const GemmDesc& desc) const {
    const int64_t elements = elements_of(words_);
    const auto whole = [&](int64_t n) { return n % elements == 0; };
    return whole(desc.terms) && whole(desc.a.row) && whole(desc.a.offset) &&
           std::all_of(std::begin(desc.a.batch), std::end(desc.a.batch), whole);
  }

  bool computes_b(bool loops) const { return !p_.b_affine || p_.n.size() > 1 || loops; }
  // Whether B is packed ahead, by at most one dimension of the batch.
  bool packs_b(bool loops) const {
    const auto batched = std::count_if(p_.batch.begin(), p_.batch.end(), [](const DotDim& d) { return d.b != 0; });
    return !computes_b(loops) && packed_node() == nullptr && graph_.constant_of(p_.b_view.value) != nullptr &&
           batched <= 1;
  }

  const ir::Node* packed_node() const {
    return has_packed_weights(builder_, p_.b_view.value) ? &graph_.producer(p_.b_view.value) : nullptr;
  }

  // Returns PackedWeights::digits. Without an instruction that sums products of bytes, three digits pay only for few
  // rows and weights of up to 4 bits.
  int digits_of_a(const PackedWeights& weights, const tile::GemmShape& shape) const {
    constexpr int64_t kMostSummed = 1 << 15;  // products of bytes whose sum 32 bits hold
    const Target& target = builder_.target();
    const bool possible = target.cpu.isa >= CpuIsa::kAvx2 && std::min(weights.block, shape.k) <= kMostSummed;
    if (weights.is_table || !possible) return 0;
    if (node_.attrs.has("operand_bits")) return 1;
    return target.multiplies_bytes() || (weights.bits <= 4 && shape.m <= kFewRows) ? 3 : 0;
  }

  // Kernels read rows of the weights as columns of B. They widen to f32, and have tables of up to 16 numbers.
  void find_packed(GemmDesc& desc, DType compute_dtype, bool loops) {
    const ir::Node* node = packed_node();
    if (node == nullptr || loops || !p_.b_affine || p_.b_view.offset != 0 || p_.n.size() > 1) return;
    const Shape& shape = graph_.shape(node->outputs[0]);
    const bool whole = desc.shape.n == shape[0] && desc.shape.k == shape[1] && (p_.k.empty() || p_.k[0].b == 1) &&
                       (p_.n.empty() || p_.n[0].b == shape[1]);
    const bool shared = std::all_of(p_.batch.begin(), p_.batch.end(), [](const DotDim& d) { return d.b == 0; });
    const auto is_constant = [&](ir::ValueId v) { return graph_.constant_of(v) != nullptr; };
    if (!whole || !shared || compute_dtype != DType::kF32 ||
        !std::all_of(node->inputs.begin(), node->inputs.end(), is_constant)) {
      return;
    }
    const ir::Attrs& attrs = node->attrs;
    PackedWeights packed;
    packed.bits = attrs.integer("bits"), packed.block = attrs.integer("block"), packed.zero = attrs.integer("zero");
    packed.is_table = node->inputs.size() == 3 && graph_.shape(node->inputs[2]).size() == 1;
    if (packed.is_table && packed.bits > 4) return;
    packed.digits = digits_of_a(packed, desc.shape);
    packed.in_registers = packed.digits > 0 || desc.shape.m <= kFewRows;
    desc.packed = packed;
  }

  // The words, scales and zero points of the same columns are next to each other.
  void make_packed(GemmDesc& desc, int64_t width) {
    const ir::Node& node = *packed_node();
    const auto panels = [&](ir::ValueId v) {
      const int64_t depth = graph_.shape(v)[1];
      return builder_.input(v, panel_packing({1, 0, 1, 0, depth, 1, desc.shape.n, depth}, 0, width));
    };
    desc.b = {.form = GemmOperand::Form::kBits, .operand = panels(node.inputs[0]), .dtype = DType::kU32};
    desc.packed->scales = panels(node.inputs[1]);
    if (node.inputs.size() < 3) return;
    desc.packed->third = desc.packed->is_table ? builder_.input(node.inputs[2]) : panels(node.inputs[2]);
  }

  void make_b(GemmDesc& desc, int64_t width, bool loops) {
    const View& view = p_.b_view;
    if (desc.packed) return make_packed(desc, width);
    if (computes_b(loops) || packed_node() != nullptr) return compute(desc, desc.b, false);
    set_strides(desc.b, false);
    desc.b.dtype = graph_.dtype(view.value);
    desc.b.form = GemmOperand::Form::kCopied;
    std::vector<size_t> batched;
    for (size_t d = 0; d < tile::kBatchDims; ++d) {
      if (desc.b.batch[d] != 0) batched.push_back(d);
    }
    if (!packs_b(loops)) {
      desc.b.operand = builder_.input(view.value);
      return;
    }
    tile::PanelSource source{1, 0, 1, 0, desc.terms, desc.b.row, desc.shape.n, desc.b.col};
    if (!batched.empty()) {
      source.groups = desc.shape.batch[batched[0]], source.group_stride = desc.b.batch[batched[0]];
      desc.b.batch[batched[0]] = tile::panel_count(source, width) * width * desc.shape.k;
    }
    desc.b.form = GemmOperand::Form::kPacked;
    desc.b.operand = builder_.input(view.value, words_ == Words::kNone
                                                    ? panel_packing(source, desc.b.offset, width)
                                                    : word_packing(source, desc.b.offset, width, elements_of(words_)));
    desc.b.offset = 0;
  }

  void make_epilogue(const tile::GemmShape& s, DType compute_dtype) {
    const int64_t lanes = micro_limits(builder_.target()).vector_bytes / static_cast<int64_t>(size_of(compute_dtype));
    builder_.make_epilogue(s.batches(), s.m, s.n, lanes,
                           [this](IndexPool& pool, const Index& batch, const Index& row, const Index& column) {
                             return p_.coordinates(pool, batch, row, column);
                           });
  }

  // Up to here, widening in registers for each tile of rows is faster than writing a widened panel.
  static constexpr int64_t kFewRows = 16;

  ContractionBuilder& builder_;
  const ir::Graph& graph_;
  const ir::Node& node_;
  DotProblem p_;
  const Words words_;
};

}  // namespace

ScheduledGroup schedule_dot(ContractionBuilder& builder) {
  return DotScheduler(builder).run();
}

}  // namespace heddle::schedule
