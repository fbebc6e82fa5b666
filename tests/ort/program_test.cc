#include <dlfcn.h>
#include <glob.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <heddle_ort.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/file/file.h"
#include "zoo/graph_builder.h"

// Programs that use ONNX Runtime by include/heddle_ort.h, with the library of its Python package. Builds with
// sanitizers run them, too.
extern "C" OrtStatus* use_heddle(const OrtApi* api, OrtEnv* env, OrtSessionOptions* options, const char* library);

namespace heddle::program {
namespace {

using testing::HasSubstr;

constexpr int64_t kRows = 24, kWidth = 48;

std::string make_model(const std::string& folder) {
  zoo::GraphBuilder g("perceptron", 17);
  const zoo::Value x = g.input("x", DType::kF32, {kRows, kWidth});
  const zoo::Value w = g.weight("w", {kWidth, kWidth}, {});
  g.output(g.softmax(g.relu(g.matmul(x, w)), -1), "y");
  std::string path = folder + "/model.onnx";
  zoo::write_model(g.finish(), 7, int64_t{1} << 30, path);
  return path;
}

class Program : public testing::Test {
 protected:
  Program() { ::setenv("HEDDLE_CACHE_DIR", (folder_.path() + "/cache").c_str(), 1); }
  ~Program() override { ::unsetenv("HEDDLE_CACHE_DIR"); }
  void SetUp() override {
    glob_t found{};
    if (::glob(HEDDLE_ONNXRUNTIME, 0, nullptr, &found) == 0) {
      void* const library = ::dlopen(found.gl_pathv[0], RTLD_NOW | RTLD_LOCAL);
      ASSERT_NE(library, nullptr) << ::dlerror();
      const auto get = reinterpret_cast<const OrtApiBase* (*)()>(::dlsym(library, "OrtGetApiBase"));
      base_ = get();
      api_ = base_->GetApi(24);
    }
    ::globfree(&found);
    if (api_ == nullptr) GTEST_SKIP() << "skipped: onnxruntime is not installed";
    check(api_->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "test", &env_));
    model_ = make_model(folder_.path());
    for (size_t i = 0; i < input_.size(); ++i) input_[i] = static_cast<float>(i % 17) * 0.25F - 2;
  }
  void TearDown() override {
    if (env_ != nullptr) api_->ReleaseEnv(env_);
  }

  std::string message(OrtStatus* status) const {
    if (status == nullptr) return "";
    std::string text = api_->GetErrorMessage(status);
    api_->ReleaseStatus(status);
    return text;
  }
  void check(OrtStatus* status) const { EXPECT_EQ(message(status), ""); }

  using Options = std::shared_ptr<OrtSessionOptions>;
  Options options() const {
    OrtSessionOptions* made = nullptr;
    check(api_->CreateSessionOptions(&made));
    return {made, api_->ReleaseSessionOptions};
  }
  Options with_heddle() const {
    Options made = options();
    check(heddle_ort_append(api_, env_, made.get(), "cpu", nullptr, nullptr, 0));
    return made;
  }
  using Session = std::shared_ptr<OrtSession>;
  Session session(const Options& options) const {
    OrtSession* made = nullptr;
    check(api_->CreateSession(env_, model_.c_str(), options.get(), &made));
    return {made, api_->ReleaseSession};
  }
  std::vector<float> run(const Session& session) const {
    OrtMemoryInfo* memory = nullptr;
    check(api_->CreateCpuMemoryInfo(0, 0, &memory));
    const int64_t shape[] = {kRows, kWidth};
    OrtValue *x = nullptr, *y = nullptr;
    check(api_->CreateTensorWithDataAsOrtValue(memory, const_cast<float*>(input_.data()), input_.size() * sizeof(float),
                                               shape, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &x));
    const char *const in = "x", *const out = "y";
    check(api_->Run(session.get(), nullptr, &in, &x, 1, &out, 1, &y));
    void* data = nullptr;
    if (y != nullptr) check(api_->GetTensorMutableData(y, &data));
    std::vector<float> result;
    if (data != nullptr) result.assign(static_cast<float*>(data), static_cast<float*>(data) + kRows * kWidth);
    api_->ReleaseValue(x);
    if (y != nullptr) api_->ReleaseValue(y);
    api_->ReleaseMemoryInfo(memory);
    return result;
  }
  void expect_near(const std::vector<float>& values, const std::vector<float>& expected) const {
    ASSERT_EQ(values.size(), expected.size());
    for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], expected[i], 1e-5F) << i;
  }

  const OrtApiBase* base_ = nullptr;
  const OrtApi* api_ = nullptr;
  OrtEnv* env_ = nullptr;
  TempDir folder_{"heddle-ort-test"};
  std::string model_;
  std::vector<float> input_ = std::vector<float>(kRows * kWidth);
};

TEST_F(Program, InCRegistersAndRuns) {
  const Options made = options();
  check(use_heddle(api_, env_, made.get(), HEDDLE_ORT_LIBRARY));
  expect_near(run(session(made)), run(session(options())));
}

TEST_F(Program, SaysThatATargetIsMissing) {
  check(heddle_ort_register(api_, env_, HEDDLE_ORT_LIBRARY));
  const Options made = options();
  EXPECT_THAT(message(heddle_ort_append(api_, env_, made.get(), "cuda:97", nullptr, nullptr, 0)),
              HasSubstr("no device of this target"));
}

TEST_F(Program, ThreadsShareASessionThatIsClosedMeanwhile) {
  check(heddle_ort_register(api_, env_, HEDDLE_ORT_LIBRARY));
  const std::vector<float> expected = run(session(options()));
  std::vector<std::jthread> threads;
  {
    const Session shared = session(with_heddle());
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, shared] {
        for (int i = 0; i < 50; ++i) expect_near(run(shared), expected);
      });
    }
  }
  for (int i = 0; i < 5; ++i) expect_near(run(session(with_heddle())), expected);
}

TEST_F(Program, IsUnregisteredBeforeItsSessionsAreClosed) {
  check(heddle_ort_register(api_, env_, HEDDLE_ORT_LIBRARY));
  const std::vector<float> expected = run(session(options()));
  const Session old = session(with_heddle());
  check(api_->UnregisterExecutionProviderLibrary(env_, "heddle"));
  expect_near(run(old), expected);
  check(heddle_ort_register(api_, env_, HEDDLE_ORT_LIBRARY));
  expect_near(run(session(with_heddle())), expected);
  expect_near(run(old), expected);
}

// Of the plug-in's exports, called by an ONNX Runtime that has no interface of version 24.
TEST_F(Program, OfAnOlderReleaseIsRefused) {
  static const OrtApi* api = nullptr;
  api = api_;
  const OrtApiBase old{[](uint32_t version) { return version < 24 ? api : nullptr; }, [] { return "1.23.0"; }};
  void* const library = ::dlopen(HEDDLE_ORT_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto create = reinterpret_cast<OrtStatus* (*)(const char*, const OrtApiBase*, void*, void**, size_t, size_t*)>(
      ::dlsym(library, "CreateEpFactories"));
  void* factory = nullptr;
  size_t count = 1;
  const std::string text = message(create("heddle", &old, nullptr, &factory, 1, &count));
  EXPECT_THAT(text, HasSubstr("ONNX Runtime 1.23.0"));
  EXPECT_THAT(text, HasSubstr("needs version 1.24"));
  EXPECT_EQ(count, 0U);
}

}  // namespace
}  // namespace heddle::program
