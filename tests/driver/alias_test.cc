// Outputs in the memory of inputs: repeated runs in one memory, who reads the old value, options that are refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "base/file/file.h"
#include "driver/compile/compile.h"
#include "heddle/c_api.h"
#include "heddle/model.h"
#include "models.h"
#include "tests/error_of.h"

namespace heddle {
namespace {

using test::error_of;
using test::random_floats;

// A cache [2,3,7,5] with x at a position of each batch, what it was, and something that is read of the new one.
constexpr const char* kStep =
    "graph(%past: f32[2,3,7,5], %x: f32[2,3,1,5], %pos: i64[2], %other: f32[7]) {\n"
    "%c = iota {dtype = i64, shape = [2,7], dim = 1}\n"
    "%p = broadcast(%pos) {shape = [2,7], dims = [0]}\n"
    "%e = eq(%p, %c)\n"
    "%m = broadcast(%e) {shape = [2,3,7,5], dims = [0,2]}\n"
    "%x1 = reshape(%x) {shape = [2,3,5]}\n"
    "%w = broadcast(%x1) {shape = [2,3,7,5], dims = [0,1,3]}\n"
    "%y = select(%m, %w, %past)\n"
    "%sum = reduce(%y) {kind = \"sum\", dims = [2]}\n"
    "%old = reduce(%past) {kind = \"max\", dims = [2]}\n"
    "return \"present\" = %y, \"sum\" = %sum, \"old\" = %old }";

class Alias : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() / fmt::format("alias_{}.hir", ::getpid())).string();
    write_file(path_, kStep);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  static CompileOptions options() {
    CompileOptions options;
    options.use_cache = false;
    return options;
  }

  std::string path_;
};

void expect_same(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.bytes(), b.bytes());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.bytes()), 0);
}

TEST_F(Alias, StepsInOneMemoryEqualStepsInMemoryOfTheirOwn) {
  CompileOptions shared = options();
  shared.alias = {{"present", "past"}};
  const Model in_place = Model::load(path_, shared), apart = Model::load(path_, options());
  EXPECT_EQ(in_place.outputs()[0].alias, "past");
  EXPECT_EQ(in_place.outputs()[1].alias, "");
  Tensor cache = random_floats({2, 3, 7, 5}, 1), past = random_floats({2, 3, 7, 5}, 1);
  const Tensor other = random_floats({7}, 9);
  for (uint32_t step = 0; step < 4; ++step) {
    const Tensor x = random_floats({2, 3, 1, 5}, 10 + step);
    // The last positions lie outside, where nothing is written.
    const Tensor at = Tensor::of<int64_t>(DType::kI64, {2}, {int64_t{2 * step}, step == 3 ? int64_t{-1} : 6});
    const std::vector<Tensor> got =
        in_place.run_into({{"past", cache}, {"x", x}, {"pos", at}, {"other", other}}, {{"present", cache}});
    const std::vector<Tensor> wanted = apart.run({{"past", past}, {"x", x}, {"pos", at}, {"other", other}});
    EXPECT_EQ(got[0].data(), cache.data());
    for (size_t i = 0; i < 3; ++i) expect_same(got[i], wanted[i]);
    past = wanted[0];
  }
}

TEST_F(Alias, OtherMemoryForTheOutputLeavesTheInputAsItIs) {
  CompileOptions shared = options();
  shared.alias_updates = true;
  const Model model = Model::load(path_, shared), apart = Model::load(path_, options());
  EXPECT_EQ(model.outputs()[0].alias, "past");
  const Tensor past = random_floats({2, 3, 7, 5}, 1), before = random_floats({2, 3, 7, 5}, 1);
  const std::map<std::string, Tensor> inputs = {{"past", past},
                                                {"x", random_floats({2, 3, 1, 5}, 2)},
                                                {"pos", Tensor::of<int64_t>(DType::kI64, {2}, {0, 5})},
                                                {"other", random_floats({7}, 3)}};
  const std::vector<Tensor> got = model.run(inputs), wanted = apart.run(inputs);
  for (size_t i = 0; i < 3; ++i) expect_same(got[i], wanted[i]);
  expect_same(past, before);
}

TEST_F(Alias, OutputsOfTheCallerAreChecked) {
  const Model apart = Model::load(path_, options());
  const Tensor past = random_floats({2, 3, 7, 5}, 1);
  const std::map<std::string, Tensor> inputs = {{"past", past},
                                                {"x", random_floats({2, 3, 1, 5}, 2)},
                                                {"pos", Tensor::of<int64_t>(DType::kI64, {2}, {0, 5})},
                                                {"other", random_floats({7}, 3)}};
  const auto why = [&](const std::map<std::string, Tensor>& outputs) {
    return std::string(error_of([&] { apart.run_into(inputs, outputs); }).what());
  };
  EXPECT_NE(why({{"present", past}}).find("memory of its own"), std::string::npos);
  EXPECT_NE(why({{"presnt", past}}).find("Did you mean present?"), std::string::npos);
  EXPECT_NE(why({{"sum", past}}).find("output sum"), std::string::npos);
}

TEST_F(Alias, ThroughC) {
  heddle_error* error = nullptr;
  heddle_options* options = heddle_options_new();
  ASSERT_EQ(heddle_options_set(options, "cache", "0", &error), 1);
  EXPECT_EQ(heddle_options_set(options, "alias", "present", nullptr), 0);
  ASSERT_EQ(heddle_options_set(options, "alias", "present=past", &error), 1);
  heddle_model* model = heddle_model_load(path_.c_str(), options, &error);
  heddle_options_free(options);
  ASSERT_NE(model, nullptr) << heddle_error_message(error);
  EXPECT_STREQ(heddle_model_output_alias(model, 0), "past");
  EXPECT_EQ(heddle_model_output_alias(model, 1), nullptr);
  EXPECT_EQ(heddle_model_output_alias(model, 9), nullptr);

  std::vector<const char*> names;
  std::vector<heddle_tensor*> inputs;
  for (size_t i = 0; i < heddle_model_input_count(model); ++i) {
    const heddle_port port = heddle_model_input(model, i);
    names.push_back(port.name);
    inputs.push_back(heddle_tensor_new(port.dtype, port.shape, port.rank, nullptr, &error));
  }
  const std::vector<float> ones(2 * 3 * 5, 1.0F);
  heddle_tensor_free(inputs[1]);
  inputs[1] = heddle_tensor_new(HEDDLE_F32, std::vector<int64_t>{2, 3, 1, 5}.data(), 4, ones.data(), &error);
  const std::vector<heddle_tensor*> outputs = {inputs[0], nullptr, nullptr};
  ASSERT_EQ(heddle_model_run_into(model, names.data(), inputs.data(), names.size(), outputs.data(), &error), 1);
  const auto* cache = static_cast<const float*>(heddle_tensor_data(inputs[0]));
  for (int64_t i = 0; i < 2 * 3 * 7 * 5; ++i) EXPECT_EQ(cache[i], i / 5 % 7 == 0 ? 1.0F : 0.0F) << i;
  for (heddle_tensor* input : inputs) heddle_tensor_free(input);
  heddle_model_free(model);
}

TEST_F(Alias, ReportsWhatIsNotCopiedAndWhyTheRestIs) {
  CompileOptions shared = options();
  shared.alias = {{"present", "past"}};
  const driver::CompiledModel model = driver::compile_model(path_, shared, false);
  ASSERT_EQ(model.report.aliases.size(), 1U);
  EXPECT_EQ(model.report.aliases[0].bytes, 2 * 3 * 7 * 5 * 4);
  const std::string& why = model.report.aliases[0].why_copied;
  EXPECT_TRUE(why.empty() || why.find("reads it after the update") != std::string::npos) << why;
}

TEST_F(Alias, RefusesWhatCannotBe) {
  const auto why = [&](std::map<std::string, std::string> alias) {
    CompileOptions wrong = options();
    wrong.alias = std::move(alias);
    return std::string(error_of([&] { Model::load(path_, wrong); }).what());
  };
  EXPECT_NE(why({{"presen", "past"}}).find("Did you mean present?"), std::string::npos);
  EXPECT_NE(why({{"present", "pasd"}}).find("Did you mean past?"), std::string::npos);
  EXPECT_NE(why({{"sum", "past"}}).find("does not fit into input past"), std::string::npos);
  EXPECT_NE(why({{"pre*", "past"}}).find("do not have one *"), std::string::npos);
  EXPECT_NE(why({{"none*", "p*"}}).find("no output matches"), std::string::npos);
}

}  // namespace
}  // namespace heddle
