#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <map>
#include <set>

#include "ir/analysis/tolerance.h"
#include "ir/reference/eval.h"
#include "ir/text/text.h"
#include "tests/fuzz/attack/isolation.h"
#include "tests/fuzz/graph_generator.h"
#include "tests/fuzz/hostile/model_mutator.h"
#include "tests/fuzz/hostile/noise.h"
#include "tests/fuzz/reducer.h"

namespace heddle::fuzz {
namespace {

std::string text(const Case& c) {
  return ir::print(c.graph, {.max_constant_elements = -1, .origins = true});
}

TEST(Generator, IsAFunctionOfTheSeed) {
  for (uint64_t seed : {1, 2, 77}) EXPECT_EQ(text(generate_case(seed, {})), text(generate_case(seed, {})));
  EXPECT_NE(text(generate_case(1, {})), text(generate_case(2, {})));
}

TEST(Generator, ReachesEveryPrimitiveThatIsCompiled) {
  std::set<ir::Op> seen;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const Case c = generate_case(seed, {});
    for (const ir::Node& node : c.graph.nodes()) seen.insert(node.op);
  }
  for (int op = 0; op <= static_cast<int>(ir::Op::kIf); ++op) {
    const auto o = static_cast<ir::Op>(op);
    if (!ir::parse_op(to_string(o))) continue;  // of the tile IR alone
    EXPECT_TRUE(seen.contains(o)) << to_string(o);
  }
}

TEST(Generator, KeepsToTheChosenPrimitives) {
  const std::set<ir::Op> plumbing = {ir::Op::kParameter, ir::Op::kConstant, ir::Op::kBroadcast, ir::Op::kReshape};
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    GeneratorOptions options;
    options.ops = {ir::Op::kAdd, ir::Op::kTanh, ir::Op::kTranspose};
    const Case c = generate_case(seed, options);
    for (const ir::Node& node : c.graph.nodes()) {
      EXPECT_TRUE(options.ops.contains(node.op) || plumbing.contains(node.op)) << to_string(node.op);
    }
  }
}

// Seed 502938 has f64[0,129,4096,4096], which is empty, and the maxima over its first dimension, which are 17 GB.
TEST(Generator, LimitsEveryValueAndTheGraph) {
  GeneratorOptions options;
  options.memory_bound = true;
  options.max_elements = 30000;
  for (uint64_t seed = 502930; seed <= 502970; ++seed) {
    const Case c = generate_case(seed, options);
    int64_t sum = 0;
    for (ir::ValueId v = 0; v < c.graph.value_count(); ++v) {
      const int64_t size = element_count(c.graph.shape(v));
      EXPECT_LE(size, 100 * options.max_elements) << "seed " << seed;
      sum += size;
    }
    EXPECT_LE(sum, 500 * options.max_elements) << "seed " << seed;
  }
}

// The bounds must be tight enough to see a wrong element: one part in a thousand of the largest one of an output.
TEST(Reference, SmallErrorsOfF32AreSeen) {
  int outputs = 0, seen = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const Case c = generate_case(seed, {});
    const Reference reference = make_reference(c, 5, 1);
    for (size_t o = 0; o < reference.outputs.size(); ++o) {
      ir::Array wrong = reference.outputs[o];
      if (wrong.dtype != DType::kF32 || wrong.size() == 0) continue;
      const auto largest = std::max_element(wrong.f().begin(), wrong.f().end(),
                                            [](double a, double b) { return std::fabs(a) < std::fabs(b); });
      if (*largest == 0) continue;
      *largest *= 1.001;
      ++outputs;
      seen += !ir::compare(reference.outputs[o], wrong, reference.bounds[o], reference.slack[o]).ok;
    }
  }
  EXPECT_GT(outputs, 200);
  EXPECT_GT(seen, outputs * 85 / 100) << outputs;
}

TEST(Reference, RoundedEvaluationIsWithinTheBounds) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Case c = generate_case(seed, {});
    const Reference reference = make_reference(c, 5, 1);
    const auto rounded = ir::evaluate(c.graph, c.inputs, {.round = true, .observe = {}});
    for (size_t o = 0; o < rounded.size(); ++o) {
      EXPECT_TRUE(ir::compare(reference.outputs[o], rounded[o], reference.bounds[o], reference.slack[o]).ok)
          << "seed " << seed;
    }
  }
}

TEST(Reference, TheSignOfAComputedZeroIsLeftOpen) {
  Case c{ir::parse(R"(graph(%x: f32[2], %y: f32[2]) {
    %0 = reduce(%x) {dims = [], kind = "sum"} : f32[2]
    %1 = atan2(%y, %0) : f32[2]
    return "z" = %1
  })"),
         {ir::Array(DType::kF32, {2}), ir::Array(DType::kF32, {2})}};
  c.inputs[0].f() = {-0.0, -1.0};
  c.inputs[1].f() = {-0.0, -1.0};
  const Reference reference = make_reference(c, 60, 1);
  EXPECT_TRUE(std::isinf(reference.slack[0][0]));
  EXPECT_LT(reference.slack[0][1], 1e-4);
}

TEST(Reference, OfZerosOfDifferentSignEitherIsTheMaximum) {
  Case c{ir::parse(R"(graph(%x: f32[3], %y: f32[3], %z: f32[3]) {
    %0 = max(%x, %y) : f32[3]
    %1 = atan2(%0, %z) : f32[3]
    return "w" = %1
  })"),
         {ir::Array(DType::kF32, {3}), ir::Array(DType::kF32, {3}), ir::Array(DType::kF32, {3})}};
  c.inputs[0].f() = {0.0, -0.0, 1.0};
  c.inputs[1].f() = {-0.0, -0.0, 0.0};
  c.inputs[2].f() = {-1.0, -1.0, -1.0};
  const Reference reference = make_reference(c, 60, 1);
  EXPECT_TRUE(std::isinf(reference.slack[0][0]));
  EXPECT_LT(reference.slack[0][1], 1e-4);
  EXPECT_LT(reference.slack[0][2], 1e-4);
}

// 2.9559021 holds this difference some 30,000 times: what is left may be zero.
TEST(Reference, ARemainderByADifferenceMayBeZero) {
  Case c{ir::parse(R"(graph(%x: f32[2], %y: f32[2], %z: f32[2]) {
    %0 = tanh(%x) : f32[2]
    %1 = tan(%0) : f32[2]
    %2 = sub(%x, %1) : f32[2]
    %3 = mod(%y, %2) : f32[2]
    %4 = rem(%z, %3) : f32[2]
    return "w" = %4
  })"),
         {ir::Array(DType::kF32, {2}), ir::Array(DType::kF32, {2}), ir::Array(DType::kF32, {2})}};
  c.inputs[0].f() = {0.271706015, 1000};
  c.inputs[1].f() = {2.9559021, 500};
  c.inputs[2].f() = {0.766669631, 100};
  const Reference reference = make_reference(c, 60, 1);
  EXPECT_TRUE(std::isinf(reference.slack[0][0]));
  EXPECT_LT(reference.slack[0][1], 1e-2);
}

// A planted defect: tanh of what a reduction made, where an output needs it.
bool has_defect(const Case& c) {
  std::vector<bool> needed(c.graph.value_count(), false);
  for (const ir::Graph::Port& port : c.graph.outputs()) needed[port.value] = true;
  for (size_t n = c.graph.nodes().size(); n-- > 0;) {
    const ir::Node& node = c.graph.nodes()[n];
    if (std::none_of(node.outputs.begin(), node.outputs.end(), [&](ir::ValueId v) { return needed[v]; })) continue;
    for (ir::ValueId v : node.inputs) needed[v] = true;
    if (node.op == ir::Op::kTanh && c.graph.producer(node.inputs[0]).op == ir::Op::kReduce) return true;
  }
  return false;
}

TEST(Reducer, FindsTheSmallestGraph) {
  int found = 0;
  for (uint64_t seed = 1; seed < 5000 && found < 3; ++seed) {
    Case c = generate_case(seed, {});
    if (c.graph.nodes().size() < 20 || !has_defect(c)) continue;
    ++found;
    const Case small = reduce_case(std::move(c), has_defect, 5000);
    EXPECT_TRUE(has_defect(small));
    EXPECT_LE(small.graph.nodes().size(), 4u) << text(small);
    EXPECT_EQ(ir::evaluate(small.graph, small.inputs).size(), 1u);
  }
  EXPECT_EQ(found, 3);
}

TEST(Isolation, ReportsCrashesHangsAndLines) {
  std::vector<std::string> lines;
  const auto collect = [&](const std::string& line) { lines.push_back(line); };
  EXPECT_EQ(run_isolated(
                [](const auto& send) {
                  send("one");
                  send("two\nlines");
                },
                collect, 10),
            "");
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two\tlines"}));
  EXPECT_EQ(run_isolated([](const auto&) { raise(SIGKILL); }, collect, 10).substr(0, 15), "crash: signal 9");
  EXPECT_EQ(run_isolated([](const auto&) { _exit(7); }, collect, 10), "crash: exit code 7");
  EXPECT_EQ(run_isolated([](const auto&) { sleep(30); }, collect, 1), "hang: nothing for 1 s");
}

TEST(Mutator, IsSeededAndMostlyChangesSomething) {
  std::string model;
  for (int i = 0; i < 40; ++i) model += std::string("\x0a\x05hello\x10\x07", 9);
  int changed = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng a(seed), b(seed);
    const std::string first = mutate(model, model, a);
    EXPECT_EQ(first, mutate(model, model, b));
    changed += first != model;
    EXPECT_LT(first.size(), 4 * model.size());
  }
  EXPECT_GT(changed, 150);
}

}  // namespace
}  // namespace heddle::fuzz
