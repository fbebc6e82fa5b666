#pragma once
// Which instances of a template a test compiles, and which cases it runs: a few on every run, all of them where
// HEDDLE_ALL_INSTANCES is set, as bench/gpu.sh does.

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace heddle::test {

constexpr size_t kOneOf = 7;                // odd, so that instances which alternate are taken alike
constexpr size_t kOneOfNvrtc = 3 * kOneOf;  // which takes longer than the emulator's compiler

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
