#include "profile/code/cubin_lines.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "heddle/error.h"
#include "jit/cuda/nvrtc.h"
#include "profile/code/elf.h"

namespace heddle::profile::code {
namespace {

// `first` inlines lines 1 to 5 at line 7, `second` at line 10.
constexpr const char* kText =
    "__device__ inline float polynomial(float x) {\n"
    "  float sum = 0;\n"
    "  for (int i = 0; i < 100; ++i) sum = sum * x + i;\n"
    "  return sum;\n"
    "}\n"
    "extern \"C\" __global__ void first(float* y) {\n"
    "  y[threadIdx.x] = polynomial(y[threadIdx.x]);\n"
    "}\n"
    "extern \"C\" __global__ void second(float* y) {\n"
    "  y[threadIdx.x] += polynomial(rsqrtf(y[threadIdx.x]));\n"
    "}\n";

class CubinLinesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      lined = jit::compile_cubin(kText, "sm_90a", true, jit::Slow::kRefuse, jit::Lines::kWritten).bytes;
      plain = jit::compile_cubin(kText, "sm_90a", true).bytes;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNoCompiler) throw;
      GTEST_SKIP() << error.what();
    }
  }
  std::string lined, plain;
};

TEST_F(CubinLinesTest, EveryInstructionHasALineOfItsKernel) {
  const std::pair<const char*, uint64_t> kernels[] = {{"first", 7}, {"second", 10}};
  for (const auto& [kernel, call] : kernels) {
    const CubinLines table = CubinLines::of(lined, kernel);
    const std::string_view code = code_of(lined, kernel);
    ASSERT_FALSE(code.empty());
    size_t inlined = 0, known = 0;
    for (uint64_t offset = 0; offset < code.size(); offset += 16) {
      const std::vector<Place> places = table.at(offset);
      if (places.empty()) continue;
      ++known;
      EXPECT_EQ(places.back().file, "kernel.cu");
      // A kernel's own lines, but for those of an inlined function, whose call is known.
      EXPECT_NEAR(static_cast<double>(places.back().line), static_cast<double>(call), 1) << kernel << " " << offset;
      if (places[0] == Place{"kernel.cu", 3}) {
        EXPECT_EQ(places.back(), (Place{"kernel.cu", call}));
        ++inlined;
      }
    }
    EXPECT_GT(known * 16, code.size() / 2);
    EXPECT_GT(inlined, 4U);
    EXPECT_TRUE(table.at(code.size()).empty());
  }
  EXPECT_EQ(CubinLines::of(lined, "third").rows(), 0U);
}

TEST_F(CubinLinesTest, TheyDoNotChangeTheCode) {
  for (const char* kernel : {"first", "second"}) {
    EXPECT_EQ(code_of(lined, kernel), code_of(plain, kernel));
    EXPECT_EQ(CubinLines::of(plain, kernel).rows(), 0U);
  }
  EXPECT_TRUE(code_of(plain, "third").empty());
}

TEST_F(CubinLinesTest, WhatIsDamagedIsRefusedOrRead) {
  const auto survives = [](const std::string& bytes) {
    try {
      const CubinLines table = CubinLines::of(bytes, "first");
      for (uint64_t offset = 0; offset < 4096; offset += 16) table.at(offset);
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDamagedArtefact);
      return false;
    }
  };
  std::mt19937 random(11);
  int read = 0, refused = 0;
  for (const char* name : {".debug_line", ".rela.debug_line", ".symtab", ".strtab"}) {
    const std::string_view part = section_of(lined, name).bytes;
    ASSERT_FALSE(part.empty()) << name;
    const auto begin = static_cast<size_t>(part.data() - lined.data());
    for (int turn = 0; turn < 400; ++turn) {
      std::string bytes = lined;
      for (int i = 0; i < 1 + turn % 4; ++i) bytes[begin + random() % part.size()] = static_cast<char>(random());
      ++(survives(bytes) ? read : refused);
    }
  }
  for (size_t size = 0; size < lined.size(); size += 1 + random() % 197)
    ++(survives(lined.substr(0, size)) ? read : refused);
  EXPECT_GT(read, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace heddle::profile::code
