#include <fmt/format.h>
#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <span>
#include <thread>

#include "base/file/file.h"
#include "base/log.h"
#include "cuda_plans.h"
#include "driver/api/model_impl.h"
#include "driver/compile/compile.h"
#include "driver/verify/verify.h"
#include "heddle/c_api.h"
#include "ir/text/text.h"
#include "jit/cuda/nvrtc.h"
#include "runtime/cuda/launch.h"
#include "tests/driver/constant_values.h"
#include "tests/driver/models.h"
#include "tests/frontend/model_bytes.h"
#include "tests/passes/empty_graphs.h"
#include "zoo/zoo.h"

namespace heddle {
namespace {

using test::random_floats;

class CudaModelTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!runtime::has_gpu()) GTEST_SKIP() << "there is no GPU";
    options_.target = "cuda";
  }
  std::string path(const std::string& name) const { return dir_.path() + "/" + name; }

  TempDir dir_;
  runtime::Variable cache_{"HEDDLE_CACHE_DIR", dir_.path() + "/cache"};
  // Few blocks in the grids of persistent kernels.
  runtime::Variable multiprocessors_{"HEDDLE_EMULATED_SMS", "4"};
  CompileOptions options_;
};

void expect_near(const Tensor& a, const Tensor& b, float bound) {
  ASSERT_EQ(a.shape(), b.shape());
  for (size_t i = 0; i < a.values<float>().size(); ++i) {
    ASSERT_NEAR(a.values<float>()[i], b.values<float>()[i], bound) << i;
  }
}

TEST_F(CudaModelTest, ConcurrentRunsInSeveralShapesAgreeWithTheCpu) {
  test::write_mlp(path("m.onnx"));
  const Model gpu = Model::load(path("m.onnx"), options_), cpu = Model::load(path("m.onnx"));
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t round = 0; round < 4; ++round) {
        const Tensor x = random_floats({2, 8}, 10 * t + round);
        expect_near(gpu.run({{"x", x}})[0], cpu.run({{"x", x}})[0], 1e-5f);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

// By threads of a warp, of a block, and down columns; the second in several kernels of which each has the moments.
TEST_F(CudaModelTest, NormalisationsOfEqualValuesAreZero) {
  test::expect_equal_values_vanish(
      {{{4, 768}, {1}}, {{3, 4099}, {1}}, {{600, 12}, {0}}, {{40, 70}, {1}}, {{4, 1000}, {1}, "f16"}}, options_);
}

// Many updates of few rows, in the memory of the input: indices count from the end, too, and those out of range are
// clamped. Updates that are not marked `unordered` give the same bits in every run.
TEST_F(CudaModelTest, ManyUpdatesAreAddedInPlace) {
  std::vector<int64_t> at(9000);
  std::mt19937 draw(1);
  for (int64_t& index : at) index = std::uniform_int_distribution<int64_t>(-50, 50)(draw);
  const std::map<std::string, Tensor> updates = {{"at", Tensor::of<int64_t>(DType::kI64, {9000, 1}, at)},
                                                 {"u", random_floats({9000, 5}, 2)}};
  for (const bool unordered : {false, true}) {
    write_file(path("m.hir"),
               fmt::format("graph(%x: f32[40,5], %at: i64[9000,1], %u: f32[9000,5]) {{\n%y = scatter_nd(%x, "
                           "%at, %u) {{reduction = \"add\"{}}}\nreturn \"y\" = %y }}",
                           unordered ? ", unordered = 1" : ""));
    CompileOptions shared = options_;
    shared.alias = {{"y", "x"}};
    const Model in_place = Model::load(path("m.hir"), shared), apart = Model::load(path("m.hir"), options_);
    const Model cpu = Model::load(path("m.hir"));
    Tensor x = random_floats({40, 5}, 1), wanted = random_floats({40, 5}, 1);
    for (int step = 0; step < 3; ++step) {
      auto inputs = updates;
      inputs["x"] = x;
      const Tensor other = apart.run(inputs)[0], got = in_place.run_into(inputs, {{"y", x}})[0];
      EXPECT_EQ(got.data(), x.data());
      if (!unordered) {
        EXPECT_EQ(std::memcmp(got.data(), other.data(), got.bytes()), 0);
      }
      inputs["x"] = wanted;
      wanted = cpu.run(inputs)[0];
      expect_near(got, wanted, 1e-3f);
    }
  }
}

// Runs the tests of this binary that `filter` names in another process; wait() gives its exit code.
class OtherProcess {
 public:
  explicit OtherProcess(const std::string& filter) {
    std::string name = "/proc/self/exe", filtered = "--gtest_filter=" + filter;
    char* arguments[] = {name.data(), filtered.data(), nullptr};
    if (::posix_spawn(&pid_, name.c_str(), nullptr, nullptr, arguments, environ) != 0) pid_ = -1;
  }
  int wait() const {
    int status = -1;
    if (pid_ < 0 || ::waitpid(pid_, &status, 0) != pid_ || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
  }

 private:
  pid_t pid_ = -1;
};

// A plan that leaves takes its code and memory on the GPU along, and its shape gets another one.
TEST_F(CudaModelTest, PlansThatWereNotUsedForLongestGo) {
  test::write_open_rows(path("m.onnx"));
  options_.shapes["x"] = {2, 8};
  options_.max_plans = 2;
  const Model gpu = Model::load(path("m.onnx"), options_), cpu = Model::load(path("m.onnx"));
  const auto run = [&](int64_t rows) {
    const std::map<std::string, Tensor> inputs{{"x", random_floats({rows, 8}, static_cast<uint32_t>(rows))}};
    expect_near(gpu.run(inputs)[0], cpu.run(inputs)[0], 1e-5F);
    std::vector<int64_t> kept;
    for (const auto& variant : gpu.impl().variants()) kept.push_back(variant->plan->inputs[0].shape[0]);
    return kept;
  };
  run(3);
  EXPECT_EQ(run(5), (std::vector<int64_t>{5, 3}));
  const std::weak_ptr<const runtime::Plan> five = gpu.impl().variants()[0]->plan;
  EXPECT_EQ(run(3), (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(run(7), (std::vector<int64_t>{7, 3}));
  EXPECT_TRUE(five.expired());
  EXPECT_EQ(run(5), (std::vector<int64_t>{5, 7}));
}

// Elementwise kernels and products are told how many rows there are.
TEST_F(CudaModelTest, AnotherBatchKeepsTheKernelsThatThereAre) {
  onnx::GraphSpec graph;
  graph.nodes = {
      {"Exp", {"x"}, {"e"}}, {"MatMul", {"e", "w"}, {"z"}}, {"Softmax", {"z"}, {"y"}, {{"axis", int64_t{-1}}}}};
  graph.inputs = {{"x", DType::kF32, {-1, 40}}};
  graph.outputs = {"y"};
  graph.initializers = {{"w", random_floats({40, 24}, 1)}};
  write_file(path("m.onnx"), onnx::model_bytes(graph, 17));
  options_.shapes["x"] = {50, 40};
  const Model gpu = Model::load(path("m.onnx"), options_), cpu = Model::load(path("m.onnx"));
  for (const int64_t rows : {51, 53}) {
    const std::map<std::string, Tensor> inputs{{"x", random_floats({rows, 40}, static_cast<uint32_t>(rows))}};
    std::vector<std::string> told;
    set_log_sink([&](LogLevel, std::string_view text) { told.emplace_back(text); });
    const Tensor got = gpu.run(inputs)[0];
    set_log_sink({});
    EXPECT_THAT(told, testing::Contains(testing::HasSubstr("3 of 3 kernels are there"))) << rows;
    expect_near(got, cpu.run(inputs)[0], 1e-5F);
  }
}

// A product whose pick is another tile for few rows than for many. Its kernel for many rows runs at once, from several
// threads, while that for few is compiled; the plan that has it takes over once.
TEST_F(CudaModelTest, AnotherBatchRunsAtOnceAndGetsItsBestKernelsLater) {
  onnx::GraphSpec graph;
  graph.nodes = {{"MatMul", {"x", "w"}, {"z"}}, {"Relu", {"z"}, {"y"}}};
  graph.inputs = {{"x", DType::kF32, {-1, 64}}};
  graph.outputs = {"y"};
  graph.initializers = {{"w", random_floats({64, 256}, 1)}};
  write_file(path("m.onnx"), onnx::model_bytes(graph, 17));
  options_.shapes["x"] = {1200, 64};
  const Model gpu = Model::load(path("m.onnx"), options_), cpu = Model::load(path("m.onnx"));
  const std::map<std::string, Tensor> inputs{{"x", random_floats({96, 64}, 2)}};
  const Tensor expected = cpu.run(inputs)[0];
  std::mutex told_mutex;
  std::vector<std::string> told;
  set_log_sink([&](LogLevel, std::string_view text) {
    const std::lock_guard lock(told_mutex);
    told.emplace_back(text);
  });
  expect_near(gpu.run(inputs)[0], expected, 1e-3F);
  std::weak_ptr<const ModelVariant> first = gpu.impl().variants().at(0);
  std::atomic<bool> ends = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      do {
        expect_near(gpu.run(inputs)[0], expected, 1e-3F);
      } while (!ends);
    });
  }
  gpu.impl().wait_for_background();
  ends = true;
  for (auto& thread : threads) thread.join();
  set_log_sink({});
  expect_near(gpu.run(inputs)[0], expected, 1e-3F);
  EXPECT_THAT(told, testing::ElementsAre(testing::HasSubstr("1 of 1 kernels are there"),
                                         testing::HasSubstr("0 of 1 kernels are there")));
  ASSERT_EQ(gpu.impl().variants().size(), 1u);
  EXPECT_TRUE(first.expired());

  options_.background = false;
  const Model waits = Model::load(path("m.onnx"), options_);
  expect_near(waits.run(inputs)[0], expected, 1e-3F);
  first = waits.impl().variants().at(0);
  waits.impl().wait_for_background();
  EXPECT_EQ(waits.impl().variants().at(0), first.lock());
}

// A model that leaves while something is compiled in its background waits for that kernel and nothing else.
TEST_F(CudaModelTest, AModelMayLeaveWhileItsBackgroundCompiles) {
  onnx::GraphSpec graph;
  graph.nodes = {{"MatMul", {"x", "w"}, {"y"}}};
  graph.inputs = {{"x", DType::kF32, {-1, 64}}};
  graph.outputs = {"y"};
  graph.initializers = {{"w", random_floats({64, 256}, 1)}};
  write_file(path("m.onnx"), onnx::model_bytes(graph, 17));
  options_.shapes["x"] = {1200, 64};
  const Model gpu = Model::load(path("m.onnx"), options_);
  for (const int64_t rows : {96, 50}) gpu.run({{"x", random_floats({rows, 64}, 2)}});
}

// Recurrent layers, whose kernels may need all their blocks at once, from two threads beside another process: every run
// ends, and gives what a run by itself gave.
TEST_F(CudaModelTest, TwoModelsAtOnceWhileAnotherProcessRuns) {
  const int rounds = runtime::is_emulated() ? 2 : 200;
  zoo::Options options;
  options.seq = 5;
  zoo::write("dien", options, path("dien.onnx"));
  const OtherProcess other("CudaModelTest.ConcurrentRunsInSeveralShapesAgreeWithTheCpu:CudaExecutorTest.Concurrent*");
  const Model one = Model::load(path("dien.onnx"), options_), two = Model::load(path("dien.onnx"), options_);
  std::map<std::string, Tensor> inputs;
  for (const auto& port : one.inputs()) {
    Tensor x(port.dtype, port.shape);
    if (port.dtype == DType::kF32) x = random_floats(port.shape, 7);
    inputs[port.name] = x;  // indices of zero
  }
  const std::vector<Tensor> expected = one.run(inputs);
  std::vector<std::thread> threads;
  for (const Model* model : {&one, &two, &one}) {
    threads.emplace_back([&, model] {
      for (int round = 0; round < rounds; ++round) {
        const std::vector<Tensor> outputs = model->run(inputs);
        for (size_t i = 0; i < outputs.size(); ++i) {
          ASSERT_EQ(std::memcmp(outputs[i].data(), expected[i].data(), expected[i].bytes()), 0) << i;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(other.wait(), 0);
}

class WholeGridTest : public CudaModelTest {
  runtime::Variable multiprocessors_{"HEDDLE_EMULATED_SMS", "24"};  // more than the clusters of the columns keep busy
};

// Statistics that all blocks of the device wait for, in two models at once, while a third stream keeps SMs
// busy with blocks that leave no shared memory: every barrier ends, and every run gives what the first one gave.
TEST_F(WholeGridTest, BarriersBesideOtherWork) {
  const bool emulated = runtime::is_emulated();
  const int64_t rows = emulated ? 20000 : 100000;
  const int rounds = emulated ? 2 : 100;
  write_file(path("g.hir"), fmt::format(R"(graph g(%x: f32[{0},16]) {{
    %n = constant {{value = f32[]{{{0}}}}}
    %s = reduce(%x) {{kind = "sum", dims = [0]}}
    %m = broadcast(%n) {{shape = [16], dims = []}}
    %a = div(%s, %m)
    %b = broadcast(%a) {{shape = [{0},16], dims = [1]}}
    %y = sub(%x, %b)
    return "y" = %y
  }})",
                                        rows));
  const driver::CompiledModel compiled = driver::compile_model(path("g.hir"), options_);
  int across = 0;
  for (const runtime::Step& step : compiled.plan->steps) {
    const auto* kernels = std::get_if<runtime::CudaStep>(&step.action);
    if (kernels == nullptr) continue;
    across += static_cast<int>(std::count_if(kernels->launches.begin(), kernels->launches.end(),
                                             [](const CudaLaunch& launch) { return launch.cooperative; }));
  }
  EXPECT_GE(across, 1) << "no kernel takes the whole grid";

  const auto context = runtime::CudaContext::of_device(0);
  const CudaTarget& target = context->device().target;
  const std::string text =
      "extern \"C\" __global__ void __launch_bounds__(128) busy(float* y) {\n"
      "  float x = threadIdx.x;\n"
      "  for (int i = 0; i < " +
      std::string(emulated ? "10" : "200000") +
      "; ++i) x = x * 0.5f + 1;\n"
      "  y[threadIdx.x] = x;\n"
      "}\n";
  const runtime::CudaModule module(*context, jit::compile_cubin(text, target.architecture(), true).bytes);
  CudaLaunch launch = runtime::launch_of("busy", 1, 128);
  launch.grid[0] = static_cast<uint32_t>(std::max(target.sms / 2, 1));
  launch.shared_bytes = static_cast<uint32_t>(target.shared_bytes_per_block);
  const runtime::CudaBuffer buffer(*context, 128 * sizeof(float));
  const uint64_t operand = buffer.address();
  const runtime::CudaBoundLaunch busy(*context, module.function("busy", launch.shared_bytes, 1), launch,
                                      std::span(&operand, 1));
  const runtime::CudaStream stream(*context);

  const Model one = Model::load(path("g.hir"), options_), two = Model::load(path("g.hir"), options_);
  const Tensor x = random_floats({rows, 16}, 3);
  const Tensor expected = one.run({{"x", x}})[0];
  std::vector<std::thread> threads;
  for (const Model* model : {&one, &two, &one}) {
    threads.emplace_back([&, model] {
      for (int round = 0; round < rounds; ++round) {
        const Tensor y = model->run({{"x", x}})[0];
        ASSERT_EQ(std::memcmp(y.data(), expected.data(), expected.bytes()), 0);
      }
    });
  }
  threads.emplace_back([&] {
    context->make_current();
    for (int round = 0; round < 2 * rounds; ++round) busy.enqueue(*context, stream.handle());
    stream.synchronize();
  });
  for (auto& thread : threads) thread.join();
}

// Kernels begin before those in front of them have ended, and give what they give one after another.
TEST_F(CudaModelTest, KernelsThatBeginEarlyGiveTheSame) {
  constexpr int64_t kRows = 33, kWidth = 128;
  zoo::GraphBuilder g("residual", 17);
  zoo::Value x = g.input("x", DType::kF32, {kRows, kWidth});
  for (const std::string layer : {"a", "b", "c"}) {
    const zoo::Value hidden = g.relu(zoo::linear(g, layer + ".up", x, 320));
    x = zoo::layer_norm(g, layer + ".norm", g.add(x, zoo::linear(g, layer + ".down", hidden, kWidth)));
  }
  g.output(x, "y");
  zoo::write_model(g.finish(), 1, int64_t{1} << 30, path("m.onnx"));
  options_.precision = "f16";
  const Model early = Model::load(path("m.onnx"), options_);
  const runtime::Variable off("HEDDLE_CUDA_OVERLAP", "0");
  const Model plain = Model::load(path("m.onnx"), options_);
  for (uint32_t round = 0; round < (runtime::is_emulated() ? 4 : 100); ++round) {
    const Tensor input = random_floats({kRows, kWidth}, round);
    expect_near(early.run({{"x", input}})[0], plain.run({{"x", input}})[0], 0);
  }
}

TEST_F(CudaModelTest, PlansAreSavedAndTakenFromTheCache) {
  test::write_mlp(path("m.onnx"));
  const Model first = Model::load(path("m.onnx"), options_);
  EXPECT_FALSE(first.impl().primary().from_cache.plan);
  const Model second = Model::load(path("m.onnx"), options_);
  EXPECT_TRUE(second.impl().primary().from_cache.plan);
  EXPECT_FALSE(Model::load(path("m.onnx")).impl().primary().from_cache.plan) << "the CPU's plan is another";
  first.save(path("m.plan"));
  const Model loaded = Model::load(path("m.plan"));
  const Tensor x = random_floats({2, 8}, 3);
  for (const Model& model : {second, loaded}) expect_near(model.run({{"x", x}})[0], first.run({{"x", x}})[0], 0);
}

// A loop that ends when its data says so, a counted one in it, a branch on what they made.
constexpr const char* kControl = R"(graph control(%x: f32[5,7], %limit: f32[]) {
  %many = constant {value = i64[]{9}}
  %true = constant {value = bool[]{1}}
  %s, %all = loop(%many, %true, %x, %limit) {states = 1, scans = 1, trip = 9, body = graph(%i: i64[], %c: bool[], %a: f32[5,7], %limit: f32[]) {
    %three = constant {value = i64[]{3}}
    %inner, %slices = loop(%three, %c, %a) {states = 1, scans = 1, trip = 3, body = graph(%j: i64[], %d: bool[], %b: f32[5,7]) {
      %sine = sin(%b)
      %next = add(%b, %sine)
      return "d" = %d, "b" = %next, "slice" = %sine
    }}
    %sum = reduce(%slices) {kind = "sum", dims = [0, 1, 2]}
    %again = lt(%sum, %limit)
    return "c" = %again, "a" = %inner, "slice" = %sum
  }}
  %first = reduce(%s) {kind = "sum", dims = [0, 1]}
  %go = lt(%first, %limit)
  %y = if(%go, %s) {then = graph(%p: f32[5,7]) {
    %q = exp(%p)
    return "y" = %q
  }, else = graph(%p: f32[5,7]) {
    return "y" = %p
  }}
  return "y" = %y, "all" = %all
})";

TEST_F(CudaModelTest, LoopsAndBranchesAgreeWithTheReference) {
  write_file(path("c.hir"), kControl);
  for (const float limit : {-1000.0f, 8.0f, 1000.0f}) {
    const Tensor bound = Tensor::of<float>(DType::kF32, {}, {limit});
    const driver::VerifyReport report = driver::verify(path("c.hir"), options_, {{"limit", bound}}, 5);
    EXPECT_TRUE(report.ok) << limit;
  }
}

TEST_F(CudaModelTest, ExtentsOfZeroAgreeWithTheReference) {
  write_file(path("empty.hir"), ir::print(passes::empty_graphs_in_one()));
  EXPECT_TRUE(driver::verify(path("empty.hir"), options_, {}, 1).ok);
}

// Two filter gradients, one of them depthwise, of a convolution's result inside a concatenation.
TEST_F(CudaModelTest, FilterGradientsOfAPartOfAConcatenation) {
  write_file(path("g.hir"), R"(graph g(%p: bf16[2,6,7,64], %q: bf16[2,6,7,32], %d: bf16[2,6,7,24], %e: bf16[2,6,7,64]) {
  %w = constant {value = bf16[64,64,1,1]{0.125}}
  %v = constant {value = bf16[32,32,1,1]{0.125}}
  %a = conv(%p, %w) {strides = [1,1], low = [0,0], high = [0,0], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc"} : bf16[2,6,7,64]
  %b = conv(%q, %v) {strides = [1,1], low = [0,0], high = [0,0], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc"} : bf16[2,6,7,32]
  %c = concat(%b, %a) {dim = 3} : bf16[2,6,7,96]
  %i = transpose(%a) {perm = [3,1,2,0]} : bf16[64,6,7,2]
  %f = transpose(%d) {perm = [3,1,2,0]} : bf16[24,6,7,2]
  %y = conv(%i, %f) {strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc", filters = "ohwi"} : bf16[64,3,3,24]
  %1 = transpose(%a) {perm = [1,2,3,0]} : bf16[6,7,64,2]
  %2 = reshape(%1) {shape = [1,6,7,128]} : bf16[1,6,7,128]
  %3 = transpose(%e) {perm = [3,1,2,0]} : bf16[64,6,7,2]
  %z = conv(%2, %3) {strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 64, layout = "nhwc", filters = "ohwi"} : bf16[1,3,3,64]
  return "c" = %c, "y" = %y, "z" = %z
})");
  const driver::CompiledModel compiled = driver::compile_model(path("g.hir"), options_, false);
  int gradients = 0;
  for (const auto& group : compiled.report.groups) {
    for (const auto& kernel : group.kernels) gradients += kernel.label.starts_with("filter gradient");
  }
  EXPECT_EQ(gradients, 2);
  EXPECT_TRUE(driver::verify(path("g.hir"), options_, {}, 1).ok);
}

// Kernels that differ in offsets and factors each share a text that is told its numbers.
TEST_F(CudaModelTest, ManyKernelsThatDifferInNumbers) {
  constexpr int kParts = 2'500, kExtent = 8;
  std::string text = fmt::format("graph(%x: f32[{}]) {{\n", kParts * kExtent), outputs;
  for (int i = 0; i < kParts; ++i) {
    text += fmt::format(
        "  %c{0} = constant {{value = f32[]{{{0}.5}}}}\n  %b{0} = broadcast(%c{0}) {{shape = [{1}], dims = []}}\n"
        "  %s{0} = slice(%x) {{starts = [{2}], limits = [{3}], strides = [1]}}\n  %y{0} = mul(%s{0}, %b{0})\n",
        i, kExtent, i * kExtent, (i + 1) * kExtent);
    outputs += fmt::format("{0}\"y{1}\" = %y{1}", i > 0 ? ", " : "", i);
  }
  write_file(path("m.hir"), text + "  return " + outputs + "\n}");
  const driver::CompiledModel compiled = driver::compile_model(path("m.hir"), options_, false);
  EXPECT_LE(compiled.report.distinct_kernels, 8u);
  const Tensor x = random_floats({kParts * kExtent}, 1);
  const std::vector<Tensor> parts = Model::load(path("m.hir"), options_).run({{"x", x}});
  for (size_t i = 0; i < parts.size(); ++i) {
    for (size_t k = 0; k < kExtent; ++k) {
      ASSERT_EQ(parts[i].values<float>()[k], x.values<float>()[i * kExtent + k] * (static_cast<float>(i) + 0.5f)) << i;
    }
  }
}

TEST_F(CudaModelTest, CInterface) {
  test::write_mlp(path("m.onnx"));
  heddle_error* error = nullptr;
  heddle_options* options = heddle_options_new();
  ASSERT_TRUE(heddle_options_set(options, "target", "cuda:0", &error));
  heddle_model* model = heddle_model_load(path("m.onnx").c_str(), options, &error);
  ASSERT_NE(model, nullptr) << heddle_error_message(error);
  heddle_model_free(model);
  ASSERT_TRUE(heddle_options_set(options, "target", "cuda:99", &error));
  EXPECT_EQ(heddle_model_load(path("m.onnx").c_str(), options, &error), nullptr);
  EXPECT_EQ(heddle_error_code(error), 406);
  heddle_error_free(error);
  heddle_options_free(options);
}

}  // namespace
}  // namespace heddle
