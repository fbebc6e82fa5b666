#include "profile/code/line_table.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "heddle/error.h"
#include "jit/compiler.h"
#include "profile/code/elf.h"
#include "target/target.h"

namespace heddle::profile::code {
namespace {

// Line 4 has a loop that line 9 has inlined; line 10 is the caller's own.
constexpr const char* kSource =
    "using int64_t = long;\n"
    "[[gnu::always_inline]] inline double polynomial(double x) {\n"
    "  double sum = 0;\n"
    "  for (int i = 0; i < 1000; ++i) sum = sum * x + i;\n"
    "  return sum;\n"
    "}\n"
    "extern \"C\" void kernel(void* const* operands, void*, int64_t begin, int64_t end) {\n"
    "  double* y = static_cast<double*>(operands[0]);\n"
    "  for (int64_t i = begin; i < end; ++i) y[i] = polynomial(y[i]);\n"
    "  y[begin] /= 3;\n"
    "}\n";

std::string compiled(std::vector<std::string> more) {
  jit::Recipe recipe{jit::compile_flags(CpuTarget{})};
  recipe.flags.insert(recipe.flags.end(), more.begin(), more.end());
  return jit::compile({kSource}, recipe, 1, true, {"kernel"}).bytes;
}

class LineTables : public ::testing::TestWithParam<const char*> {
 protected:
  const std::string elf = compiled({"-g1", GetParam()});
};

INSTANTIATE_TEST_SUITE_P(Versions, LineTables, ::testing::Values("-gdwarf-4", "-gdwarf-5"),
                         [](const auto& version) { return std::string(version.param + 2).replace(5, 1, ""); });

TEST_P(LineTables, EveryInstructionOfAFunctionHasALineOfTheText) {
  const LineTable table = LineTable::of(elf);
  const Section text = section_of(elf, ".text");
  EXPECT_GT(table.rows(), 5U);
  EXPECT_GT(table.inlined(), 0U);
  std::set<uint64_t> lines;
  size_t inlined = 0;
  for (uint64_t i = 0; i < text.bytes.size(); ++i) {
    const std::vector<Place> places = table.at(text.address + i);
    if (places.empty()) continue;
    EXPECT_EQ(places[0].file, jit::unit_file(kSource));
    lines.insert(places[0].line);
    if (places.size() < 2 || places[0].line > 6) continue;
    // What the callee's lines compute was inlined to line 9.
    EXPECT_EQ(places.back(), (Place{jit::unit_file(kSource), 9}));
    ++inlined;
  }
  EXPECT_TRUE(lines.contains(4));
  EXPECT_TRUE(lines.contains(10));
  EXPECT_LE(*lines.rbegin(), 11U);
  EXPECT_GT(inlined, 4U);
  EXPECT_TRUE(table.at(text.address + text.bytes.size() + 4096).empty());
}

TEST_P(LineTables, TheyDoNotChangeTheCode) {
  const std::string plain = compiled({});
  const Section with = section_of(elf, ".text"), without = section_of(plain, ".text");
  EXPECT_EQ(with.bytes, without.bytes);
  EXPECT_EQ(with.address, without.address);
  EXPECT_EQ(LineTable::of(plain).rows(), 0U);
}

TEST_P(LineTables, WhatIsDamagedIsRefusedOrRead) {
  const auto survives = [](const std::string& bytes) {
    try {
      const LineTable table = LineTable::of(bytes);
      table.at(0x1000);
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDamagedArtefact);
      return false;
    }
  };
  std::mt19937 random(7);
  for (size_t size = 0; size < elf.size(); size += 1 + random() % 97) EXPECT_FALSE(survives(elf.substr(0, size)));
  // The tables, whose bytes are the ones that matter, and then the headers.
  int read = 0, refused = 0;
  const auto damage = [&](std::string_view part) {
    const auto begin = static_cast<size_t>(part.data() - elf.data());
    for (int turn = 0; turn < 400 && !part.empty(); ++turn) {
      std::string bytes = elf;
      for (int i = 0; i < 1 + turn % 4; ++i) bytes[begin + random() % part.size()] = static_cast<char>(random());
      ++(survives(bytes) ? read : refused);
    }
  };
  for (const char* name :
       {".debug_line", ".debug_info", ".debug_abbrev", ".debug_ranges", ".debug_rnglists", ".debug_addr"}) {
    damage(section_of(elf, name).bytes);
  }
  damage(std::string_view(elf).substr(0, 64));
  EXPECT_GT(read, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace heddle::profile::code
