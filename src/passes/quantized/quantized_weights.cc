#include "passes/quantized/quantized_weights.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "base/divide.h"
#include "ir/builder.h"
#include "ir/group.h"
#include "ir/ops/parallel.h"
#include "ir/packed_words.h"
#include "ir/reference/eval.h"
#include "ir/reference/scalar.h"
#include "ir/rewrite.h"
#include "passes/quantized/byte_fields.h"
#include "passes/quantized/constant_values.h"
#include "passes/rewrite/digits.h"
#include "passes/rewrite/dot_side.h"
#include "passes/simplify/constant_kernels.h"

namespace heddle::passes {
namespace {

using ir::Graph;

// A factor or summand that blocks share: the elements of `source`, as `view` spreads them.
struct Shared {
  Tensor source;
  DigitView view;
};

// Weights as rows along the dimension over which a product sums them.
struct Weights {
  ir::ByteRows rows;
  int64_t least = 0, most = 0;  // of the integers and 0
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

  // Matches weights that are summed along a dimension: the result of a multiplication by scales, or moved parts of it.
  std::optional<Weights> match(ValueId v, size_t along) {
    shape_ = graph_.shape(v), along_ = along;
    if (shape_.size() != 2) return std::nullopt;
    moved_ = movements(graph_, v);
    const Node& node = graph_.producer(v);
    for (const size_t side : {size_t{0}, size_t{1}}) {
      std::optional<Shared> scale = shared(node.inputs[1 - side]);
      if (!scale || !is_float(graph_.dtype(node.inputs[1 - side]))) continue;
      Weights weights{{}, 0, 0, std::nullopt, std::nullopt, std::move(*scale)};
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
    std::optional<ir::ByteRows> rows = rows_of_fields(v);
    if (!rows) rows = rows_of_bytes(v);
    if (!rows) return false;
    weights.rows = std::move(*rows);
    std::tie(weights.least, weights.most) = ir::range_of(weights.rows);
    return true;
  }

  // Rows that are taken out of bytes when they are read.
  std::optional<ir::ByteRows> rows_of_fields(ValueId v) {
    const bool in_order =
        along_ == 1 && std::all_of(moved_.begin(), moved_.end(), [](auto* node) { return node->op == Op::kReshape; });
    const auto fields = in_order ? fields_of_bytes(graph_, v) : std::nullopt;
    if (!fields || shape_[1] % static_cast<int64_t>(fields->fields.size()) != 0) return std::nullopt;
    const std::optional<Tensor> bytes = constants_.value_of(fields->source);
    return bytes ? std::optional(rows_of(*fields, *bytes, shape_[1])) : std::nullopt;
  }

  std::optional<ir::ByteRows> rows_of_bytes(ValueId v) {
    std::optional<Tensor> integers = constants_.value_of(v);
    for (size_t i = moved_.size(); i-- > 0 && integers;) {
      integers = evaluate_dense(*moved_[i], std::array{std::move(*integers)});
    }
    if (!integers) return std::nullopt;
    return ir::rows_of(along_ == 1 ? *integers : transposed(*integers, {1, 0}));
  }

  static bool fits_table(const Weights& weights) {
    return !weights.rows.is_signed && weights.table->size() <= 16 && weights.rows.count * weights.rows.length > 0 &&
           weights.most < weights.table->size();
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
  ConstantValues constants_;
  Shape shape_;
  size_t along_ = 0;
  std::vector<const Node*> moved_;  // movements of the result of the multiplication, the last one first
};

// Emits a `dequantize` node for weights whose blocks run along dimension `along`.
class Packer {
 public:
  Packer(const Weights& weights, size_t along) : weights_(weights), along_(along) {
    k_ = weights.rows.length, rows_ = weights.rows.count;
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
    std::vector<ValueId> operands = {r.constant(ir::pack_words(weights_.rows, bits_, offset_)), r.constant(scales())};
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
    const int64_t least = weights_.least, most = weights_.most;
    for (const int64_t bits : {2, 4, 8}) {
      const int64_t half = int64_t{1} << (bits - 1);
      offset_ = least < 0 ? half : 0;
      if (least + offset_ >= 0 && most + offset_ < 2 * half) {
        bits_ = bits;
        break;
      }
    }
  }

  // Calls use(block, element) for one element of each block of each row.
  template <typename Use>
  void for_each_block(const DigitView& view, const Use& use) const {
    const int64_t blocks = ceil_div(k_, block_), origin = view.at(Ints(2));
    std::vector<int64_t> steps(static_cast<size_t>(blocks));
    for (int64_t i = 0; i < blocks; ++i) steps[static_cast<size_t>(i)] = view.step(along_, i * block_);
    ir::parallel_for(rows_, blocks, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t first = origin + view.step(1 - along_, row);
        for (int64_t i = 0; i < blocks; ++i) use(row * blocks + i, first + steps[static_cast<size_t>(i)]);
      }
    });
  }
  Shape blocks_shape() const { return {rows_, ceil_div(k_, block_)}; }

  template <typename T>
  void copy_blocks(const Shared& shared, Tensor& result) const {
    const T* from = static_cast<const T*>(shared.source.data());
    T* to = static_cast<T*>(result.mutable_data());
    for_each_block(shared.view, [&](int64_t block, int64_t element) { to[block] = from[element]; });
  }

  Tensor scales() const {
    const Tensor& source = weights_.scale.source;
    const DType dtype = source.dtype();
    const bool narrow = dtype == DType::kF16 || dtype == DType::kBF16;
    Tensor result = Tensor::unfilled(narrow ? dtype : DType::kF32, blocks_shape());
    if (narrow) {
      copy_blocks<uint16_t>(weights_.scale, result);
    } else if (dtype == DType::kF32) {
      copy_blocks<float>(weights_.scale, result);
    } else {
      for_each_block(weights_.scale.view, [&](int64_t block, int64_t element) {
        ir::set_real(result, block, ir::real_at(source, element));
      });
    }
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
    const Tensor& source = weights_.zero->source;
    const auto zero_at = [&](int64_t element) { return ir::real_at(source, element) + static_cast<double>(offset_); };
    const auto is_byte = [](double value) { return value >= 0 && value <= 255 && value == std::floor(value); };
    if (source.size() == 1 && is_byte(zero_at(0))) {
      zero = static_cast<int64_t>(zero_at(0));
      return;
    }
    Tensor bytes = Tensor::unfilled(DType::kU8, blocks_shape());
    auto* to = static_cast<uint8_t*>(bytes.mutable_data());
    std::atomic<bool> are_bytes = true;
    for_each_block(weights_.zero->view, [&](int64_t block, int64_t element) {
      const double value = zero_at(element);
      if (is_byte(value)) {
        to[block] = static_cast<uint8_t>(value);
      } else {
        are_bytes.store(false, std::memory_order_relaxed);
      }
    });
    if (are_bytes && ir::is_splat(bytes)) {
      zero = to[0];
    } else if (are_bytes) {
      operands.push_back(r.constant(std::move(bytes)));
    } else {
      Tensor zeros = Tensor::unfilled(DType::kF32, blocks_shape());
      for_each_block(weights_.zero->view,
                     [&](int64_t block, int64_t element) { ir::set_real(zeros, block, zero_at(element)); });
      operands.push_back(r.constant(std::move(zeros)));
    }
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
    const std::optional<Weights> weights = matcher.match(node.outputs[0], found->second.along);
    if (!weights) return std::nullopt;
    const Packer packer(*weights, found->second.along);
    if (context.quantised != nullptr) add_product(*context.quantised, packer.product(found->second.product));
    if (!packer.is_packable()) return std::nullopt;
    return std::vector<ValueId>{packer.emit(r, graph.dtype(node.outputs[0]))};
  });
}

}  // namespace heddle::passes
