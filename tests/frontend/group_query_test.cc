// GroupQueryAttention: sequences of their own lengths in buffers.
#include "microsoft_testing.h"

namespace heddle::onnx {
namespace {

// Four query heads of 4 elements share two heads of keys; `past` rows of each sequence are in buffers of `room` rows.
struct GroupQuery {
  Tensor q = random({2, 4, 16}), k = random({2, 4, 8}), v = random({2, 4, 8});
  Tensor cosine = random({8, 2}), sine = random({8, 2});

  static Tensor rows(const Tensor& x, int64_t sequence, int64_t from, int64_t count) {
    const int64_t width = x.shape()[2];
    const auto at = x.values<float>().begin() + (sequence * x.shape()[1] + from) * width;
    return floats({1, count, width}, std::vector<float>(at, at + count * width));
  }
  Arrays run(Tensors inputs, const std::vector<int32_t>& last, int32_t total, Attributes attributes = {},
             std::vector<std::string> more = {}) const {
    attributes["num_heads"] = int64_t{4};
    attributes["kv_num_heads"] = int64_t{2};
    const char* past = inputs.contains("pk") ? "pk" : "";
    std::vector<std::string> names = {"q", "k", "v", past, inputs.contains("pv") ? "pv" : "", "last", "total"};
    names.insert(names.end(), more.begin(), more.end());
    inputs["last"] = ints({static_cast<int64_t>(last.size())}, last);
    return onnx::run({microsoft("GroupQueryAttention", names, {"y", "k2", "v2"}, attributes)}, inputs,
                     {"y", "k2", "v2"}, {{"total", ints({}, {total})}, {"cos", cosine}, {"sin", sine}});
  }
};

const Attributes kRotary = {{"do_rotary", int64_t{1}}};
const std::vector<std::string> kAngles = {"cos", "sin"};

// Row i of sequence s of y [B, S, 16].
std::vector<double> row_of(const ir::Array& y, int64_t s, int64_t i) {
  const auto from = y.f().begin() + (s * y.shape[1] + i) * 16;
  return {from, from + 16};
}

TEST(GroupQueryAttention, AStepAfterAPromptGivesWhatTheWholeGives) {
  const GroupQuery g;
  const Arrays whole = g.run({{"q", g.q}, {"k", g.k}, {"v", g.v}}, {3, 3}, 4, kRotary, kAngles);
  for (const int64_t sequence : {0, 1}) {
    const auto part = [&](const Tensor& x, int64_t from, int64_t count) { return g.rows(x, sequence, from, count); };
    const Arrays prompt =
        g.run({{"q", part(g.q, 0, 3)}, {"k", part(g.k, 0, 3)}, {"v", part(g.v, 0, 3)}}, {2}, 3, kRotary, kAngles);
    Tensors inputs = {{"q", part(g.q, 3, 1)},
                      {"k", part(g.k, 3, 1)},
                      {"v", part(g.v, 3, 1)},
                      {"pk", ir::to_tensor(prompt.at("k2"))},
                      {"pv", ir::to_tensor(prompt.at("v2"))}};
    const Arrays step = g.run(inputs, {3}, 4, kRotary, kAngles);
    EXPECT_EQ(step.at("k2").shape, (Shape{1, 2, 4, 4}));
    EXPECT_THAT(row_of(step.at("y"), 0, 0),
                ::testing::Pointwise(::testing::DoubleNear(1e-6), row_of(whole.at("y"), sequence, 3)));
  }
}

TEST(GroupQueryAttention, SequencesOfDifferentLengthsShareBuffersWithRoom) {
  const GroupQuery g;
  // Sequence 0 has three earlier rows, sequence 1 one; what lies behind them is never read.
  const Tensor pk = random({2, 2, 6, 4}), pv = random({2, 2, 6, 4});
  const Tensors both = {
      {"q", random({2, 1, 16})}, {"k", random({2, 1, 8})}, {"v", random({2, 1, 8})}, {"pk", pk}, {"pv", pv}};
  const Arrays y = g.run(both, {3, 1}, 4, kRotary, kAngles);
  EXPECT_EQ(y.at("k2").shape, (Shape{2, 2, 6, 4}));
  const int64_t earlier[] = {3, 1};
  for (int64_t s = 0; s < 2; ++s) {
    const auto cut = [&](const Tensor& x) {  // the rows that count
      std::vector<float> values;
      for (int64_t head = 0; head < 2; ++head) {
        const auto at = x.values<float>().begin() + (s * 2 + head) * 24;
        values.insert(values.end(), at, at + earlier[s] * 4);
      }
      return floats({1, 2, earlier[s], 4}, values);
    };
    const auto row = [&](const char* name) { return g.rows(both.at(name), s, 0, 1); };
    const auto last = static_cast<int32_t>(earlier[s]);
    const Arrays alone = g.run({{"q", row("q")}, {"k", row("k")}, {"v", row("v")}, {"pk", cut(pk)}, {"pv", cut(pv)}},
                               {last}, last + 1, kRotary, kAngles);
    EXPECT_THAT(row_of(y.at("y"), s, 0),
                ::testing::Pointwise(::testing::DoubleNear(1e-6), row_of(alone.at("y"), 0, 0)));
    // The new key stands behind the earlier ones.
    const auto key = [](const Arrays& a, int64_t sequence, int64_t length, int64_t at) {
      const auto from = a.at("k2").f().begin() + (sequence * 2 * length + at) * 4;
      return std::vector<double>(from, from + 4);
    };
    EXPECT_EQ(key(y, s, 6, earlier[s]), key(alone, 0, earlier[s] + 1, earlier[s]));
  }
}

// The model says how long the buffers are, so that no run has to tell the compiler which sequence is the longest.
TEST(GroupQueryAttention, TheLongestLengthIsDataWhereTheBuffersLengthIsDeclared) {
  const GroupQuery g;
  const Tensors step = {{"q", random({2, 1, 16})},
                        {"k", random({2, 1, 8})},
                        {"v", random({2, 1, 8})},
                        {"pk", random({2, 2, 6, 4})},
                        {"pv", random({2, 2, 6, 4})}};
  GraphSpec graph{{microsoft("GroupQueryAttention", {"q", "k", "v", "pk", "pv", "last", "total"}, {"y", "k2", "v2"},
                             {{"num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}})},
                  {},
                  {"y", "k2", "v2"},
                  {},
                  {{"k2", DType::kF32, {2, 2, 6, 4}}}};
  Tensors inputs = step;
  inputs["last"] = ints({2}, {3, 1});
  inputs["total"] = ints({1}, {4});
  for (const auto& [name, value] : inputs) graph.inputs.push_back({name, value.dtype(), value.shape()});
  EXPECT_EQ(import_spec(graph).graph.inputs().size(), 7u);
  const Arrays as_data = run_spec(graph, inputs), constant = g.run(step, {3, 1}, 4);
  for (const char* name : {"y", "k2", "v2"}) expect_near(as_data.at(name), constant.at(name));
  // A first step: what the buffers hold is of nobody.
  inputs["last"] = ints({2}, {0, 0});
  inputs["total"] = ints({1}, {1});
  EXPECT_EQ(row_of(run_spec(graph, inputs).at("y"), 0, 0), row_of(g.run(step, {0, 0}, 1).at("y"), 0, 0));
}

// The buffers have room behind the rows of a first step: what is there stays, and no query sees it.
TEST(GroupQueryAttention, AFirstStepLeavesTheRoomBehindItsRowsAlone) {
  const GroupQuery g;
  const Tensors rows = {{"q", g.q}, {"k", g.k}, {"v", g.v}};
  Tensors inputs = rows;
  inputs["pk"] = random({2, 2, 6, 4});
  inputs["pv"] = random({2, 2, 6, 4});
  const Arrays alone = g.run(rows, {3, 3}, 4, kRotary, kAngles), roomy = g.run(inputs, {3, 3}, 4, kRotary, kAngles);
  expect_near(roomy.at("y"), alone.at("y"));
  const auto kept = inputs.at("pk").values<float>();
  for (size_t head = 0; head < 4; ++head) {
    for (size_t i = 0; i < 24; ++i) {
      const double wanted = i < 16 ? alone.at("k2").f()[head * 16 + i] : kept[head * 24 + i];
      EXPECT_EQ(roomy.at("k2").f()[head * 24 + i], wanted);
    }
  }
}

TEST(GroupQueryAttention, WindowSinkAndNormsChangeWhatIsSeen) {
  const GroupQuery g;
  const Tensors inputs = {{"q", g.q}, {"k", g.k}, {"v", g.v}};
  // In a window of one a query sees itself only.
  const Arrays narrow = g.run(inputs, {3, 3}, 4, {{"local_window_size", int64_t{1}}});
  std::vector<double> own;
  for (int64_t head : {0, 0, 1, 1}) {
    const auto from = g.v.values<float>().begin() + 8 + head * 4;
    own.insert(own.end(), from, from + 4);
  }
  EXPECT_EQ(row_of(narrow.at("y"), 0, 1), own);
  // A sink of -inf takes nothing, a smooth softmax takes as much as a score of 0.
  const std::vector<std::string> sink = {"", "", "", "", "sink"};
  Tensors with = inputs;
  with["sink"] = floats({4}, std::vector<float>(4, -1e30f));
  expect_near(g.run(with, {3, 3}, 4, {}, sink).at("y"), g.run(inputs, {3, 3}, 4).at("y"));
  with["sink"] = floats({4}, std::vector<float>(4, 0));
  expect_near(g.run(with, {3, 3}, 4, {}, sink).at("y"),
              g.run(inputs, {3, 3}, 4, {{"smooth_softmax", int64_t{1}}}).at("y"));
  // Norms of heads forget how long queries are.
  std::vector<float> doubled(g.q.values<float>().begin(), g.q.values<float>().end());
  for (float& x : doubled) x *= 2;
  const std::vector<std::string> norms = {"", "", "", "", "", "", "", "qn", "kn"};
  Tensors one = inputs, two = inputs;
  two["q"] = floats({2, 4, 16}, doubled);
  for (Tensors* t : {&one, &two}) (*t)["qn"] = (*t)["kn"] = floats({4}, {1, 2, 3, 4});
  expect_near(g.run(one, {3, 3}, 4, {}, norms).at("y"), g.run(two, {3, 3}, 4, {}, norms).at("y"), 1e-4);
}

}  // namespace
}  // namespace heddle::onnx
