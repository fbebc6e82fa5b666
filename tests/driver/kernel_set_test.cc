#include "driver/model/kernel_set.h"

#include <gtest/gtest.h>

#include <map>

namespace heddle::driver {
namespace {

codegen::KernelText text_of(const std::string& symbol, size_t bytes, const std::string& include = "tile/op/math.h") {
  std::string text = "void " + symbol + "();";
  text.resize(std::max(bytes, text.size()), ' ');
  return {symbol, {include}, text + "\n"};
}

codegen::KernelSource source_of(const std::string& symbol, size_t bytes) {
  codegen::KernelSource source;
  static_cast<codegen::KernelText&>(source) = text_of(symbol, bytes);
  return source;
}

CudaLaunch launch_of(const std::string& symbol) {
  CudaLaunch launch;
  launch.symbol = symbol;
  return launch;
}

// In which units a kernel is, by its symbol.
std::vector<size_t> places(const std::vector<KernelUnit>& units, const std::string& symbol) {
  std::vector<size_t> found;
  for (size_t i = 0; i < units.size(); ++i) {
    if (units[i].text.find("void " + symbol + "();") != std::string::npos) found.push_back(i);
  }
  return found;
}

TEST(KernelSet, EachKernelIsInOneUnit) {
  KernelSet kernels;
  for (int i = 0; i < 23; ++i) kernels.add(source_of("kernel_" + std::to_string(i), 100 + 37 * static_cast<size_t>(i)));
  const auto units = kernels.units({4, 4, 1, 1});
  ASSERT_EQ(units.size(), 4u);
  for (int i = 0; i < 23; ++i) EXPECT_EQ(places(units, "kernel_" + std::to_string(i)).size(), 1u) << i;
}

TEST(KernelSet, UnitsCostWhatTheirSharesSay) {
  constexpr size_t kEach = 1000;
  KernelSet kernels;
  for (int i = 0; i < 100; ++i) kernels.add(source_of("kernel_" + std::to_string(i), kEach));
  const auto units = kernels.units({4, 4, 1, 1});
  const double all = 100 * kEach;
  for (size_t i = 0; i < units.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(units[i].text.size()) / all, i < 2 ? 0.4 : 0.1, 0.02) << i;
  }
}

TEST(KernelSet, TheMostExpensiveIsAloneAgainstAllOthers) {
  KernelSet kernels;
  kernels.add(source_of("long", 9000));
  for (int i = 0; i < 9; ++i) kernels.add(source_of("kernel_" + std::to_string(i), 1000));
  const auto units = kernels.units({1, 1});
  ASSERT_EQ(units.size(), 2u);
  EXPECT_EQ(places(units, "long"), std::vector<size_t>{0});
  for (int i = 0; i < 9; ++i) EXPECT_EQ(places(units, "kernel_" + std::to_string(i)), std::vector<size_t>{1});
}

TEST(KernelSet, ATemplateCostsMoreThanItsText) {
  KernelSet kernels;
  codegen::KernelSource product;
  static_cast<codegen::KernelText&>(product) = text_of("product", 100, "tile/kernel/cuda/gemm/sm90.h");
  kernels.add(product);
  for (int i = 0; i < 5; ++i) kernels.add(source_of("kernel_" + std::to_string(i), 1000));
  const auto units = kernels.units({1, 1});
  EXPECT_EQ(places(units, "product"), std::vector<size_t>{0});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(places(units, "kernel_" + std::to_string(i)), std::vector<size_t>{1});
}

TEST(KernelSet, UnitsDependOnKernelsAndNotOnTheirOrder) {
  KernelSet forth, back;
  for (int i = 0; i < 12; ++i) forth.add(source_of("kernel_" + std::to_string(i), 500));
  for (int i = 11; i >= 0; --i) back.add(source_of("kernel_" + std::to_string(i), 500));
  const auto a = forth.units({2, 1}), b = back.units({2, 1});
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].text, b[i].text);  // what the cache goes by
}

TEST(KernelSet, ThereAreNoMoreUnitsThanKernels) {
  KernelSet kernels;
  EXPECT_TRUE(kernels.units({1, 1}).empty());
  kernels.add(source_of("one", 100));
  kernels.add(source_of("one", 100));
  const auto units = kernels.units({4, 4, 1, 1});
  ASSERT_EQ(units.size(), 1u);
  EXPECT_NE(units[0].text.find("#include \"tile/op/math.h\""), std::string::npos);
}

TEST(KernelSet, WhatKernelsShareIsCompiledOnceAndIsNoKernel) {
  KernelSet kernels;
  for (const char* symbol : {"one", "two"}) {
    codegen::KernelSource source = source_of(symbol, 100);
    source.others.push_back(text_of("both", 1000));
    EXPECT_EQ(kernels.add(std::move(source)), symbol);
  }
  EXPECT_EQ(kernels.size(), 2u);
  EXPECT_EQ(places(kernels.units({1, 1}), "both").size(), 1u);
}

// So that its object is the same whatever else is compiled.
TEST(KernelSet, WhatAllLibrariesMayHaveIsAUnitOfItsOwn) {
  KernelSet kernels;
  for (int i = 0; i < 3; ++i) {
    codegen::KernelSource source = source_of("kernel_" + std::to_string(i), 100);
    source.others.push_back(text_of("table", 1000));
    source.others.back().declaration = "void table();\n";
    kernels.add(std::move(source));
  }
  const auto units = kernels.units({1, 1});
  ASSERT_EQ(units.size(), 3u);
  EXPECT_TRUE(units[0].shared);
  EXPECT_EQ(places(units, "table"), std::vector<size_t>{0});
  for (int i = 0; i < 3; ++i) EXPECT_NE(places(units, "kernel_" + std::to_string(i)), std::vector<size_t>{0});
  EXPECT_FALSE(units[1].shared || units[2].shared);
}

TEST(KernelSet, LaunchedFunctionsAreNamedByTheUnitThatHasThem) {
  KernelSet kernels;
  codegen::KernelSource source = source_of("sum", 100);
  source.others.push_back(text_of("parts", 1000));
  source.launches = {launch_of("parts"), launch_of("sum_rows"), launch_of("sum")};
  kernels.add(std::move(source));
  EXPECT_EQ(kernels.size(), 2u);
  const auto units = kernels.units({1, 1});
  ASSERT_EQ(units.size(), 2u);
  for (const KernelUnit& unit : units) {
    const bool has_parts = unit.text.find("void parts();") != std::string::npos;
    EXPECT_EQ(unit.symbols,
              has_parts ? std::vector<std::string>{"parts"} : std::vector<std::string>({"sum", "sum_rows"}));
  }
  const KernelUnit alone = kernels.unit_of({"sum_rows"});
  EXPECT_EQ(alone.symbols, (std::vector<std::string>{"sum", "sum_rows"}));
  EXPECT_EQ(alone.text.find("void parts();"), std::string::npos);
}

}  // namespace
}  // namespace heddle::driver
