#include "codegen/naming.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "codegen/region/cpu/stitch.h"
#include "codegen/region/cuda/stitch.h"

namespace heddle::codegen {
namespace {

constexpr size_t kMostLetters = 20;

// Keywords, and names of kernels that do not end in a number.
const std::set<std::string_view> kTaken = {
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
    "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return", "co_yield", "compl", "concept", "const",
    "const_cast", "consteval", "constexpr", "constinit", "continue", "decltype", "default", "delete", "do", "double",
    "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if",
    "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or",
    "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "requires", "return", "short", "signed",
    "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local", "throw",
    "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile",
    "wchar_t", "while", "xor", "xor_eq", "linux", "unix",
    // Of kernels.
    "across", "begin", "block", "blocks", "counters", "end", "first", "g", "heddle", "inside", "iterations", "k",
    "kernel", "lane", "live", "n", "operands", "own", "raw_shared", "scratch", "team", "tile", "turn", "u"};

// The last part of a path, in lower case and without the number by which exporters tell nodes apart ("Add_1"), as an
// identifier; "" where it is none, or too long to read.
std::string identifier_of(const std::string& name) {
  std::string word = name.substr(name.find_last_of("/.:") + 1);
  const size_t last = word.find_last_not_of("0123456789");
  if (last != std::string::npos && last > 0 && word[last] == '_') word.resize(last);
  for (char& c : word) {
    const auto byte = static_cast<unsigned char>(c);
    c = byte < 0x80 && std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : '_';
  }
  const bool letter = !word.empty() && std::isalpha(static_cast<unsigned char>(word[0])) != 0;
  return letter && word.size() <= kMostLetters && word.find("__") == std::string::npos ? word : "";
}

// Kernels count what they have many of: t0, sum1, int32_t.
bool is_taken(const std::string& word) {
  const bool counted = std::isdigit(static_cast<unsigned char>(word.back())) != 0 || word.ends_with("_t");
  return counted || kTaken.contains(word);
}

}  // namespace

std::string operand_name(const Naming* naming, const schedule::KernelDesc& desc, size_t i) {
  if (naming != nullptr) return naming->operands.at(i);
  return fmt::format("{}{}", desc.operands[i].role == schedule::Operand::Role::kInput ? 'x' : 'y', i);
}

std::vector<std::string> identifiers_of(const std::vector<NamedOperand>& operands) {
  std::vector<std::string> result;
  std::set<std::string> used;
  for (size_t i = 0; i < operands.size(); ++i) {
    std::string word = identifier_of(operands[i].name);
    const bool plain = !word.empty() && !is_taken(word) && used.insert(word).second;
    if (!plain)
      word = word.empty() ? fmt::format("{}{}", operands[i].output ? 'y' : 'x', i) : fmt::format("{}_{}", word, i);
    result.push_back(std::move(word));
  }
  return result;
}

std::optional<std::string> emit_named(const schedule::KernelPlan& plan, const Naming& naming) {
  using Text = std::optional<std::string>;
  return plan.desc.visit(
      [&](const schedule::CpuStitchDesc& stitch) -> Text {
        return emit_cpu_stitch(plan.desc, stitch, plan.config, false, &naming).text;
      },
      [&](const schedule::CudaStitchDesc& stitch) -> Text {
        return emit_cuda_stitch(plan, stitch, false, &naming).text;
      },
      [](const auto&) -> Text { return std::nullopt; });
}

}  // namespace heddle::codegen
