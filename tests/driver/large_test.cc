// Models of very many nodes compile and run, on a thread with a small stack: no walk calls itself for every node.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <exception>
#include <functional>

#include "base/file/file.h"
#include "driver/compile/compile.h"
#include "heddle/model.h"
#include "tests/error_of.h"

namespace heddle {
namespace {

void on_small_stack(const std::function<void()>& work) {
  constexpr size_t kStack = 1 << 20;
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStack), 0);
  pthread_t thread;
  std::exception_ptr failure;
  std::function<void()> guarded = [&] {
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
  };
  const auto run = [](void* what) -> void* {
    (*static_cast<std::function<void()>*>(what))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &guarded), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
  if (failure) std::rethrow_exception(failure);
}

class LargeModels : public testing::Test {
 protected:
  LargeModels() { ::setenv("HEDDLE_CACHE_DIR", (dir_.path() + "/cache").c_str(), 1); }
  ~LargeModels() override { ::unsetenv("HEDDLE_CACHE_DIR"); }

  std::string file(const std::string& text) {
    const std::string path = dir_.path() + "/m.hir";
    write_file(path, text);
    return path;
  }

  static float one(size_t) { return 1; }
  // The outputs of a graph, one after the other, whose inputs have `element(i)` for their i-th element.
  std::vector<float> run(const std::string& text, float (*element)(size_t) = one) {
    const std::string path = file(text);
    std::vector<float> result;
    on_small_stack([&] {
      CompileOptions options;
      options.threads = 2;
      const Model model = Model::load(path, options);
      std::map<std::string, Tensor> inputs;
      for (const auto& input : model.inputs()) {
        Tensor tensor(DType::kF32, input.shape);
        size_t i = 0;
        for (float& value : tensor.mutable_values<float>()) value = element(i++);
        inputs.emplace(input.name, std::move(tensor));
      }
      const std::vector<Tensor> outputs = model.run(inputs);
      for (const Tensor& output : outputs) {
        const auto values = output.values<float>();
        result.insert(result.end(), values.begin(), values.end());
      }
    });
    return result;
  }

 private:
  TempDir dir_;
};

std::string parameters(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i > 0 ? ", %x" : "%x") + std::to_string(i) + ": f32[2]";
  return text;
}

// `op` of the first with the second, of that with the third, and so on.
std::string chain_of(const std::string& op, int count) {
  std::string text = "graph(" + parameters(count) + ") {\n";
  for (int i = 1; i < count; ++i) {
    const std::string last = i == 1 ? "%x0" : "%y" + std::to_string(i - 1);
    text += "  %y" + std::to_string(i) + " = " + op + "(" + last + ", %x" + std::to_string(i) + ")\n";
  }
  return text + "  return \"y\" = %y" + std::to_string(count - 1) + "\n}";
}

// Processor time of the compilers that ended so far.
double children_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * double(t.tv_usec); };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST_F(LargeModels, ConcatOfManyInputs) {
  constexpr int kCount = 5'000;
  std::string operands;
  for (int i = 0; i < kCount; ++i) operands += (i > 0 ? ", %x" : "%x") + std::to_string(i);
  const std::vector<float> y =
      run("graph(" + parameters(kCount) + ") {\n  %y = concat(" + operands + ") {dim = 0}\n  return \"y\" = %y\n}");
  EXPECT_EQ(y, std::vector<float>(2 * kCount, 1));
}

TEST_F(LargeModels, SumOfManyInputs) {
  constexpr int kCount = 5'000;
  EXPECT_EQ(run(chain_of("add", kCount)), std::vector<float>(2, kCount));
}

// What an op costs a C++ compiler is a small factor. Maxima, of which one may be NaN, once took it a hundred times as
// long as sums.
TEST_F(LargeModels, MaximaCompileAboutAsFastAsSums) {
  constexpr int kCount = 150;
  std::map<std::string, double> seconds;
  for (const std::string op : {"add", "max", "min"}) {
    const double before = children_seconds();
    EXPECT_EQ(run(chain_of(op, kCount)), std::vector<float>(2, op == "add" ? kCount : 1));
    seconds[op] = children_seconds() - before;
  }
  EXPECT_LT(seconds["max"], 6 * seconds["add"]);
  EXPECT_LT(seconds["min"], 6 * seconds["add"]);
}

// Kernels that differ in a number each share a text that is told its numbers.
TEST_F(LargeModels, ManyKernelsThatDifferInNumbers) {
  constexpr int kCount = 1'000;
  std::string text = "graph(%x: f32[2]) {\n", outputs;
  std::vector<float> expected;
  for (int i = 0; i < kCount; ++i) {
    const std::string n = std::to_string(i);
    text += "  %c" + n + " = constant {value = f32[]{" + n + ".5}}\n  %b" + n + " = broadcast(%c" + n +
            ") {shape = [2], dims = []}\n  %y" + n + " = mul(%x, %b" + n + ")\n";
    outputs += (i > 0 ? ", \"y" : "\"y") + n + "\" = %y" + n;
    expected.insert(expected.end(), 2, static_cast<float>(i) + 0.5f);
  }
  text += "  return " + outputs + "\n}";
  const driver::CompileReport report = driver::compile_model(file(text), {}, false).report;
  EXPECT_LE(report.distinct_kernels, 4u);
  EXPECT_EQ(run(text), expected);
}

// Steps of a recurrence that is written out: each multiplies its slice of a sequence and adds one of another.
TEST_F(LargeModels, ProductsOfManySlices) {
  constexpr int kSteps = 40, kRows = 3;
  const auto slice = [](const std::string& name, const char* of, int first) {
    return fmt::format("  %{} = slice(%{}) {{starts = [{}, 0], limits = [{}, 4], strides = [1, 1]}}\n", name, of, first,
                       first + kRows);
  };
  std::string text = fmt::format("graph(%x: f32[{0},4], %z: f32[{0},4], %w: f32[4,4]) {{\n", kSteps * kRows), outputs;
  std::vector<float> expected;
  for (int i = 0; i < kSteps; ++i) {
    const std::string n = std::to_string(i);
    text += slice("a" + n, "x", kRows * i) + slice("b" + n, "z", i);
    text += fmt::format(
        "  %d{0} = dot(%a{0}, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = "
        "[0]}}\n  %y{0} = add(%d{0}, %b{0})\n",
        n);
    outputs += fmt::format("{0}\"y{1}\" = %y{1}", i > 0 ? ", " : "", n);
    for (int row = 0; row < kRows; ++row) {
      expected.insert(expected.end(), 4, static_cast<float>(6 * (kRows * i + row) + i + row));
    }
  }
  text += "  return " + outputs + "\n}";
  EXPECT_LE(driver::compile_model(file(text), {}, false).report.distinct_kernels, 2u);
  EXPECT_EQ(run(text, [](size_t i) { return static_cast<float>(i / 4); }), expected);
}

TEST_F(LargeModels, DeepChain) {
  std::string text = "graph(%x: f32[2]) {\n  %y0 = abs(%x)\n";
  constexpr int kCount = 50'000;
  for (int i = 1; i < kCount; ++i) {
    text += "  %y" + std::to_string(i) + (i % 2 == 0 ? " = abs(%y" : " = neg(%y") + std::to_string(i - 1) + ")\n";
  }
  EXPECT_EQ(run(text + "  return \"y\" = %y" + std::to_string(kCount - 1) + "\n}"), std::vector<float>(2, -1));
}

// What fits no machine is a matter of memory, whatever overflows on the way to saying so.
TEST_F(LargeModels, ValuesBeyondAllMemory) {
  for (const std::string low : {"[4294967296,1073741824]", "[2305843009213693952,1]"}) {
    const std::string text =
        "graph(%x: f32[1,1]) {\n  %z = constant {value = f32[]{0.0}}\n  %y = pad(%x, %z) {low = " + low +
        ", high = [0,0], mode = \"constant\"} @\"big:Pad\"\n  return \"y\" = %y\n}";
    const Error error = test::error_of([&] { run(text); });
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory) << error.what();
    EXPECT_NE(std::string(error.what()).find("big"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace heddle
