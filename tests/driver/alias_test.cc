// Outputs in the memory of inputs: repeated runs in one memory, who reads the old value, options that are refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "base/file/file.h"
#include "driver/api/model_impl.h"
#include "driver/compile/compile.h"
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
    std::vector<Tensor> into{cache, random_floats({2, 3, 5}, 7), random_floats({2, 3, 5}, 8)};
    in_place.impl().run_in_order({cache, x, at, other}, into);
    const std::vector<Tensor> wanted = apart.impl().run_in_order({past, x, at, other});
    for (size_t i = 0; i < 3; ++i) expect_same(into[i], wanted[i]);
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
