#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "model_bytes.h"

namespace heddle::onnx {
namespace {

std::mt19937& rng() {
  static std::mt19937 engine(17);
  return engine;
}

Tensor random(Shape shape) {
  std::vector<float> values(static_cast<size_t>(element_count(shape)));
  for (float& v : values) v = std::uniform_real_distribution<float>(-1, 1)(rng());
  return floats(std::move(shape), values);
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// One step of one sequence: x [I], states [H] each; weights of one direction, gate by gate.
struct CellWeights {
  const float *w, *r, *bias, *peepholes;
  int64_t inputs, hidden, gates;

  double sum(int64_t gate, int64_t unit, const float* x) const {
    double total = bias[gate * hidden + unit];
    const float* row = w + (gate * hidden + unit) * inputs;
    for (int64_t i = 0; i < inputs; ++i) total += row[i] * x[i];
    return total;
  }
  double recur(int64_t gate, int64_t unit, const std::vector<double>& h) const {
    double total = bias[(gates + gate) * hidden + unit];
    const float* row = r + (gate * hidden + unit) * hidden;
    for (int64_t i = 0; i < hidden; ++i) total += row[i] * h[i];
    return total;
  }
};

using States = std::vector<std::vector<double>>;

States lstm_step(const CellWeights& p, const float* x, const States& s) {
  States next(2, std::vector<double>(p.hidden));
  for (int64_t u = 0; u < p.hidden; ++u) {
    const auto gate = [&](int64_t g) { return p.sum(g, u, x) + p.recur(g, u, s[0]); };
    const double c = s[1][u];
    const double i = sigmoid(gate(0) + p.peepholes[u] * c), f = sigmoid(gate(2) + p.peepholes[2 * p.hidden + u] * c);
    next[1][u] = f * c + i * std::tanh(gate(3));
    next[0][u] = sigmoid(gate(1) + p.peepholes[p.hidden + u] * next[1][u]) * std::tanh(next[1][u]);
  }
  return next;
}

States gru_step(const CellWeights& p, const float* x, const States& s) {
  States next(1, std::vector<double>(p.hidden));
  std::vector<double> reset(p.hidden);
  for (int64_t u = 0; u < p.hidden; ++u) reset[u] = sigmoid(p.sum(1, u, x) + p.recur(1, u, s[0])) * s[0][u];
  for (int64_t u = 0; u < p.hidden; ++u) {
    const double z = sigmoid(p.sum(0, u, x) + p.recur(0, u, s[0]));
    next[0][u] = (1 - z) * std::tanh(p.sum(2, u, x) + p.recur(2, u, reset)) + z * s[0][u];
  }
  return next;
}

struct Case {
  std::string op, direction;
  int64_t steps, batch, inputs, hidden;
  std::vector<int64_t> lengths;  // empty: all steps
  bool constant_weights = true;
};

// Y [steps, D, batch, H] and the final h [D, batch, H], straight from the definition.
std::pair<std::vector<double>, std::vector<double>> expected(const Case& c, const std::map<std::string, Tensor>& t) {
  const int64_t directions = c.direction == "bidirectional" ? 2 : 1, gates = c.op == "LSTM" ? 4 : 3;
  std::vector<double> y(c.steps * directions * c.batch * c.hidden), last(directions * c.batch * c.hidden);
  for (int64_t d = 0; d < directions; ++d) {
    const int64_t w = gates * c.hidden;
    const CellWeights p{t.at("W").values<float>().data() + d * w * c.inputs,
                        t.at("R").values<float>().data() + d * w * c.hidden,
                        t.at("B").values<float>().data() + d * 2 * w,
                        c.op == "LSTM" ? t.at("P").values<float>().data() + d * 3 * c.hidden : nullptr,
                        c.inputs,
                        c.hidden,
                        gates};
    for (int64_t b = 0; b < c.batch; ++b) {
      States s;
      for (const char* name : {"h0", "c0"}) {
        const float* from = t.at(name).values<float>().data() + (d * c.batch + b) * c.hidden;
        s.emplace_back(from, from + c.hidden);
      }
      if (c.op != "LSTM") s.resize(1);
      const int64_t length = c.lengths.empty() ? c.steps : c.lengths[b];
      for (int64_t k = 0; k < length; ++k) {
        const int64_t step = c.direction == "reverse" || d == 1 ? length - 1 - k : k;
        const float* x = t.at("X").values<float>().data() + (step * c.batch + b) * c.inputs;
        s = c.op == "LSTM" ? lstm_step(p, x, s) : gru_step(p, x, s);
        std::copy(s[0].begin(), s[0].end(), y.begin() + ((step * directions + d) * c.batch + b) * c.hidden);
      }
      std::copy(s[0].begin(), s[0].end(), last.begin() + (d * c.batch + b) * c.hidden);
    }
  }
  return {y, last};
}

std::map<std::string, Tensor> make_tensors(const Case& c) {
  const int64_t directions = c.direction == "bidirectional" ? 2 : 1, gates = c.op == "LSTM" ? 4 : 3;
  std::map<std::string, Tensor> t;
  t["X"] = random({c.steps, c.batch, c.inputs});
  t["W"] = random({directions, gates * c.hidden, c.inputs});
  t["R"] = random({directions, gates * c.hidden, c.hidden});
  t["B"] = random({directions, 2 * gates * c.hidden});
  t["P"] = random({directions, 3 * c.hidden});
  t["h0"] = random({directions, c.batch, c.hidden});
  t["c0"] = random({directions, c.batch, c.hidden});
  if (!c.lengths.empty()) {
    const std::vector<int32_t> lengths(c.lengths.begin(), c.lengths.end());
    t["lengths"] = Tensor::of<int32_t>(DType::kI32, {c.batch}, std::span(lengths));
  }
  return t;
}

GraphSpec make_graph(const Case& c, const std::map<std::string, Tensor>& t) {
  NodeSpec node{c.op, {"X", "W", "R", "B", c.lengths.empty() ? "" : "lengths", "h0"}, {"Y", "Y_h"}};
  if (c.op == "LSTM") node.inputs.insert(node.inputs.end(), {"c0", "P"});
  node.attributes = {{"hidden_size", c.hidden}, {"direction", c.direction}};
  GraphSpec graph{{node}, {}, {"Y", "Y_h"}};
  for (const std::string& name : node.inputs) {
    if (name.empty()) continue;
    const bool weight = name == "W" || name == "R" || name == "B" || name == "P";
    if (weight && c.constant_weights) {
      graph.initializers[name] = t.at(name);
    } else {
      graph.inputs.push_back({name, t.at(name).dtype(), t.at(name).shape()});
    }
  }
  return graph;
}

TEST(Recurrent, FollowsTheDefinitionInEveryDirection) {
  for (const char* op : {"LSTM", "GRU"}) {
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      for (const bool constant : {true, false}) {
        for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{}, std::vector<int64_t>{2, 5, 1}}) {
          const Case c{op, direction, 5, 3, 4, 2, lengths, constant};
          const auto tensors = make_tensors(c);
          const GraphSpec graph = make_graph(c, tensors);
          std::map<std::string, Tensor> inputs;
          for (const PortSpec& port : graph.inputs) inputs[port.name] = tensors.at(port.name);
          const auto results = run_spec(graph, inputs);
          const auto [y, last] = expected(c, tensors);
          for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(results.at("Y").f()[i], y[i], 1e-6) << op << direction << i;
          for (size_t i = 0; i < last.size(); ++i) ASSERT_NEAR(results.at("Y_h").f()[i], last[i], 1e-6) << op << i;
        }
      }
    }
  }
}

// The loop's body must do no work that could be done once: weights enter it as constants, ready to use.
TEST(Recurrent, TheBodyOfALoopHoldsNoTransposes) {
  const Case c{"LSTM", "forward", 7, 1, 3, 5, {}, true};
  const auto tensors = make_tensors(c);
  const Imported imported = import_spec(make_graph(c, tensors));
  int loops = 0, dots_inside = 0;
  for (const ir::Node& node : imported.graph.nodes()) {
    if (node.op != ir::Op::kLoop) continue;
    ++loops;
    for (const ir::Node& inner : node.attrs.graph("body").nodes()) {
      EXPECT_NE(inner.op, ir::Op::kTranspose);
      dots_inside += inner.op == ir::Op::kDot;
    }
  }
  EXPECT_EQ(loops, 1);
  EXPECT_EQ(dots_inside, 1);
}

TEST(Recurrent, ActivationsClipAndLayoutOfRnn) {
  // h' = max(0, clip(w x + r h)), batch first.
  GraphSpec graph{{{"RNN",
                    {"X", "W", "R"},
                    {"Y", "Y_h"},
                    {{"hidden_size", int64_t{1}},
                     {"layout", int64_t{1}},
                     {"clip", 2.0f},
                     {"activations", std::vector<std::string>{"relu"}}}}},
                  {{"X", DType::kF32, {2, 3, 1}}},
                  {"Y", "Y_h"},
                  {{"W", floats({1, 1, 1}, {1})}, {"R", floats({1, 1, 1}, {0.5})}}};
  const auto results = run_spec(graph, {{"X", floats({2, 3, 1}, {1, 1, 5, -1, 2, -9})}});
  EXPECT_EQ(results.at("Y").shape, (Shape{2, 3, 1, 1}));
  EXPECT_EQ(results.at("Y").f(), (std::vector<double>{1, 1.5, 2, 0, 2, 0}));
  EXPECT_EQ(results.at("Y_h").shape, (Shape{2, 1, 1}));
  EXPECT_EQ(results.at("Y_h").f(), (std::vector<double>{2, 0}));
}

TEST(Recurrent, RefusesShapesAndNamesThatDoNotFit) {
  Case c{"LSTM", "forward", 2, 1, 3, 4, {}, true};
  auto tensors = make_tensors(c);
  tensors["B"] = random({1, 7});
  EXPECT_THROW(import_spec(make_graph(c, tensors)), Error);
  tensors = make_tensors(c);
  GraphSpec graph = make_graph(c, tensors);
  graph.nodes[0].attributes["direction"] = std::string("sideways");
  EXPECT_THROW(import_spec(graph), Error);
  graph = make_graph(c, tensors);
  graph.nodes[0].attributes["activations"] = std::vector<std::string>{"Sigmoid", "Tanh", "Wavy"};
  EXPECT_THROW(import_spec(graph), Error);
}

}  // namespace
}  // namespace heddle::onnx
