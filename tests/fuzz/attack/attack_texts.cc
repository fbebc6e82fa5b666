#include <algorithm>
#include <regex>

#include "heddle/error.h"
#include "ir/text/text.h"
#include "passes/opt.h"
#include "target/target.h"
#include "tests/fuzz/attack/attack.h"
#include "tests/fuzz/attack/pipeline.h"
#include "tests/fuzz/graph_generator.h"
#include "tests/fuzz/hostile/text_mutator.h"

namespace heddle::fuzz {
namespace {

std::string random_text(Rng& rng) {
  GeneratorOptions options;
  options.memory_bound = rng.chance(0.3);
  options.max_nodes = static_cast<int>(rng.range(2, 16));
  options.max_elements = 300;
  const Case c = generate_case(static_cast<uint64_t>(rng.range(1, 100000)), options);
  return ir::print(c.graph, {.max_constant_elements = -1, .origins = rng.chance(0.2)});
}

// The types of results can be left out; then an edit that changes one changes those that follow from it.
std::string without_types(const std::string& text) {
  static const std::regex type(" : [a-z0-9]+\\[[0-9,]*\\](, [a-z0-9]+\\[[0-9,]*\\])*\n");
  return std::regex_replace(text, type, "\n");
}

class TextsAttack : public Attack {
 public:
  explicit TextsAttack(const AttackOptions& options) : options_(options) {}

  void make(uint64_t seed, const std::string& folder) override {
    Rng rng(seed);
    std::string text = random_text(rng);
    const std::string other = random_text(rng);
    if (rng.chance(0.85)) text = without_types(text);
    // Most edits break a rule of the primitives: half of the cases are taken from those that keep to them.
    const bool chosen = rng.chance(0.6);
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const std::string mutant = mutate_text(text, other, rng);
      write_bytes(folder + "/graph.hir", mutant);
      if (!chosen || parses(mutant)) return;
    }
  }

  std::string run(uint64_t seed, const std::string& folder) override {
    const std::string path = folder + "/graph.hir";
    const Target target = Target::host_cpu(1);
    const std::string once = passes::optimise_text(read_bytes(path), {}, {target});
    ir::parse(once);  // what `heddle opt` prints can be read again
    const bool whole = options_.run_every != 0 && seed % options_.run_every == 0;
    return compile_everywhere({.path = path, .seed = seed, .run = whole});
  }

  std::string main_file() const override { return "graph.hir"; }
  size_t parts(const std::string& text) const override {
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  }
  // Lines.
  std::string without(const std::string& text, size_t begin, size_t end) const override {
    std::string kept;
    size_t line = 0;
    for (const char c : text) {
      if (line < begin || line >= end) kept += c;
      line += c == '\n' ? 1 : 0;
    }
    return kept;
  }

 private:
  static bool parses(const std::string& text) {
    try {
      ir::parse(text);
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  static constexpr int kAttempts = 12;
  AttackOptions options_;
};

}  // namespace

std::unique_ptr<Attack> make_texts_attack(const AttackOptions& options) {
  return std::make_unique<TextsAttack>(options);
}

}  // namespace heddle::fuzz
