#include "jit/cuda/emulated.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/check.h"
#include "jit/compiler.h"
#include "target/cpu_features.h"
#include "target/target.h"

namespace heddle::jit {
namespace {

constexpr std::string_view kPrefix = "emulated_", kSm = "sm_";

// The words and marks of C++ text, without comments, literals and preprocessor lines.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : rest_(text) {}

  // "" at the end. Words are whole, everything else is one character.
  std::string_view next() {
    skip();
    if (rest_.empty()) return {};
    size_t length = 1;
    if (is_word(rest_[0])) {
      while (length < rest_.size() && is_word(rest_[length])) ++length;
    }
    return take(length);
  }
  // What lies between the parenthesis that comes next and its partner, as text.
  std::string_view parenthesised() {
    skip();
    if (!rest_.starts_with('(')) return {};
    int depth = 0;
    size_t end = 0;
    do {
      depth += rest_[end] == '(';
      depth -= rest_[end] == ')';
      ++end;
    } while (end < rest_.size() && depth > 0);
    const std::string_view inside = rest_.substr(1, end < 2 ? 0 : end - 2);
    take(end);
    return inside;
  }
  bool at_parenthesis() {
    skip();
    return rest_.starts_with('(');
  }

 private:
  static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
  std::string_view take(size_t count) {
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  void skip_past(std::string_view mark) {
    const size_t at = rest_.find(mark);
    take(at == std::string_view::npos ? rest_.size() : at + mark.size());
  }
  void skip_literal(char quote) {
    size_t at = 1;
    while (at < rest_.size() && rest_[at] != quote && rest_[at] != '\n') at += rest_[at] == '\\' ? 2 : 1;
    take(at + 1);
  }
  void skip() {
    while (!rest_.empty()) {
      if (std::isspace(static_cast<unsigned char>(rest_[0])) != 0) {
        take(1);
      } else if (rest_.starts_with("//") || rest_.starts_with('#')) {
        skip_past("\n");
      } else if (rest_.starts_with("/*")) {
        skip_past("*/");
      } else if (rest_[0] == '"') {
        skip_literal('"');
      } else {
        return;
      }
    }
  }

  std::string_view rest_;
};

std::vector<std::string> flags_for(std::string_view architecture) {
  CpuTarget cpu;
  if (cpu_features().avx2) {
    cpu.isa = CpuIsa::kAvx2;
    cpu.f16c = true;
  }
  std::vector<std::string> flags = compile_flags(cpu);
  // Compiling takes longer than running what is small enough to be emulated.
  flags.push_back("-Og");
  // What CUDA's compiler takes as it is meant: words of memory read as another type.
  flags.push_back("-fno-strict-aliasing");
  // GCC 12 adds half of the terms of int64_t sums over an array of pairs.
  flags.push_back("-fno-tree-loop-vectorize");
  // A misaligned access ends the launch. Code to go on behind each access would take the compiler longer.
  flags.push_back("-fsanitize=alignment");
  flags.push_back("-fno-sanitize-recover=alignment");
  // Kernels that report each access (tile/arch/emulated/accesses.h).
  const char* races = std::getenv("HEDDLE_EMULATOR_RACES");
  if (races != nullptr && std::string_view(races) == "1") flags.insert(flags.end(), {"-fsanitize=thread", "-g1"});
  const std::string_view chip = architecture.substr(kPrefix.size());
  if (chip.starts_with(kSm)) {
    flags.push_back(fmt::format("-D__CUDA_ARCH__={}0", chip.substr(kSm.size(), 2)));
  } else {
    const std::optional<HipTarget> hip = HipTarget::of_architecture(architecture);
    HEDDLE_CHECK(hip.has_value(), "{}", architecture);
    flags.insert(flags.end(), {"-DTILE_HIP=1", fmt::format("-DTILE_WARP_LANES={}", hip->lanes)});
  }
  return flags;
}

}  // namespace

bool is_emulated(std::string_view architecture) {
  return architecture.starts_with(kPrefix);
}

std::vector<DeclaredKernel> find_kernels(std::string_view unit) {
  std::vector<DeclaredKernel> kernels;
  Tokens tokens(unit);
  for (std::string_view token = tokens.next(); !token.empty(); token = tokens.next()) {
    if (token != "__global__") continue;
    DeclaredKernel kernel;
    for (token = tokens.next(); !token.empty(); token = tokens.next()) {
      if (!tokens.at_parenthesis()) continue;
      if (token == "__launch_bounds__") {
        kernel.launch_bounds = tokens.parenthesised();
      } else if (token == "__cluster_dims__") {
        kernel.cluster_dims = tokens.parenthesised();
      } else if (token.starts_with("__")) {
        tokens.parenthesised();  // another attribute
      } else {
        break;
      }
    }
    kernel.name = token;
    const bool known =
        std::any_of(kernels.begin(), kernels.end(), [&](const auto& k) { return k.name == kernel.name; });
    if (!kernel.name.empty() && !known) kernels.push_back(std::move(kernel));
  }
  return kernels;
}

CompiledCubin compile_emulated(const std::string& unit, const std::string& architecture, bool use_cache) {
  std::string text = "#include \"tile/arch/emulated/cuda.h\"\n#line 1 \"unit.cu\"\n" + unit + "\n";
  for (const DeclaredKernel& kernel : find_kernels(unit)) {
    text +=
        fmt::format("HEDDLE_EMULATED_KERNEL({}, ({}), ({}))\n", kernel.name, kernel.launch_bounds, kernel.cluster_dims);
  }
  // Without relocations that become read-only: the emulator sets the addresses of shared memory.
  Recipe recipe{flags_for(architecture), {"/tile/arch/emulated", ""}, {"-Wl,-z,norelro"}};
  recipe.loads_here = false;
  CompiledLibrary library = compile({text}, recipe, 1, use_cache);
  return {std::move(library.bytes), "", library.from_cache, library.seconds};
}

}  // namespace heddle::jit
