// Consecutive kernels as one launch, against the float64 reference, whatever the order in which blocks run.
#include "schedule/sequence/sequence.h"

#include <gtest/gtest.h>

#include <random>

#include "cuda_plans.h"
#include "driver/plan/plan_builder.h"
#include "driver/target/backend.h"
#include "ir/analysis/tolerance.h"
#include "ir/builder.h"
#include "ir/reference/eval.h"
#include "passes/pass.h"
#include "runtime/cuda/executor.h"

namespace heddle::driver {
namespace {

using ir::Builder;
using ir::Graph;
using ir::Ints;
using ir::Op;
using ir::ValueId;
using runtime::Variable;

constexpr int64_t kDepth = 64;  // of a head

// The first device with few SMs, a known wait, and boundaries that take so long that all runs of phases are joined.
Target joining_device(int sms) {
  Target target = Target::cuda_device(0, 1);
  target.cuda.sms = sms;
  target.cuda.model.chip.graph_boundary_us = 1000;
  target.cuda.model.chip.grid_wait_us = 1;
  return target;
}

Tensor random_tensor(const ir::TensorType& type, double scale, std::mt19937& random) {
  std::normal_distribution<double> number(0, scale);
  ir::Array values(type.dtype, type.shape);
  for (double& v : std::get<std::vector<double>>(values.data)) v = number(random);
  return ir::to_tensor(values);
}

// Random steps of a decoder in f16: norms, products with weights that lie along k, caches of which one row is replaced,
// attentions to them, and branches that do not depend on each other.
class StepWriter {
 public:
  StepWriter(int seed, int64_t rows) : random_(static_cast<unsigned>(seed)), b_(graph_), rows_(rows) {}

  Graph run() {
    heads_ = int64_t{1} << pick(0, 2);
    ValueId x = graph_.parameter("x", {DType::kF16, {rows_, width()}});
    for (int i = pick(2, 4); i > 0; --i) {
      const int choice = pick(0, 2);
      ValueId change = choice == 0 ? attention(normalised(x)) : product(normalised(x), width());
      if (choice == 2) change = product(b_.unary(Op::kTanh, product(normalised(x), 8 * pick(5, 20))), width());
      if (pick(0, 1) == 0) output(b_.mul(b_.unary(Op::kTanh, x), x));
      x = b_.add(x, change);
    }
    output(normalised(x));
    return std::move(graph_);
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  int64_t width() const { return heads_ * kDepth; }
  void output(ValueId v) { graph_.output("y" + std::to_string(graph_.outputs().size()), v); }

  ValueId product(ValueId x, int64_t columns) {
    const int64_t k = b_.shape(x)[1];
    const ValueId weights = b_.constant(random_tensor({DType::kF16, {columns, k}}, 1 / std::sqrt(k), random_));
    return b_.emit(
        Op::kDot, {x, weights},
        {{"lhs_batch", Ints{}}, {"rhs_batch", Ints{}}, {"lhs_contract", Ints{1}}, {"rhs_contract", Ints{1}}});
  }
  ValueId normalised(ValueId x) {
    const ValueId wide = b_.cast(x, DType::kF32);
    const ValueId mean = b_.mean(b_.mul(wide, wide), {1}, true);
    const ValueId factor = b_.unary(Op::kRsqrt, b_.binary(Op::kAdd, mean, 0.1));
    return b_.cast(b_.mul(wide, b_.broadcast_to(factor, b_.shape(wide))), DType::kF16);
  }
  // A cache [heads, keys, depth] with the first row of x in one of its rows.
  ValueId cache(ValueId x, int64_t keys) {
    const Shape shape = {heads_, keys, kDepth};
    const ValueId past = graph_.parameter("past" + std::to_string(graph_.inputs().size()), {DType::kF16, shape});
    const ValueId row = b_.reshape(b_.slice_dim(x, 0, 0, 1), {heads_, 1, kDepth});
    const ValueId here = b_.binary(Op::kEq, b_.iota(DType::kI64, shape, 1), static_cast<double>(pick(0, 30)));
    const ValueId present = b_.select(here, b_.broadcast_to(row, shape), past);
    output(present);
    return present;
  }
  ValueId attention(ValueId x) {
    const int64_t keys = pick(0, 1) == 0 ? 96 : 37 + pick(0, 200);
    const ValueId k = cache(product(x, width()), keys), v = cache(product(x, width()), keys);
    const ValueId q = b_.transpose(b_.reshape(product(x, width()), {rows_, heads_, kDepth}), {1, 0, 2});
    const auto dot = [&](ValueId a, ValueId b, int64_t rhs) {
      return b_.emit(
          Op::kDot, {a, b},
          {{"lhs_batch", Ints{0}}, {"rhs_batch", Ints{0}}, {"lhs_contract", Ints{2}}, {"rhs_contract", Ints{rhs}}});
    };
    const ValueId scores = b_.binary(Op::kMul, b_.cast(dot(q, k, 2), DType::kF32), 0.125);
    const ValueId results = dot(b_.cast(b_.softmax(scores, {2}), DType::kF16), v, 1);
    return product(b_.reshape(b_.transpose(results, {1, 0, 2}), {rows_, width()}), width());
  }

  std::mt19937 random_;
  Graph graph_;
  Builder b_;
  const int64_t rows_;
  int64_t heads_ = 1;
};

struct Compiled {
  std::shared_ptr<runtime::Plan> plan;
  std::vector<double> bounds;  // by output
  size_t sequences = 0, launches = 0;
};

// Plans a graph; its kernels are added to `kernels`.
Compiled planned(const Graph& graph, const Target& target, bool joins, KernelSet& kernels) {
  Compiled result;
  CompileReport report;
  BuildContext context{target, passes::FusionPolicy::kStitch, kernels, report};
  context.rules.sequences = joins;
  const Graph optimised = passes::run_pipeline(graph, {target, passes::Precision::kF32});
  const std::vector<double> bounds = ir::error_bounds(optimised);
  for (const Graph::Port& port : optimised.outputs()) result.bounds.push_back(bounds[port.value]);
  result.plan = build_plan(optimised, context).plan;
  result.plan->target = target.fingerprint();
  for (const GroupReport& group : report.groups) {
    for (const KernelReport& kernel : group.kernels) {
      result.sequences += kernel.desc.get<schedule::SequenceDesc>() != nullptr ? 1 : 0;
      result.launches += kernel.launches.size();
    }
  }
  EXPECT_EQ(result.plan->steps.size(), result.launches);
  return result;
}

class SequenceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!runtime::has_gpu()) GTEST_SKIP() << "there is no GPU";
  }

  // Runs a step in several orders of blocks and compares the results with the reference.
  static void check(const Graph& graph, const Compiled& compiled, unsigned seed, int orders) {
    std::mt19937 random(seed);
    std::vector<Tensor> inputs;
    std::vector<ir::Array> arrays;
    for (const Graph::Port& port : graph.inputs()) {
      inputs.push_back(random_tensor(graph.type(port.value), 1, random));
      arrays.push_back(ir::to_array(inputs.back()));
    }
    const std::vector<ir::Array> expected = ir::evaluate(graph, arrays);
    runtime::validate(*compiled.plan);
    const runtime::CudaExecutor executor(compiled.plan, runtime::pool(), nullptr, 0);
    for (int order = 0; order < orders; ++order) {
      const Variable variable("HEDDLE_EMULATOR_SEED", std::to_string(100 * seed + static_cast<unsigned>(order)));
      const std::vector<Tensor> outputs = executor.run(inputs);
      for (size_t i = 0; i < outputs.size(); ++i) {
        const ir::Comparison comparison = ir::compare(expected[i], ir::to_array(outputs[i]), compiled.bounds[i]);
        EXPECT_TRUE(comparison.ok) << "graph " << seed << " order " << order << " output " << i << ": "
                                   << comparison.error << " > " << comparison.bound;
      }
    }
  }
};

TEST_F(SequenceTest, RandomStepsInRandomOrders) {
  const char* more = std::getenv("HEDDLE_SEQUENCE_GRAPHS");  // by hand
  const int graphs = more != nullptr ? std::atoi(more) : 6;
  std::vector<Graph> steps;
  std::vector<Compiled> compiled;
  KernelSet kernels;
  size_t sequences = 0;
  for (int i = 0; i < graphs; ++i) {
    steps.push_back(StepWriter(i, i % 3 == 2 ? 2 + i % 7 : 1).run());
    compiled.push_back(planned(steps.back(), joining_device(1 + i % 5), true, kernels));
    sequences += compiled.back().sequences;
  }
  EXPECT_GE(sequences, steps.size());
  const MachineCode code = compile_kernels(kernels, joining_device(1), 2, true);
  for (size_t i = 0; i < steps.size(); ++i) {
    compiled[i].plan->cubins = code.cubins;
    check(steps[i], compiled[i], static_cast<unsigned>(i), 4);
  }
}

TEST_F(SequenceTest, JoinsLaunchesWhereThatGains) {
  const Graph graph = StepWriter(3, 1).run();
  KernelSet kernels;
  Target target = joining_device(4);
  const Compiled together = planned(graph, target, true, kernels), apart = planned(graph, target, false, kernels);
  EXPECT_EQ(apart.sequences, 0u);
  EXPECT_GT(together.sequences, 0u);
  EXPECT_LT(2 * together.launches, apart.launches);
  target.cuda.model.chip.graph_boundary_us = 0.1;
  target.cuda.model.chip.grid_wait_us = 5;
  EXPECT_EQ(planned(graph, target, true, kernels).sequences, 0u) << "waits take longer than boundaries";
  target.cuda.model.chip.graph_boundary_us = 1000;
  target.cuda.model.chip.grid_wait_us = 0;
  EXPECT_EQ(planned(graph, target, true, kernels).sequences, 0u) << "no gain was measured on this device";
}

}  // namespace
}  // namespace heddle::driver
