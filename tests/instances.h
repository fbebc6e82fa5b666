#pragma once
// Which instances of a template a test compiles, and which cases it runs: a few on every run, all of them where
// HEDDLE_ALL_INSTANCES is set, as bench/gpu.sh does.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::test {

constexpr size_t kOneOf = 7;                // odd, so that instances which alternate are taken alike
constexpr size_t kOneOfNvrtc = 3 * kOneOf;  // which takes longer than the emulator's compiler
constexpr size_t kOneDrawn = 4;             // of cases that a run draws

inline bool takes_all_instances() {
  const char* all = std::getenv("HEDDLE_ALL_INSTANCES");
  return all != nullptr && *all != '\0';
}

// `most` is what makes sense to compile at all.
inline size_t instances(size_t most, size_t one_of = kOneOf) {
  return takes_all_instances() ? most : std::max<size_t>(1, (most + one_of - 1) / one_of);
}

// Whether the instance of this number, or of this text, is among them. A text's hash decides, so that a failure
// repeats.
inline bool takes_instance(size_t number, size_t one_of = kOneOf) {
  return takes_all_instances() || number % one_of == 0;
}
inline bool takes_instance(std::string_view text, size_t one_of = kOneOf) {
  return takes_instance(std::hash<std::string_view>()(text), one_of);
}

// True for one case in `one_of`, for other cases in each run. Runs with the same seed draw the same cases.
inline bool draws_instance(std::string_view text, size_t one_of = kOneDrawn) {
  const std::string seed = std::to_string(::testing::UnitTest::GetInstance()->random_seed());
  return takes_all_instances() || std::hash<std::string>()(seed + std::string(text)) % one_of == 0;
}

// One of the cases, another one in each run, or all of them.
template <typename Case>
std::vector<Case> draw(std::vector<Case> cases) {
  const auto seed = static_cast<size_t>(::testing::UnitTest::GetInstance()->random_seed());
  return takes_all_instances() ? cases : std::vector<Case>{cases[seed % cases.size()]};
}

// Adds the seed of what a test draws to its failures.
inline ::testing::ScopedTrace trace_seed() {
  return {__FILE__, __LINE__,
          "--gtest_random_seed=" + std::to_string(::testing::UnitTest::GetInstance()->random_seed())};
}

// `text` with 0 for every number that is no part of a word and for every word that begins with `name`: kernels of one
// form have one such text, whatever their sizes.
inline std::string without_numbers(std::string_view text, std::string_view name) {
  const auto in_word = [&](size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
  };
  std::string form;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (in_word(end)) ++end;
    const std::string_view word = text.substr(at, end - at);
    if (word.empty()) {
      form += text[at++];
      continue;
    }
    const bool is_number = std::isdigit(static_cast<unsigned char>(word[0])) != 0;
    form += is_number || (!name.empty() && word.starts_with(name)) ? "0" : word;
    at = end;
  }
  return form;
}

// The kinds of cases that a test has met: of each kind the first one runs on every run.
class Kinds {
 public:
  bool is_new(const std::string& kind) { return met_.insert(kind).second; }

 private:
  std::set<std::string> met_;
};

// Appends a line to the file that HEDDLE_TEST_KINDS names: which kinds of kernels ran (tests/README.md).
inline void note_kind(const std::string& kind) {
  const char* path = std::getenv("HEDDLE_TEST_KINDS");
  if (path != nullptr && *path != '\0') std::ofstream(path, std::ios::app) << kind + "\n" << std::flush;
}

}  // namespace heddle::test
