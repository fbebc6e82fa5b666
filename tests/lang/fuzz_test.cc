// Random programs on the CPU against the interpreter, and damaged texts. $HEDDLE_TILE_PROGRAMS: how many programs;
// $HEDDLE_TILE_SEED: the first seed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "heddle/error.h"
#include "lang/cpu/lower.h"
#include "lang/ir/parse.h"
#include "lang/ir/print.h"
#include "random_program.h"

namespace heddle::lang::testing {
namespace {

TEST(Fuzz, RandomProgramsAgreeWithTheInterpreter) {
  const unsigned count = variable("HEDDLE_TILE_PROGRAMS", 24), first = variable("HEDDLE_TILE_SEED", 1);
  constexpr unsigned kTogether = 16;
  for (unsigned at = 0; at < count; at += kTogether) {
    std::vector<Case> cases;
    for (unsigned i = at; i < std::min(count, at + kTogether); ++i) cases.push_back(random_program(first + i));
    expect_same(cases);
  }
}

TEST(Fuzz, TextsOfRandomProgramsReadAsTheSame) {
  for (unsigned seed = 1000; seed < 1200; ++seed) {
    Kernel kernel = parse_and_verify(random_program(seed).text);
    ASSERT_EQ(print(parse(print(kernel))), print(kernel)) << "seed " << seed;
    cpu::lower(kernel);
  }
}

// A text with some characters changed or lines moved.
std::string damaged(std::string text, std::mt19937& random) {
  const auto pick = [&](size_t below) { return static_cast<size_t>(random()) % below; };
  constexpr std::string_view kCharacters = "%{}()[]<>=:,@0129 xabfi.-\"\n";
  for (size_t i = 0; i < 1 + pick(4); ++i) {
    const size_t at = pick(text.size());
    switch (pick(4)) {
      case 0:
        text[at] = kCharacters[pick(kCharacters.size())];
        break;
      case 1:
        text.erase(at, 1 + pick(20));
        break;
      case 2:
        text.insert(at, 1, kCharacters[pick(kCharacters.size())]);
        break;
      default: {  // another word from elsewhere
        const size_t from = pick(text.size());
        text.insert(at, text.substr(from, 1 + pick(30)));
      }
    }
    if (text.empty()) text = " ";
  }
  return text;
}

TEST(Fuzz, DamagedTextsAreRefusedOrRun) {
  std::mt19937 random(11);
  int verified = 0;
  for (unsigned i = 0; i < 1500; ++i) {
    const std::string text = damaged(random_program(i % 50).text, random);
    try {
      Kernel kernel = parse_and_verify(text);
      cpu::lower(kernel);
      ++verified;
    } catch (const Error& error) {
      ASSERT_NE(error.code(), ErrorCode::kInternal) << error.what() << "\n" << text;
    }
  }
  EXPECT_GT(verified, 0);
}

}  // namespace
}  // namespace heddle::lang::testing
