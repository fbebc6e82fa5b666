#include "ir/builder.h"

#include <cmath>

#include "ir/rewrite.h"
#include "tests/ir/testing.h"

namespace heddle::ir::testing {
namespace {

constexpr auto kF64 = DType::kF64;

// The one output of what `make` builds on parameters of the given values.
template <typename Make>
Array build(const std::vector<Array>& inputs, const Make& make) {
  Graph graph;
  Builder builder(graph);
  std::vector<ValueId> operands;
  for (const Array& x : inputs) {
    operands.push_back(graph.parameter(fmt::format("x{}", operands.size()), type_of(x)));
  }
  graph.output("y", make(builder, operands));
  return evaluate(graph, inputs)[0];
}

TEST(BroadcastShapes, Laws) {
  EXPECT_EQ(broadcast_shapes({}, {}), Shape{});
  EXPECT_EQ(broadcast_shapes({3, 1}, {4}), (Shape{3, 4}));
  EXPECT_EQ(broadcast_shapes({1}, {0}), (Shape{0}));
  EXPECT_EQ(broadcast_shapes({2, 1, 5}, {7, 1}), (Shape{2, 7, 5}));
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    Shape whole(random() % 5), a, b;
    for (int64_t& extent : whole) extent = static_cast<int64_t>(random() % 4);
    const auto thin = [&] {
      Shape s(whole.begin() + static_cast<int64_t>(random() % (whole.size() + 1)), whole.end());
      for (int64_t& extent : s) extent = random() % 2 ? extent : 1;
      return s;
    };
    a = thin(), b = thin();
    EXPECT_EQ(broadcast_shapes(a, b), broadcast_shapes(b, a));
    EXPECT_EQ(broadcast_shapes(a, {}), a);
    EXPECT_EQ(broadcast_shapes(a, a), a);
    EXPECT_EQ(broadcast_shapes(a, broadcast_shapes(a, b)), broadcast_shapes(a, b));
  }
  try {
    broadcast_shapes({2, 3}, {2});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidNode);
    EXPECT_NE(std::string(error.what()).find("[2,3] and [2] do not broadcast"), std::string::npos);
  }
}

TEST(Builder, BinaryBroadcasts) {
  const Array a = random_array(kF64, {3, 1, 5}, 1), b = random_array(kF64, {4, 1}, 2);
  const Array y = build({a, b}, [](Builder& g, const auto& x) { return g.sub(x[0], x[1]); });
  EXPECT_EQ(y.shape, (Shape{3, 4, 5}));
  expect_elements(y, [&](const Coordinates& c) { return real_at(a, {c[0], 0, c[2]}) - real_at(b, {c[1], 0}); });
}

TEST(Builder, SelectBroadcasts) {
  const Array condition = integers({2, 1}, {1, 0}, DType::kBool);
  const Array y = build({condition, reals({3}, {1, 2, 3}), reals({}, {9})},
                        [](Builder& g, const auto& x) { return g.select(x[0], x[1], x[2]); });
  EXPECT_EQ(y.f(), (std::vector<double>{1, 2, 3, 9, 9, 9}));
}

TEST(Builder, IdentitiesMakeNoNodes) {
  Graph graph;
  Builder g(graph);
  const ValueId x = graph.parameter("x", {DType::kF32, {2, 3}});
  EXPECT_EQ(g.reshape(x, {2, 3}), x);
  EXPECT_EQ(g.transpose(x, {0, 1}), x);
  EXPECT_EQ(g.slice(x, {0, 0}, {2, 3}), x);
  EXPECT_EQ(g.cast(x, DType::kF32), x);
  EXPECT_EQ(g.broadcast_to(x, {2, 3}), x);
  EXPECT_EQ(g.concat(std::vector<ValueId>{x}, 1), x);
  const ValueId zero = g.scalar(DType::kF32, 0);
  EXPECT_EQ(g.pad(x, zero, {0, 0}, {0, 0}), x);
  EXPECT_EQ(graph.nodes().size(), 2u);
}

TEST(Builder, NodesCarryTheCurrentOrigins) {
  Graph graph;
  Builder g(graph);
  const ValueId x = graph.parameter("x", {DType::kF32, {2, 3}});
  g.set_origins({graph.origin({"n", "Softmax"})});
  for (const Node* node = &graph.producer(g.softmax(x, {1})); node->op != Op::kParameter;
       node = &graph.producer(node->inputs[0])) {
    EXPECT_EQ(node->origins, g.origins());
  }
}

TEST(Builder, ScalarsAreRoundedToTheirType) {
  Graph graph;
  Builder g(graph);
  EXPECT_EQ(to_array(*graph.constant_of(g.scalar(DType::kF16, 0.1))).f()[0], round_to(DType::kF16, 0.1));
  EXPECT_EQ(to_array(*graph.constant_of(g.scalar(DType::kI8, -3))).i()[0], -3);
  EXPECT_EQ(to_array(*graph.constant_of(g.scalar(DType::kBool, 2))).i()[0], 1);
  EXPECT_EQ(to_array(*graph.constant_of(g.ints({5, -1}))).i(), (Ints{5, -1}));
}

TEST(Builder, ReduceKeepsDimensionsOnRequest) {
  const Array x = random_array(kF64, {2, 3, 5}, 3);
  const Array y = build({x}, [](Builder& g, const auto& v) { return g.reduce("sum", v[0], {2, 0}, true); });
  EXPECT_EQ(y.shape, (Shape{1, 3, 1}));
}

TEST(Builder, Mean) {
  EXPECT_DOUBLE_EQ(
      build({reals({4}, {1, 2, 3, 5})}, [](Builder& g, const auto& v) { return g.mean(v[0], {0}); }).f()[0], 2.75);
  EXPECT_EQ(build({integers({3}, {1, 2, 5})}, [](Builder& g, const auto& v) { return g.mean(v[0], {0}); }).i()[0], 2);
  const Array big = reals({3}, {60000, 60000, 60000}, DType::kF16);
  Graph graph;
  Builder g(graph);
  graph.output("y", g.mean(graph.parameter("x", type_of(big)), {0}));
  EXPECT_EQ(evaluate(graph, {big}, {.round = true, .observe = {}})[0].f()[0], 60000);
}

TEST(Builder, SoftmaxOfLargeValues) {
  const Array x = reals({2, 3}, {1000, 1001, 1002, -5, -5, -5});
  const Array y = build({x}, [](Builder& g, const auto& v) { return g.softmax(v[0], {1}); });
  const double e = std::exp(1), sum = 1 + e + e * e;
  EXPECT_NEAR(y.f()[0], 1 / sum, 1e-15);
  EXPECT_NEAR(y.f()[2], e * e / sum, 1e-15);
  EXPECT_NEAR(y.f()[4], 1.0 / 3, 1e-15);
}

TEST(Builder, Sigmoid) {
  const Array y = build({reals({3}, {0, 1000, -1000})}, [](Builder& g, const auto& v) { return g.sigmoid(v[0]); });
  EXPECT_EQ(y.f(), (std::vector<double>{0.5, 1, 0}));
}

// numpy.matmul by its definition: batch dimensions broadcast, a rank-1 operand loses its dimension again.
void check_matmul(const Shape& a_shape, const Shape& b_shape, const Shape& expected) {
  SCOPED_TRACE(heddle::to_string(a_shape) + heddle::to_string(b_shape));
  const Array a = random_array(kF64, a_shape, 5), b = random_array(kF64, b_shape, 6);
  const Array y = build({a, b}, [](Builder& g, const auto& x) { return g.matmul(x[0], x[1]); });
  ASSERT_EQ(y.shape, expected);
  const int64_t depth = a_shape.back();
  const auto element = [](const Array& x, Coordinates batch, Coordinates matrix) {
    const size_t lead = x.shape.size() - matrix.size();
    Coordinates at(batch.end() - static_cast<int64_t>(lead), batch.end());
    for (size_t d = 0; d < lead; ++d) at[d] = x.shape[d] == 1 ? 0 : at[d];
    at.insert(at.end(), matrix.begin(), matrix.end());
    return real_at(x, at);
  };
  for_each_coordinate(expected, [&](const Coordinates& c) {
    Coordinates batch = c;
    int64_t row = 0, column = 0;
    if (b_shape.size() > 1) column = batch.back(), batch.pop_back();
    if (a_shape.size() > 1) row = batch.back(), batch.pop_back();
    double sum = 0;
    for (int64_t k = 0; k < depth; ++k) {
      sum += element(a, batch, a_shape.size() > 1 ? Coordinates{row, k} : Coordinates{k}) *
             element(b, batch, b_shape.size() > 1 ? Coordinates{k, column} : Coordinates{k});
    }
    EXPECT_NEAR(real_at(y, c), sum, 1e-12);
  });
}

TEST(Builder, Matmul) {
  check_matmul({3}, {3}, {});
  check_matmul({3}, {3, 5}, {5});
  check_matmul({2, 3}, {3}, {2});
  check_matmul({2, 3}, {3, 5}, {2, 5});
  check_matmul({7, 2, 3}, {3, 5}, {7, 2, 5});
  check_matmul({7, 2, 3}, {3}, {7, 2});
  check_matmul({3}, {7, 3, 5}, {7, 5});
  check_matmul({2, 3}, {7, 3, 5}, {7, 2, 5});
  check_matmul({7, 2, 3}, {7, 3, 5}, {7, 2, 5});
  check_matmul({4, 1, 2, 3}, {7, 3, 5}, {4, 7, 2, 5});
  check_matmul({2, 3}, {1, 1, 3, 5}, {1, 1, 2, 5});
  check_matmul({7, 2, 3}, {1, 3, 5}, {7, 2, 5});
  check_matmul({0, 2, 3}, {3, 5}, {0, 2, 5});
  check_matmul({2, 0}, {0, 5}, {2, 5});
}

TEST(Builder, MatmulRejects) {
  Graph graph;
  Builder g(graph);
  const ValueId scalar = graph.parameter("s", {kF64, {}});
  const ValueId matrix = graph.parameter("m", {kF64, {2, 3}});
  EXPECT_THROW(g.matmul(scalar, matrix), Error);
  EXPECT_THROW(g.matmul(matrix, matrix), Error);
}

// Passes copy most nodes as they are, which must not cost what their attributes hold.
TEST(Attrs, CopiesShareThemUntilOneChanges) {
  Graph graph;
  const ValueId x = graph.parameter("x", {DType::kF32, {2}});
  graph.output("y", Builder(graph).reduce("sum", x, {0}));
  const Graph copy = Rewriter(graph).run([](Rewriter&, const Node&) { return std::nullopt; });
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    EXPECT_EQ(graph.node(id).attrs.begin(), copy.node(id).attrs.begin());
  }
  Attrs changed = graph.node(0).attrs;
  changed.set("name", std::string("other"));
  EXPECT_EQ(graph.node(0).attrs.text("name"), "x");
  EXPECT_EQ(changed.text("name"), "other");
}

TEST(Graph, ValuesCountTheirUses) {
  Graph graph;
  Builder b(graph);
  const ValueId x = graph.parameter("x", {DType::kF32, {2}});
  const ValueId y = b.add(x, x);
  graph.output("y", y);
  EXPECT_EQ(graph.value(x).uses, 2u);
  EXPECT_EQ(graph.value(y).uses, 0u);
}

TEST(Graph, OriginsAreSharedUntilOneGraphHasMore) {
  Graph graph;
  const OriginId a = graph.origin({"a", "Add"});
  Graph other;
  other.adopt_origins(graph);
  EXPECT_EQ(&graph.origin(a), &other.origin(a));
  other.origin({"b", "Mul"});
  EXPECT_EQ(graph.origins().size(), 1u);
  EXPECT_EQ(other.origins().size(), 2u);
  EXPECT_EQ(other.origin({"a", "Add"}), a);
}

}  // namespace
}  // namespace heddle::ir::testing
