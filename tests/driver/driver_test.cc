#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <thread>

#include "base/file/file.h"
#include "driver/api/model_impl.h"
#include "driver/compile/compile.h"
#include "driver/plan/reference.h"
#include "driver/report/collapse.h"
#include "driver/report/inspect.h"
#include "driver/report/svg.h"
#include "driver/verify/random_inputs.h"
#include "driver/verify/verify.h"
#include "heddle/c_api.h"
#include "heddle/model.h"
#include "jit/cache.h"
#include "models.h"
#include "profile/json.h"
#include "profile/views.h"
#include "tests/error_of.h"
#include "tests/frontend/model_bytes.h"
#include "zoo/zoo.h"

namespace heddle {
namespace {

using test::error_of;
using test::random_floats;

class Driver : public testing::Test {
 protected:
  Driver() { ::setenv("HEDDLE_CACHE_DIR", (dir_.path() + "/cache").c_str(), 1); }
  ~Driver() override { ::unsetenv("HEDDLE_CACHE_DIR"); }

  std::string path(const std::string& name) const { return dir_.path() + "/" + name; }
  std::string mlp(int64_t rows = 2) const {
    test::write_mlp(path("mlp.onnx"), rows);
    return path("mlp.onnx");
  }
  TempDir dir_;
};

CompileOptions two_threads() {
  CompileOptions options;
  options.threads = 2;
  return options;
}

std::vector<float> run_mlp(const Model& model, const Tensor& x) {
  const std::vector<Tensor> outputs = model.run({{"x", x}});
  const auto values = outputs.at(0).values<float>();
  return {values.begin(), values.end()};
}

std::vector<std::string> plans_in(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/plan", error)) paths.push_back(entry.path());
  return paths;
}

TEST_F(Driver, LoadsRunsAndTakesThePlanFromTheCache) {
  const std::string file = mlp();
  const Tensor x = random_floats({2, 8}, 1);
  const Model cold = Model::load(file, two_threads());
  EXPECT_FALSE(cold.impl().primary().from_cache.plan);
  ASSERT_EQ(cold.inputs().size(), 1u);
  EXPECT_EQ(cold.inputs()[0].name, "x");
  EXPECT_EQ(cold.inputs()[0].shape, (Shape{2, 8}));
  EXPECT_EQ(cold.outputs()[0].name, "probabilities");
  const std::vector<float> y = run_mlp(cold, x);
  EXPECT_NEAR(y[0] + y[1] + y[2] + y[3], 1, 1e-5);
  const Model cached = Model::load(file, two_threads());
  EXPECT_TRUE(cached.impl().primary().from_cache.plan);
  EXPECT_EQ(run_mlp(cached, x), y);
  CompileOptions other = two_threads();
  other.fusion = "none";
  EXPECT_FALSE(Model::load(file, other).impl().primary().from_cache.plan);
  test::write_mlp(file, 2, 99);  // other weights under the same name
  EXPECT_FALSE(Model::load(file, two_threads()).impl().primary().from_cache.plan);
}

TEST_F(Driver, AProfileOfAModelSumsToItsRun) {
  const Model model = Model::load(mlp(), two_threads());
  const profile::Profile profile = profile::parse(model.profile({{"x", random_floats({2, 8}, 1)}}, 0.02), "profile");
  const auto time = profile::time_metric(profile.tree);
  ASSERT_TRUE(time);
  EXPECT_GT(profile.tree.total(*time), 0);
  const std::vector<profile::NodeId> hot = profile::hot_path(profile.tree, *time, 0);
  EXPECT_EQ(profile.tree.frame(hot.back()).kind, "kernel");

  model.save(path("m.plan"));
  const Model plan = Model::load(path("m.plan"), two_threads());
  EXPECT_EQ(error_of([&] { (void)plan.profile(); }).code(), ErrorCode::kInvalidArgument);
}

TEST_F(Driver, VerifiesUnderEveryPolicyAndPrecision) {
  const std::string file = mlp(5);
  for (const char* fusion : {"none", "basic", "stitch"}) {
    CompileOptions options = two_threads();
    options.fusion = fusion;
    EXPECT_TRUE(driver::verify(file, options, {}, 3).ok) << fusion;
  }
  for (const char* precision : {"f16", "bf16"}) {
    CompileOptions options = two_threads();
    options.precision = precision;
    EXPECT_TRUE(driver::verify(file, options, {}, 3).ok) << precision;
  }
}

TEST_F(Driver, OutputsThatPassesFoldAreWithinTheirRounding) {
  write_file(path("m.hir"), R"(graph(%x: f32[3]) {
    %c = constant {value = f32[3]{0.1, 0.7, 2.3}}
    %e = exp(%c)
    %y = mul(%x, %e)
    return "e" = %e, "y" = %y
  })");
  const driver::VerifyReport report = driver::verify(path("m.hir"), two_threads(), {}, 3);
  EXPECT_TRUE(report.ok);
  EXPECT_GT(report.outputs[0].comparison.error, 0);  // of which there is some
}

TEST_F(Driver, NotANumberStaysWhereItIs) {
  const Model model = Model::load(mlp(), two_threads());
  Tensor x = random_floats({2, 8}, 2);
  x.mutable_values<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> y = run_mlp(model, x);
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(y[i]));
  for (size_t i = 4; i < 8; ++i) EXPECT_TRUE(std::isfinite(y[i]));
  x.mutable_values<float>()[3] = std::numeric_limits<float>::infinity();
  y = run_mlp(model, x);
  for (size_t i = 0; i < 4; ++i) EXPECT_FALSE(y[i] > 1.001f);
  for (size_t i = 4; i < 8; ++i) EXPECT_TRUE(std::isfinite(y[i]));
}

TEST_F(Driver, InputsThatDoNotFitAreNamed) {
  const Model model = Model::load(mlp(), two_threads());
  const Tensor x = random_floats({2, 8}, 1);
  const auto expect = [&](const std::map<std::string, Tensor>& inputs, const std::string& said) {
    const Error error = error_of([&] { model.run(inputs); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidInput);
    EXPECT_NE(std::string(error.what()).find(said), std::string::npos) << error.what();
  };
  expect({}, "x");
  expect({{"x", x}, {"y", x}}, "no such input");
  expect({{"x", Tensor(DType::kI64, {2, 8})}}, "i64");
  expect({{"x", Tensor()}}, "undefined");
  expect({{"x", random_floats({2, 7}, 1)}}, "x");
  expect({{"x", random_floats({16}, 1)}}, "x");
}

TEST_F(Driver, RunsIntoMemoryOfTheCaller) {
  const Model model = Model::load(mlp(), two_threads());
  const Tensor x = random_floats({2, 8}, 1);
  const PortInfo& port = model.outputs()[0];
  std::vector<float> memory(static_cast<size_t>(element_count(port.shape)), std::numeric_limits<float>::quiet_NaN());
  const auto into = [&](DType dtype, const Shape& shape) {
    return std::vector<Tensor>{Tensor::borrow(dtype, shape, memory.data(), nullptr)};
  };
  model.impl().run_in_order({x}, into(port.dtype, port.shape));
  EXPECT_EQ(memory, run_mlp(model, x));
  const auto refusal = [&](const std::vector<Tensor>& outputs) {
    return std::string(error_of([&] { model.impl().run_in_order({x}, outputs); }).what());
  };
  EXPECT_NE(refusal(into(DType::kI32, port.shape)).find("its dtype is i32"), std::string::npos);
  EXPECT_NE(refusal(into(port.dtype, {1})).find("its shape is [1]"), std::string::npos);
  EXPECT_NE(refusal({x, x}).find("2 outputs are given, the model has 1"), std::string::npos);
  EXPECT_NE(refusal({Tensor::borrow(port.dtype, port.shape, x.data(), nullptr)}).find("memory of its own"),
            std::string::npos);
}

TEST_F(Driver, ConcurrentRunsOfOneModel) {
  const Model model = Model::load(mlp(), two_threads());
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Tensor x = random_floats({2, 8}, t);
      const std::vector<float> first = run_mlp(model, x);
      for (int round = 0; round < 100; ++round) ASSERT_EQ(run_mlp(model, x), first);
    });
  }
  for (auto& thread : threads) thread.join();
}

// The compiler takes a while for rows of another length; who runs in a known shape does not wait for it.
TEST_F(Driver, RunsGoOnWhileOtherShapesAreCompiled) {
  const onnx::GraphSpec graph = {{{"Softmax", {"x"}, {"y"}}}, {{"x", DType::kF32, {-1, -1}}}, {"y"}};
  write_file(path("rows.onnx"), onnx::model_bytes(graph, 17));
  CompileOptions options = two_threads();
  options.shapes["x"] = {2, 8};
  const Model model = Model::load(path("rows.onnx"), options);
  const Tensor x = random_floats({2, 8}, 1);
  const std::vector<float> first = run_mlp(model, x);
  std::atomic<int> runs = 0;
  std::atomic<bool> ended = false;
  int meanwhile = 0;  // runs during a compilation
  std::thread other([&] {
    const int before = runs;
    EXPECT_EQ(run_mlp(model, random_floats({3, 50}, 2)).size(), 3u * 50);
    meanwhile = runs - before;
    ended = true;
  });
  while (!ended) {
    EXPECT_EQ(run_mlp(model, x), first);
    ++runs;
  }
  other.join();
  EXPECT_GE(meanwhile, 10) << "who waits ends one or two";
}

TEST_F(Driver, APlanFileRunsWithoutCompiler) {
  const Model model = Model::load(mlp(), two_threads());
  model.save(path("mlp.plan"));
  const char* before = std::getenv("PATH");
  const std::string saved = before == nullptr ? "" : before;
  ::setenv("PATH", "/nonexistent", 1);
  const Model plan = Model::load(path("mlp.plan"), two_threads());
  const Error none = error_of([&] {
    CompileOptions options = two_threads();
    options.use_cache = false;
    Model::load(path("mlp.onnx"), options);
  });
  ::setenv("PATH", saved.c_str(), 1);
  EXPECT_EQ(none.code(), ErrorCode::kNoCompiler);
  const Tensor x = random_floats({2, 8}, 4);
  EXPECT_EQ(run_mlp(plan, x), run_mlp(model, x));
  EXPECT_EQ(error_of([&] { plan.run({{"x", random_floats({3, 8}, 1)}}); }).code(), ErrorCode::kInvalidInput);
  EXPECT_EQ(error_of([&] { driver::verify(path("mlp.plan"), {}, {}, 0); }).code(), ErrorCode::kInvalidArgument);
}

TEST_F(Driver, AValueLargerThanTheMemoryIsRefusedBeforeItIsScheduled) {
  const std::string graphs[] = {
      // As a product, as something that a reduction reads, and with more bytes than 64 bits count.
      R"(graph(%a: f32[1099511627776,0], %b: f32[0,10]) {
           %0 = dot(%a, %b) {lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]}
           return "y" = %0
         })",
      R"(graph(%a: f32[100000,30,100000,100000]) {
           %0 = arg_reduce(%a) {dim = 3, kind = "min", last = 0}
           %1 = cast(%a) {to = u32}
           return "y" = %1, "z" = %0
         })",
      R"(graph(%a: f32[]) {
           %0 = broadcast(%a) {dims = [], shape = [2305843009213693952]}
           %1 = neg(%0)
           %2 = reduce(%1) {dims = [0], kind = "sum"}
           return "y" = %2
         })"};
  const std::string file = path("large.hir");
  for (const std::string& graph : graphs) {
    write_file(file, graph, Sync::kNo);
    for (const std::string target : {"cpu", "cuda"}) {
      CompileOptions options = two_threads();
      options.target = target;
      const Error error = error_of([&] { driver::compile_model(file, options, false); });
      EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory) << error.what();
      EXPECT_NE(error.why().find("makes a value"), std::string::npos) << error.what();
    }
  }
}

TEST_F(Driver, AReferenceStepThatDoesNotFitItsBuffersIsADamagedPlan) {
  const auto interpreter = driver::reference_interpreter();
  const std::string text = "graph(%a: f32[2]) { %0 = neg(%a) return \"y\" = %0 }";
  const runtime::ValueType two{DType::kF32, {2}}, three{DType::kF32, {3}}, whole{DType::kI32, {2}};
  using Types = std::vector<runtime::ValueType>;
  const auto code_of = [&](const std::string& ir, const Types& parameters, const Types& results) {
    return error_of([&] { interpreter->prepare(ir, parameters, results); }).code();
  };
  EXPECT_NE(interpreter->prepare(text, Types{two}, Types{two}), nullptr);
  EXPECT_EQ(code_of(text, {}, {two}), ErrorCode::kDamagedArtefact);
  EXPECT_EQ(code_of(text, {three}, {two}), ErrorCode::kDamagedArtefact);
  EXPECT_EQ(code_of(text, {two}, {whole}), ErrorCode::kDamagedArtefact);
  EXPECT_EQ(code_of(text, {two}, {three}), ErrorCode::kDamagedArtefact);
  EXPECT_EQ(code_of(text, {two}, {two, two}), ErrorCode::kDamagedArtefact);
  EXPECT_EQ(code_of("graph(", {two}, {two}), ErrorCode::kDamagedArtefact);
}

TEST_F(Driver, ADamagedCachedPlanIsMadeAgain) {
  const std::string file = mlp();
  const Tensor x = random_floats({2, 8}, 1);
  const std::vector<float> y = run_mlp(Model::load(file, two_threads()), x);
  const std::string folder = path("cache");
  ASSERT_EQ(plans_in(folder).size(), 1u);
  const std::string plan = plans_in(folder)[0];
  const std::string whole(MappedFile::open(plan)->text());
  for (size_t at : {size_t{3}, size_t{70}, whole.size() / 2, whole.size() - 63}) {
    std::string text = whole;
    text[at] = static_cast<char>(text[at] ^ 4);
    write_file(plan, text, Sync::kNo);
    const Model again = Model::load(file, two_threads());
    EXPECT_FALSE(again.impl().primary().from_cache.plan) << at;
    EXPECT_EQ(run_mlp(again, x), y);
  }
  write_file(plan, whole.substr(0, 1000), Sync::kNo);
  EXPECT_EQ(run_mlp(Model::load(file, two_threads()), x), y);
  EXPECT_TRUE(Model::load(file, two_threads()).impl().primary().from_cache.plan);
}

TEST_F(Driver, ProcessesThatCompileTheSameAtOnceAndThatAreKilledLeaveAGoodCache) {
  const std::string file = mlp();
  const Tensor x = random_floats({2, 8}, 1);
  std::mt19937 random(5);
  for (int round = 0; round < 4; ++round) {
    jit::Cache::of_user().clear();
    std::vector<pid_t> children;
    for (int c = 0; c < 2; ++c) {
      const pid_t child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        int status = 1;
        try {
          status = run_mlp(Model::load(file, two_threads()), x).size() == 8 ? 0 : 1;
        } catch (...) {
        }
        ::_exit(status);
      }
      children.push_back(child);
    }
    const bool kill_one = round % 2 == 1;
    if (kill_one) {
      ::usleep(random() % 300000);
      ::kill(children[0], SIGKILL);
    }
    for (size_t c = 0; c < children.size(); ++c) {
      int status = 0;
      ::waitpid(children[c], &status, 0);
      EXPECT_TRUE(status == 0 || (c == 0 && kill_one)) << status;
    }
    EXPECT_TRUE(Model::load(file, two_threads()).impl().primary().from_cache.plan);
  }
}

TEST_F(Driver, WorksWhereTheCacheCannotBeWritten) {
  write_file(path("file"), "x");
  ::setenv("HEDDLE_CACHE_DIR", path("file/below").c_str(), 1);
  EXPECT_EQ(run_mlp(Model::load(mlp(), two_threads()), random_floats({2, 8}, 1)).size(), 8u);
}

TEST_F(Driver, AModelLargerThanMemoryIsRefusedBeforeItIsRun) {
  test::write_huge(path("huge.onnx"));
  const Error error = error_of([&] { Model::load(path("huge.onnx"), two_threads()); });
  EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
  EXPECT_NE(error.why().find("GB"), std::string::npos);
}

TEST_F(Driver, RandomInputsAreSeededAndWithinTheTableThatTheyIndex) {
  test::write_lookup(path("lookup.onnx"));
  const Model model = Model::load(path("lookup.onnx"), two_threads());
  const runtime::Plan& plan = *model.impl().primary().plan;
  EXPECT_EQ(plan.inputs[0].index_bound, 10);
  const Tensor ids = driver::random_inputs(plan, 7).at("ids");
  for (const int64_t id : ids.values<int64_t>()) EXPECT_TRUE(id >= 0 && id < 10);
  EXPECT_EQ(model.run(driver::random_inputs(plan, 7))[0].size(), 12);
}

TEST_F(Driver, OptionsThatDoNotExistAreInvalidArguments) {
  const std::string file = mlp();
  for (const auto& change : std::vector<std::function<void(CompileOptions&)>>{
           [](CompileOptions& o) { o.precision = "f12"; }, [](CompileOptions& o) { o.fusion = "all"; },
           [](CompileOptions& o) { o.target = "tpu"; }, [](CompileOptions& o) { o.threads = -1; },
           [](CompileOptions& o) { o.disabled_passes = {"none"}; }}) {
    CompileOptions options;
    change(options);
    EXPECT_EQ(error_of([&] { Model::load(file, options); }).code(), ErrorCode::kInvalidArgument);
  }
  CompileOptions cuda;
  cuda.target = "cuda";
  EXPECT_EQ(error_of([&] { Model::load(file, cuda); }).code(), ErrorCode::kDevice);
}

TEST_F(Driver, ReportAndPictureShowWhatWasFused) {
  const driver::CompiledModel model = driver::compile_model(mlp(), two_threads());
  EXPECT_GT(model.report.distinct_kernels, 0u);
  EXPECT_FALSE(model.report.groups.empty());
  for (const driver::GroupReport& group : model.report.groups) EXPECT_EQ(group.fallback, "");
  const std::string svg = driver::draw_svg(model);
  EXPECT_TRUE(svg.starts_with("<svg"));
  EXPECT_NE(svg.find("probabilities"), std::string::npos);
}

TEST_F(Driver, APictureOfManyKernelsShowsModulesOnOneSheet) {
  const std::string file = path("unet.onnx");
  zoo::write("sd-unet", {.size = 8, .width = 32}, file);
  const driver::CompiledModel model = driver::compile_model(file, two_threads(), false, false);
  EXPECT_GT(model.report.groups.size(), 300u);
  const std::string svg = driver::draw_svg(model);
  for (const char* module : {">down.7<", ">ma<", ">up.10<"}) EXPECT_NE(svg.find(module), std::string::npos) << module;
  EXPECT_EQ(svg.find(">down.7/"), std::string::npos);
  int width = 0, height = 0;
  ASSERT_EQ(
      std::sscanf(svg.c_str(), "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\"", &width, &height),
      2);
  EXPECT_LT(width, 2500);
  EXPECT_LT(height, 2000);
}

TEST_F(Driver, APictureOfManyNodesShowsModulesUnlessTheyAreUnfolded) {
  const std::string file = path("unet.onnx");
  zoo::write("sd-unet", {.size = 8, .width = 32}, file);
  const auto boxes = [](const std::string& svg) {
    size_t count = 0;
    for (size_t at = svg.find("<g><title>"); at != std::string::npos; at = svg.find("<g><title>", at + 1)) ++count;
    return count;
  };
  const std::string svg = driver::draw_model_svg(file, two_threads());
  EXPECT_LT(boxes(svg), 60u);
  EXPECT_NE(svg.find(">down.7<"), std::string::npos);
  EXPECT_GT(boxes(driver::draw_model_svg(file, two_threads(), driver::Modules::kOpen)), 300u);
}

TEST(Collapse, FindsTheLayersOfANetwork) {
  const auto repeats = driver::find_repeats({"in", "a", "b", "b", "a", "b", "b", "a", "b", "b", "out"});
  ASSERT_EQ(repeats.size(), 1u);
  EXPECT_EQ(repeats[0].begin, 1u);
  EXPECT_EQ(repeats[0].period, 3u);
  EXPECT_EQ(repeats[0].count, 3u);
  EXPECT_TRUE(driver::find_repeats({"a", "b", "c"}).empty());
  EXPECT_TRUE(driver::find_repeats({}).empty());
}

// Each next to its like, in a sequence that a search of all of it for every repeat would not finish.
TEST(Collapse, FindsVeryManyRepeats) {
  constexpr size_t kPairs = 50'000;
  std::vector<std::string> signatures;
  for (size_t i = 0; i < kPairs; ++i) signatures.insert(signatures.end(), 2, std::to_string(i));
  const auto repeats = driver::find_repeats(signatures);
  ASSERT_EQ(repeats.size(), kPairs);
  for (size_t i = 0; i < kPairs; ++i) {
    EXPECT_EQ(repeats[i].begin, 2 * i);
    EXPECT_EQ(repeats[i].period, 1u);
    EXPECT_EQ(repeats[i].count, 2u);
  }
}

TEST_F(Driver, CInterface) {
  const std::string file = mlp();
  heddle_error* error = nullptr;
  EXPECT_EQ(heddle_model_load("/nowhere.onnx", nullptr, &error), nullptr);
  EXPECT_EQ(heddle_error_code(error), 401);
  EXPECT_NE(std::string(heddle_error_message(error)).find("/nowhere.onnx"), std::string::npos);
  heddle_error_free(error);

  heddle_options* options = heddle_options_new();
  EXPECT_EQ(heddle_options_set(options, "threads", "two", nullptr), 0);
  EXPECT_EQ(heddle_options_set(options, "colour", "red", &error), 0);
  EXPECT_EQ(heddle_error_code(error), 201);
  heddle_error_free(error);
  EXPECT_EQ(heddle_options_set(options, "threads", "1", &error), 1);
  double done = 0;
  heddle_options_set_progress(
      options, [](const char*, double fraction, void* context) { *static_cast<double*>(context) = fraction; }, &done);
  heddle_model* model = heddle_model_load(file.c_str(), options, &error);
  EXPECT_EQ(done, 1);
  heddle_options_free(options);
  ASSERT_NE(model, nullptr) << heddle_error_message(error);
  ASSERT_EQ(heddle_model_input_count(model), 1u);
  const heddle_port port = heddle_model_input(model, 0);
  EXPECT_EQ(heddle_model_input(model, 1).name, nullptr);
  EXPECT_EQ(heddle_model_output(model, SIZE_MAX).name, nullptr);
  EXPECT_EQ(port.dtype, HEDDLE_F32);
  ASSERT_EQ(port.rank, 2u);

  const Tensor x = random_floats({2, 8}, 1);
  heddle_tensor* input = heddle_tensor_new(port.dtype, port.shape, port.rank, x.data(), &error);
  heddle_tensor* output = nullptr;
  ASSERT_EQ(heddle_model_run(model, &port.name, &input, 1, &output, &error), 1);
  const auto* y = static_cast<const float*>(heddle_tensor_data(output));
  const std::vector<float> expected = run_mlp(Model::load(file, two_threads()), x);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(y[i], expected[i], 1e-6);
  heddle_tensor_free(output);

  const char* wrong = "z";
  EXPECT_EQ(heddle_model_run(model, &wrong, &input, 1, &output, &error), 0);
  EXPECT_EQ(output, nullptr);
  EXPECT_EQ(heddle_error_code(error), 202);
  heddle_error_free(error);
  const int64_t negative = -1;
  EXPECT_EQ(heddle_tensor_new(HEDDLE_F32, &negative, 1, nullptr, nullptr), nullptr);
  heddle_tensor_free(input);
  heddle_model_free(model);
}

}  // namespace
}  // namespace heddle
