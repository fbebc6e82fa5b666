#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "base/file/file.h"
#include "cuda_plans.h"
#include "driver/compile/compile.h"
#include "driver/verify/verify.h"
#include "zoo/graph_builder.h"
#include "zoo/zoo.h"

namespace heddle {
namespace {

using zoo::GraphBuilder;
using zoo::Value;

struct Cell {
  std::string op;  // LSTM, GRU, RNN, or "augru"
  int64_t hidden, batch, steps;
  std::string direction = "forward";
  std::string precision = "f32";
  bool reset_after = false, lengths = false, peepholes = false;
};

std::string name_of(const Cell& c) {
  return fmt::format("{}_h{}_b{}_t{}_{}_{}{}{}{}", c.op, c.hidden, c.batch, c.steps, c.direction, c.precision,
                     c.reset_after ? "_after" : "", c.lengths ? "_lengths" : "", c.peepholes ? "_peepholes" : "");
}

void PrintTo(const Cell& c, std::ostream* out) {
  *out << name_of(c);
}

class RecurrentTest : public testing::TestWithParam<Cell> {
 protected:
  void SetUp() override {
    if (!runtime::has_gpu()) GTEST_SKIP() << "there is no GPU";
    options_.target = "cuda";
    options_.precision = GetParam().precision;
  }

  // One operator with all its inputs and outputs, initial states among the inputs.
  void write_operator(const Cell& c, const std::string& path) {
    GraphBuilder g("cell", 17);
    const int64_t gates = c.op == "LSTM"  ? 4
                          : c.op == "GRU" ? 3
                                          : 1,
                  directions = c.direction == "bidirectional" ? 2 : 1;
    const int64_t inputs = 5;
    const zoo::Fill fill = zoo::Fill::uniform(-1.5 / std::sqrt(c.hidden), 1.5 / std::sqrt(c.hidden));
    const Value x = g.input("x", DType::kF32, {c.steps, c.batch, inputs});
    const Value w = g.weight("W", {directions, gates * c.hidden, inputs}, fill);
    const Value r = g.weight("R", {directions, gates * c.hidden, c.hidden}, fill);
    const Value b = g.weight("B", {directions, 2 * gates * c.hidden}, fill);
    const Value lengths = c.lengths ? g.input("lengths", DType::kI32, {c.batch}) : Value{};
    const Shape state = {directions, c.batch, c.hidden};
    std::vector<Value> in{x, w, r, b, lengths, g.input("h0", DType::kF32, state)};
    std::vector<Value> out{{"", {c.steps, directions, c.batch, c.hidden}}, {"", state}};
    if (c.op == "LSTM") {
      in.push_back(g.input("c0", DType::kF32, state));
      out.push_back({"", state});
      if (c.peepholes) in.push_back(g.weight("P", {directions, 3 * c.hidden}, fill));
    }
    std::vector<zoo::Attribute> attributes{{"direction", c.direction}, {"hidden_size", c.hidden}};
    if (c.op == "GRU") attributes.push_back({"linear_before_reset", int64_t{c.reset_after}});
    g.multi_node(c.op, in, attributes, out);
    for (size_t i = 0; i < out.size(); ++i) g.output(out[i], fmt::format("y{}", i));
    zoo::write_model(g.finish(), 7, 1 << 20, path);
  }

  TempDir dir_;
  runtime::Variable cache_{"HEDDLE_CACHE_DIR", dir_.path() + "/cache"};
  runtime::Variable multiprocessors_{"HEDDLE_EMULATED_SMS", "16"};
  CompileOptions options_;
};

TEST_P(RecurrentTest, AllStepsInOneKernelAgreeWithTheReference) {
  const Cell& c = GetParam();
  const std::string path = dir_.path() + "/cell.onnx";
  write_operator(c, path);
  std::map<std::string, Tensor> given;
  if (c.lengths) {
    Tensor lengths(DType::kI32, {c.batch});
    for (int64_t i = 0; i < c.batch; ++i) {
      lengths.mutable_values<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>((i * 5) % (c.steps + 1));
    }
    given["lengths"] = lengths;
  }
  const driver::VerifyReport report = driver::verify(path, options_, given, 11);
  for (const driver::OutputCheck& output : report.outputs) {
    EXPECT_TRUE(output.comparison.ok) << output.name;
  }
  EXPECT_TRUE(report.ok);
  const driver::CompiledModel model = driver::compile_model(path, options_);
  int64_t kernels = 0, loops = 0;
  for (const runtime::Step& step : model.plan->steps) {
    loops += std::holds_alternative<runtime::LoopStep>(step.action);
    kernels += step.label.starts_with("recurrence");
  }
  EXPECT_EQ(loops, 0);
  // With one unit the biases are scalars, which are part of the text.
  const int64_t apart = c.hidden == 1 && c.direction == "bidirectional" ? 2 : 1;
  EXPECT_EQ(kernels, apart) << "directions share a kernel";
}

INSTANTIATE_TEST_SUITE_P(
    Cells, RecurrentTest,
    testing::Values(
        Cell{"LSTM", 1, 1, 1}, Cell{"LSTM", 1, 3, 2, "reverse"}, Cell{"LSTM", 7, 3, 37, "bidirectional"},
        Cell{"LSTM", 7, 64, 2, "forward", "f16"}, Cell{"LSTM", 100, 3, 5, "bidirectional", "f16"},
        Cell{"LSTM", 100, 2, 4, "forward", "f32", false, true, true}, Cell{"LSTM", 256, 1, 6, "bidirectional", "f16"},
        Cell{"LSTM", 256, 3, 3, "reverse", "f32", false, true}, Cell{"LSTM", 320, 1, 3, "forward", "f32"},
        Cell{"GRU", 1, 2, 37, "bidirectional", "f32", true}, Cell{"GRU", 7, 64, 5, "forward", "f32", true},
        Cell{"GRU", 100, 3, 5, "reverse", "f16", true}, Cell{"GRU", 100, 1, 6, "bidirectional", "f32", false},
        Cell{"GRU", 256, 5, 4, "forward", "f16", false}, Cell{"GRU", 7, 3, 9, "forward", "bf16", false, true},
        Cell{"RNN", 33, 2, 37, "bidirectional"}, Cell{"RNN", 200, 17, 3, "forward", "f16"}),
    [](const auto& info) { return name_of(info.param); });

// What is no recurrence of rows runs as launches of every step, and says why.
class LoopTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!runtime::has_gpu()) GTEST_SKIP() << "there is no GPU";
    options_.target = "cuda";
  }
  // The note about the only loop of a graph that agrees with the reference.
  std::string note_of(const std::string& text) {
    const std::string path = dir_.path() + "/loop.hir";
    write_file(path, text);
    EXPECT_TRUE(driver::verify(path, options_, {}, 3).ok);
    const driver::CompiledModel model = driver::compile_model(path, options_);
    for (const driver::GroupReport& group : model.report.groups) {
      if (group.kind == ir::GroupKind::kControl && !group.notes.empty()) return group.notes.front();
    }
    return "";
  }

  TempDir dir_;
  runtime::Variable cache_{"HEDDLE_CACHE_DIR", dir_.path() + "/cache"};
  runtime::Variable multiprocessors_{"HEDDLE_EMULATED_SMS", "16"};
  CompileOptions options_;
};

constexpr const char* kLoop = R"(graph g(%x: f32[3,5], %all: f32[9,3,5]) {{
  %many = constant {{value = i64[]{{9}}}}
  %true = constant {{value = bool[]{{1}}}}
  %s, %y = loop(%many, %true, %x, %all) {{states = 1, scans = 1, trip = 9, body = graph(%i: i64[], %c: bool[], %a: f32[3,5], %all: f32[9,3,5]) {{
    %one = gather(%all, %i) {{dim = 0}}
{}
    return "c" = %c, "a" = %next, "y" = %next
  }}}}
  return "s" = %s, "y" = %y
}})";

TEST_F(LoopTest, ElementwiseRecurrence) {
  EXPECT_THAT(note_of(fmt::format(kLoop, "    %t = tanh(%a)\n    %next = add(%t, %one)")),
              testing::HasSubstr("recurrence"));
}

TEST_F(LoopTest, AcrossRows) {
  EXPECT_THAT(note_of(fmt::format(kLoop, "    %t = reverse(%a) {dims = [0]}\n    %next = add(%t, %one)")),
              testing::HasSubstr("reads a state at other places"));
}

TEST_F(LoopTest, ReductionOfAState) {
  EXPECT_THAT(note_of(fmt::format(kLoop,
                                  "    %t = reduce(%a) {kind = \"sum\", dims = [1]}\n    %b = broadcast(%t) {shape = "
                                  "[3, 5], dims = [0]}\n    %next = add(%b, %one)")),
              testing::HasSubstr("per-element form"));
}

// Two products one behind the other, the first of the state and the second of what the first made; the state goes
// through a wider layer and back.
TEST_F(LoopTest, ProductsInSeveralPhases) {
  const std::string w =
      "{value = f32[5,8]{0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, 0.8, 0.2, 0.1, -0.3, 0.2, 0.4, -0.1, 0.3, "
      "0.5, -0.4, 0.2, 0.1, 0.6, 0.3, -0.2, 0.5, 0.1, 0.3, 0.3, -0.1, 0.2, 0.6, 0.4, -0.3, 0.2, 0.1, "
      "0.5, 0.2, -0.6, 0.3, 0.2, 0.4, 0.1}}";
  const std::string body = "    %w = constant " + w +
                           "\n    %p = dot(%a, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = "
                           "[0]}\n    %q = tanh(%p)\n    %r = dot(%q, %w) {lhs_batch = [], rhs_batch = [], "
                           "lhs_contract = [1], rhs_contract = "
                           "[1]}\n    %next = add(%r, %one)";
  EXPECT_THAT(note_of(fmt::format(kLoop, body)), testing::HasSubstr("recurrence"));
}

// The GRU of a history, then one whose update gate an attention scales: an ONNX Scan.
TEST_F(LoopTest, RecurrencesOfAModel) {
  const std::string path = dir_.path() + "/dien.onnx";
  zoo::Options sizes;
  sizes.batch = 5, sizes.seq = 7;
  zoo::write("dien", sizes, path);
  EXPECT_TRUE(driver::verify(path, options_, {}, 5).ok);
  const driver::CompiledModel model = driver::compile_model(path, options_);
  EXPECT_EQ(std::count_if(model.plan->steps.begin(), model.plan->steps.end(),
                          [](const runtime::Step& step) { return step.label.starts_with("recurrence"); }),
            2);
}

}  // namespace
}  // namespace heddle
