#include "passes/quantized/quantized_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "base/divide.h"
#include "ir/builder.h"
#include "ir/group.h"
#include "ir/packed_words.h"
#include "ir/reference/eval.h"
#include "ir/reference/scalar.h"
#include "ir/rewrite.h"
#include "passes/contraction/dot_side.h"
#include "passes/rewrite/digits.h"
#include "passes/simplify/constant_kernels.h"

namespace heddle::passes {
namespace {

using ir::Graph;

// The values of subgraphs of constants.
class Constants {
 public:
  explicit Constants(const Graph& graph) : graph_(graph) {
    for (const Node& node : graph.nodes()) {
      const bool computed =
          ir::is_elementwise(node.op) || ir::class_of(node.op) == OpClass::kLayout || node.op == Op::kGather;
      const auto is_known = [&](ValueId v) { return constant_[graph.value(v).producer]; };
      constant_.push_back(node.op == Op::kConstant ||
                          (computed && std::all_of(node.inputs.begin(), node.inputs.end(), is_known)));
    }
  }

  std::optional<Tensor> value_of(ValueId v) const {
    if (!constant_[graph_.value(v).producer]) return std::nullopt;
    std::map<ValueId, Tensor> values;
    for (std::vector<ValueId> open{v}; !open.empty();) {
      const ValueId at = open.back();
      const size_t before = open.size();
      if (!values.contains(at)) {
        for (const ValueId input : graph_.producer(at).inputs) {
          if (!values.contains(input)) open.push_back(input);
        }
        if (open.size() > before) continue;
        std::optional<Tensor> made = evaluated(at, values);
        if (!made) return std::nullopt;
        values.emplace(at, std::move(*made));
      }
      open.pop_back();
    }
    return std::move(values.at(v));
  }

 private:
  std::optional<Tensor> evaluated(ValueId v, const std::map<ValueId, Tensor>& values) const {
    constexpr int64_t kMostSlowElements = 1 << 20;
    if (const Tensor* constant = graph_.constant_of(v)) return *constant;
    const Node& node = graph_.producer(v);
    std::vector<Tensor> operands;
    for (const ValueId input : node.inputs) operands.push_back(values.at(input));
    if (std::optional<Tensor> fast = evaluate_dense(node, operands)) return fast;
    if (element_count(graph_.shape(v)) > kMostSlowElements) return std::nullopt;
    std::vector<ir::Array> arrays;
    for (const Tensor& operand : operands) arrays.push_back(ir::to_array(operand));
    std::vector<const ir::Array*> pointers;
    for (const ir::Array& array : arrays) pointers.push_back(&array);
    return ir::to_tensor(ir::evaluate_node(graph_, node, pointers, true)[0]);
  }

  const Graph& graph_;
  std::vector<bool> constant_;  // by node
};

// A factor or summand that blocks share: the elements of `source`, as `view` spreads them.
struct Shared {
  Tensor source;
  DigitView view;
};

struct Weights {
  Tensor integers;  // of one byte each
  std::optional<Tensor> table;
  std::optional<Shared> zero;
  Shared scale;
};

ValueId behind_casts(const Graph& graph, ValueId v) {
  while (graph.producer(v).op == Op::kCast) v = graph.producer(v).inputs[0];
  return v;
}

bool is_movement(Op op) {
  return op == Op::kBroadcast || op == Op::kReshape || op == Op::kTranspose || op == Op::kSlice;
}

// Returns the nodes that only move data on the way to `v`, the last one first. `v` becomes the value that they move.
// The chain is short, since each product walks it anew. It ends at a broadcast that repeats data: packed, the copies
// would take more memory than the constant.
std::vector<const Node*> movements(const Graph& graph, ValueId& v) {
  constexpr size_t kMost = 16;
  std::vector<const Node*> chain;
  const auto repeats = [&](const Node& node) {
    return element_count(graph.shape(node.outputs[0])) > element_count(graph.shape(node.inputs[0]));
  };
  for (const Node* node = &graph.producer(v); is_movement(node->op) && !repeats(*node) && chain.size() < kMost;
       node = &graph.producer(v)) {
    chain.push_back(node);
    v = node->inputs[0];
  }
  return chain;
}

class Matcher {
 public:
  explicit Matcher(const Graph& graph) : graph_(graph), constants_(graph) {}

  // Matches weights: the result of a multiplication by scales, or moved parts of it.
  std::optional<Weights> match(ValueId v) {
    moved_ = movements(graph_, v);
    const Node& node = graph_.producer(v);
    for (const size_t side : {size_t{0}, size_t{1}}) {
      std::optional<Shared> scale = shared(node.inputs[1 - side]);
      if (!scale || !is_float(graph_.dtype(node.inputs[1 - side]))) continue;
      Weights weights{{}, std::nullopt, std::nullopt, std::move(*scale)};
      if (find_integers(node.inputs[side], weights)) return weights;
    }
    return std::nullopt;
  }

 private:
  bool find_integers(ValueId v, Weights& weights) {
    const Node* node = &graph_.producer(behind_casts(graph_, v));
    if (node->op == Op::kGather && node->attrs.integer("dim") == 0) {
      const Tensor* table = graph_.constant_of(node->inputs[0]);
      if (table == nullptr || table->shape().size() != 1 || !is_float(table->dtype())) return false;
      weights.table = *table;
      return set_integers(node->inputs[1], weights) && fits_table(weights);
    }
    if (node->op == Op::kSub) {
      weights.zero = shared(node->inputs[1]);
      return weights.zero && set_integers(node->inputs[0], weights);
    }
    return set_integers(v, weights);
  }

  bool set_integers(ValueId v, Weights& weights) {
    v = behind_casts(graph_, v);
    if (!is_int(graph_.dtype(v)) || size_of(graph_.dtype(v)) != 1) return false;
    std::optional<Tensor> integers = constants_.value_of(v);
    for (size_t i = moved_.size(); i-- > 0 && integers;) {
      integers = evaluate_dense(*moved_[i], std::array{std::move(*integers)});
    }
    if (!integers || integers->shape().size() != 2) return false;
    weights.integers = std::move(*integers);
    return true;
  }

  static bool fits_table(const Weights& weights) {
    const auto values = bytes_of(weights.integers);
    return is_unsigned_int(weights.integers.dtype()) && weights.table->size() <= 16 && !values.empty() &&
           *std::max_element(values.begin(), values.end()) < weights.table->size();
  }

  static std::span<const uint8_t> bytes_of(const Tensor& tensor) {
    return {static_cast<const uint8_t*>(tensor.data()), static_cast<size_t>(tensor.size())};
  }

  // Matches a moved constant: the constant, and which of its elements `v` consists of after the movements of the
  // result.
  std::optional<Shared> shared(ValueId v) {
    std::vector<const Node*> chain;
    for (;;) {
      const Node& node = graph_.producer(v);
      const bool moves = is_movement(node.op);
      if (!moves && node.op != Op::kCast) break;
      if (moves) chain.push_back(&node);
      if (node.op == Op::kCast && bits_of(graph_.dtype(v)) < bits_of(graph_.dtype(node.inputs[0]))) return std::nullopt;
      v = node.inputs[0];
    }
    std::optional<DigitView> view = DigitView::dense(graph_.shape(v));
    chain.insert(chain.begin(), moved_.begin(), moved_.end());
    for (size_t i = chain.size(); i-- > 0 && view;) view = view->apply(*chain[i]);
    std::optional<Tensor> source = view ? constants_.value_of(v) : std::nullopt;
    if (!source) return std::nullopt;
    return Shared{std::move(*source), std::move(*view)};
  }

  const Graph& graph_;
  Constants constants_;
  std::vector<const Node*> moved_;  // movements of the result of the multiplication, the last one first
};

// Emits a `dequantize` node for weights whose blocks run along dimension `along`.
class Packer {
 public:
  Packer(const Weights& weights, size_t along) : weights_(weights), along_(along) {
    const Shape& shape = weights.integers.shape();
    k_ = shape[along], rows_ = shape[1 - along];
    block_ = weights.scale.view.run(along);
    if (weights.zero) block_ = std::gcd(block_, weights.zero->view.run(along));
    set_range();
  }

  // Kernels widen whole words with one scale.
  bool is_packable() const {
    return bits_ > 0 && k_ > 0 && rows_ > 0 &&
           (block_ == k_ || (block_ >= kLeastBlock && block_ % ir::integers_per_word(bits_) == 0));
  }

  QuantisedProduct product(std::string what) const {
    if (!is_packable()) return {.what = std::move(what), .reason = "blocks of a scale are not whole words"};
    return {.what = std::move(what),
            .form = QuantisedProduct::Form::kPacked,
            .bits = bits_,
            .saved_bytes = k_ * rows_ * (32 - bits_) / 8 - 4 * rows_ * ceil_div(k_, block_)};
  }

  ValueId emit(ir::Rewriter& r, DType dtype) const {
    ir::Builder b(r.target());
    b.set_origins(r.origins());
    std::vector<ValueId> operands = {r.constant(words()), r.constant(scales())};
    int64_t zero = offset_;
    if (weights_.table) {
      operands.push_back(r.constant(table()));
    } else if (weights_.zero) {
      add_zeros(r, operands, zero);
    }
    const ValueId rows = b.emit(Op::kDequantize, std::move(operands),
                                {{"bits", bits_}, {"block", block_}, {"k", k_}, {"zero", zero}, {"dtype", dtype}});
    return along_ == 1 ? rows : b.transpose(rows, {1, 0});
  }

 private:
  static constexpr int64_t kLeastBlock = 8;

  // The least and the greatest integer decide how many bits suffice, and what makes signed ones positive.
  void set_range() {
    const Tensor& q = weights_.integers;
    const auto* bytes = static_cast<const uint8_t*>(q.data());
    int64_t least = 0, most = 0;
    if (is_signed_int(q.dtype())) {
      const auto* values = static_cast<const int8_t*>(q.data());
      const auto [low, high] = std::minmax_element(values, values + q.size());
      if (q.size() > 0) least = *low, most = *high;
    } else if (q.size() > 0) {
      most = *std::max_element(bytes, bytes + q.size());
    }
    for (const int64_t bits : {2, 4, 8}) {
      const int64_t half = int64_t{1} << (bits - 1);
      offset_ = least < 0 ? half : 0;
      if (least + offset_ >= 0 && most + offset_ < 2 * half) {
        bits_ = bits;
        break;
      }
    }
  }

  Tensor words() const {
    const Tensor rows = along_ == 1 ? weights_.integers : transposed(weights_.integers, {1, 0});
    return ir::pack_words(rows, bits_, offset_);
  }

  // One value for each block of each row.
  template <typename Use>
  void for_each_block(const Shared& shared, const Use& use) const {
    const int64_t blocks = ceil_div(k_, block_);
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t i = 0; i < blocks; ++i) {
        Ints index(2);
        index[along_] = i * block_, index[1 - along_] = row;
        use(row * blocks + i, shared.view.at(index));
      }
    }
  }
  Shape blocks_shape() const { return {rows_, ceil_div(k_, block_)}; }

  Tensor scales() const {
    const Tensor& source = weights_.scale.source;
    const DType dtype = source.dtype();
    const bool narrow = dtype == DType::kF16 || dtype == DType::kBF16;
    Tensor result(narrow ? dtype : DType::kF32, blocks_shape());
    for_each_block(weights_.scale,
                   [&](int64_t to, int64_t from) { ir::set_real(result, to, ir::real_at(source, from)); });
    return result;
  }

  Tensor table() const {
    Tensor result(DType::kF32, {int64_t{1} << bits_});
    for (int64_t i = 0; i < std::min(result.size(), weights_.table->size()); ++i) {
      ir::set_real(result, i, ir::real_at(*weights_.table, i));
    }
    return result;
  }

  // Zero points that are all the same integer become an attribute, other integers take a byte each.
  void add_zeros(ir::Rewriter& r, std::vector<ValueId>& operands, int64_t& zero) const {
    Tensor zeros(DType::kF32, blocks_shape());
    bool are_bytes = true;
    for_each_block(*weights_.zero, [&](int64_t to, int64_t from) {
      const double value = ir::real_at(weights_.zero->source, from) + static_cast<double>(offset_);
      are_bytes = are_bytes && value >= 0 && value <= 255 && value == std::floor(value);
      ir::set_real(zeros, to, value);
    });
    if (are_bytes && ir::is_splat(zeros)) {
      zero = static_cast<int64_t>(ir::real_at(zeros, 0));
      return;
    }
    if (!are_bytes) return operands.push_back(r.constant(std::move(zeros)));
    Tensor bytes(DType::kU8, blocks_shape());
    for (int64_t i = 0; i < bytes.size(); ++i) {
      ir::set_integer(bytes, i, static_cast<int64_t>(ir::real_at(zeros, i)));
    }
    operands.push_back(r.constant(std::move(bytes)));
  }

  const Weights& weights_;
  const size_t along_;
  int64_t k_ = 0, rows_ = 0, block_ = 0, bits_ = 0, offset_ = 0;
};

// Finds the values that products read as weights, perhaps through casts and transposes, and the dimension over which
// each is summed. They are results of multiplications, perhaps moved.
struct Candidate {
  size_t along;
  std::string product;  // the first that reads it
};
std::map<ValueId, Candidate> find_candidates(const Graph& graph) {
  std::map<ValueId, Candidate> found;
  for (const Node& dot : graph.nodes()) {
    if (dot.op != Op::kDot) continue;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const DotSide operand(graph, dot, side);
      if (operand.shape.size() != 2 || operand.contract.size() != 1 || !operand.batch.empty()) continue;
      auto along = static_cast<size_t>(operand.contract[0]);
      ValueId v = dot.inputs[side];
      for (;; v = graph.producer(v).inputs[0]) {
        const Node& node = graph.producer(v);
        if (node.op == Op::kTranspose) {
          along = static_cast<size_t>(node.attrs.ints("perm")[along]);
        } else if (node.op != Op::kCast || !is_float(graph.dtype(node.inputs[0]))) {
          break;
        }
      }
      const DType dtype = graph.dtype(v);
      const bool is_narrow = dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
      ValueId product = v;
      movements(graph, product);
      if (graph.producer(product).op == Op::kMul && is_narrow)
        found.emplace(v, Candidate{along, ir::text_of_node(graph, dot)});
    }
  }
  return found;
}

}  // namespace

ir::Graph quantized_weights(const Graph& graph, const PassContext& context) {
  const std::map<ValueId, Candidate> candidates = find_candidates(graph);
  if (candidates.empty()) return graph;
  Matcher matcher(graph);
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    const auto found = node.outputs.empty() ? candidates.end() : candidates.find(node.outputs[0]);
    if (found == candidates.end()) return std::nullopt;
    const std::optional<Weights> weights = matcher.match(node.outputs[0]);
    if (!weights) return std::nullopt;
    const Packer packer(*weights, found->second.along);
    if (context.quantised != nullptr) add_product(*context.quantised, packer.product(found->second.product));
    if (!packer.is_packable()) return std::nullopt;
    return std::vector<ValueId>{packer.emit(r, graph.dtype(node.outputs[0]))};
  });
}

}  // namespace heddle::passes
