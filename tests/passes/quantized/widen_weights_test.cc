#include "passes/quantized/widen_weights.h"

#include <fmt/format.h>

#include <random>

#include "ir/builder.h"
#include "ir/reference/array.h"
#include "ir/reference/eval.h"
#include "tests/passes/pass_test_util.h"
#include "tile/core/pack.h"

namespace heddle::passes {
namespace {

struct Form {
  int64_t rows, k, bits, block;
  DType dtype, scales;
  char third = 'n';  // none, zero points as bytes or floats, table
};

ir::Graph product_of(const Form& f, std::mt19937& random) {
  ir::Graph graph;
  ir::Builder b(graph);
  const auto filled = [&](DType dtype, Shape shape, int64_t low, int64_t high, double unit) {
    Tensor tensor(dtype, std::move(shape));
    for (int64_t i = 0; i < tensor.size(); ++i) {
      ir::set_real(tensor, i, static_cast<double>(std::uniform_int_distribution<int64_t>(low, high)(random)) * unit);
    }
    return b.constant(std::move(tensor));
  };
  Tensor words(DType::kU32, {f.rows, (f.k + tile::packed_per_word(f.bits) - 1) / tile::packed_per_word(f.bits)});
  for (uint32_t& word : words.mutable_values<uint32_t>()) word = static_cast<uint32_t>(random());
  const Shape blocks = {f.rows, (f.k + f.block - 1) / f.block};
  std::vector<ValueId> operands = {b.constant(std::move(words)), filled(f.scales, blocks, -1000, 1000, 0x1p-9)};
  if (f.third == 'b') operands.push_back(filled(DType::kU8, blocks, 0, (1 << f.bits) - 1, 1));
  if (f.third == 'f') operands.push_back(filled(DType::kF32, blocks, -40, 40, 0.25));
  if (f.third == 't') operands.push_back(filled(DType::kF32, {int64_t{1} << f.bits}, -100, 100, 0x1p-7));
  const ValueId w =
      b.emit(Op::kDequantize, operands,
             {{"bits", f.bits}, {"block", f.block}, {"k", f.k}, {"zero", int64_t{3}}, {"dtype", f.dtype}});
  graph.output("y", b.matmul(graph.parameter("x", {f.dtype, {4, f.k}}), b.transpose(w, {1, 0})));
  return graph;
}

const Node& dequantize_of(const ir::Graph& graph) {
  return *std::find_if(graph.nodes().begin(), graph.nodes().end(),
                       [](const Node& node) { return node.op == Op::kDequantize; });
}

TEST(WidenWeights, AreTheValuesOfTheOperator) {
  std::mt19937 random(5);
  for (const Form& f :
       {Form{5, 37, 4, 8, DType::kF16, DType::kF16}, Form{3, 70, 8, 16, DType::kF32, DType::kF32, 'b'},
        Form{7, 33, 2, 16, DType::kBF16, DType::kBF16, 'f'}, Form{2, 100, 4, 100, DType::kF16, DType::kF32, 't'},
        Form{1, 1, 4, 8, DType::kF32, DType::kF16}}) {
    const ir::Graph graph = product_of(f, random);
    const Node& node = dequantize_of(graph);
    std::vector<Tensor> operands;
    std::vector<ir::Array> arrays;
    for (const ValueId input : node.inputs) operands.push_back(*graph.constant_of(input));
    for (const Tensor& operand : operands) arrays.push_back(ir::to_array(operand));
    std::vector<const ir::Array*> pointers;
    for (const ir::Array& array : arrays) pointers.push_back(&array);
    const Tensor expected = ir::to_tensor(ir::evaluate_node(graph, node, pointers, true)[0]);
    EXPECT_EQ(ir::to_array(widened(node, operands)).f(), ir::to_array(expected).f())
        << fmt::format("{}x{} of {} bits", f.rows, f.k, f.bits);
  }
}

// The groups decide: weights that a product reads in packed form stay packed.
TEST(WidenWeights, OnlyThoseThatAKernelWouldWidenInEachRun) {
  std::mt19937 random(5);
  const ir::Graph graph = product_of({5, 64, 4, 32, DType::kF16, DType::kF16}, random);
  for (const auto kind : {ir::GroupKind::kStitch, ir::GroupKind::kContraction}) {
    const Target target = Target::cuda_h200(1);
    QuantisedProducts products = {{.what = "dot", .form = QuantisedProduct::Form::kPacked, .bits = 4}};
    PassContext context{target};
    context.quantised = &products;
    context.group = [&](const ir::Graph& g) {
      ir::Grouping grouping;
      for (NodeId id = 0; id < g.nodes().size(); ++id) {
        if (g.node(id).op == Op::kDequantize) grouping.groups.push_back({kind, {id}, id, {}, {}});
      }
      return grouping;
    };
    const ir::Graph after = widen_weights(graph, context);
    const bool stays = std::any_of(after.nodes().begin(), after.nodes().end(),
                                   [](const Node& node) { return node.op == Op::kDequantize; });
    EXPECT_EQ(stays, kind == ir::GroupKind::kContraction);
    EXPECT_EQ(products[0].form, stays ? QuantisedProduct::Form::kPacked : QuantisedProduct::Form::kFloats);
    expect_same(graph, after);
  }
}

}  // namespace
}  // namespace heddle::passes
