#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/codegen.h"

namespace heddle::driver {

struct KernelUnit {
  std::string text;
  std::vector<std::string> symbols;  // that launches name; on a GPU only
  size_t kernels = 0;
  double cost = 0;      // of compiling it, in a measure of its own
  bool shared = false;  // one text that all libraries may have
};

// A text that somebody wrote in place of a generated one.
struct EditedText {
  std::string file;
  codegen::KernelText text;
};

// The texts of a model's kernels by symbol: layers share those that they have in common.
class KernelSet {
 public:
  // Returns the symbol of the kernel.
  const std::string& add(codegen::KernelSource source);
  void add(const KernelSet& other);
  // The cheapest kernels of the other one, as far as all cost at most so much.
  void add_cheapest(const KernelSet& other, double most_cost);
  // What add() was given under this symbol.
  const codegen::KernelText& text_of(const std::string& symbol) const { return kernels_.at(symbol).text; }
  // From now on these are compiled in place of what add() was given. Returns those that are none of its kernels.
  std::vector<EditedText> replace(std::map<std::string, EditedText> edited);
  const std::map<std::string, EditedText>& edited() const { return edited_; }
  // How many there are, without the functions that several call on a CPU.
  size_t size() const;
  // On a CPU: the symbols that steps name.
  std::vector<std::string> step_symbols() const;
  // What compiling all costs, in the measure of KernelUnit::cost.
  double cost() const;
  // Cut into translation units that take about these shares of the time to compile all, as long as there are kernels.
  // In front of them come texts that all libraries may have, each by itself.
  std::vector<KernelUnit> units(const std::vector<int>& shares) const;
  // The kernels that steps on a CPU, or launches on a GPU, name by `wanted`, with what they call.
  KernelSet subset(const std::set<std::string>& wanted) const;
  // The kernels that launch any of these, in one unit. On a GPU only.
  KernelUnit unit_of(const std::set<std::string>& symbols) const;

 private:
  struct Kernel {
    codegen::KernelText text;
    std::set<std::string> symbols;  // that launches name
    bool is_step = false;           // on a CPU: steps name it
    std::set<std::string> calls;    // on a CPU: others that it may call
  };
  // What is compiled.
  const codegen::KernelText& chosen(const Kernel& kernel) const;

  std::map<std::string, Kernel> kernels_;
  std::map<std::string, EditedText> edited_;
};

}  // namespace heddle::driver
