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
  double cost = 0;      // of compiling it, as an equivalent number of bytes of text
  bool shared = false;  // a text that all libraries may contain
};

// A text that somebody wrote in place of a generated one.
struct EditedText {
  std::string file;
  codegen::KernelText text;
};

// The texts of a model's kernels by symbol: layers share equal ones.
class KernelSet {
 public:
  // Returns the symbol of the kernel.
  const std::string& add(codegen::KernelSource source);
  void add(const KernelSet& other);
  // Adds the cheapest kernels of `other` as long as the total cost is at most `most_cost`.
  void add_cheapest(const KernelSet& other, double most_cost);
  // The text that add() received under this symbol.
  const codegen::KernelText& text_of(const std::string& symbol) const { return kernels_.at(symbol).text; }
  // Compiles these in place of the texts that add() received. Returns the edited texts that match no kernel.
  std::vector<EditedText> replace(std::map<std::string, EditedText> edited);
  const std::map<std::string, EditedText>& edited() const { return edited_; }
  // The number of kernels, without the functions that several kernels call on a CPU.
  size_t size() const;
  // On a CPU: the symbols that steps name.
  std::vector<std::string> step_symbols() const;
  // The cost of compiling all kernels, in the unit of KernelUnit::cost.
  double cost() const;
  // The kernels in translation units whose compile times have about the ratios `shares`; fewer units if there are fewer
  // kernels. Texts that all libraries may contain come first, each in its own unit.
  std::vector<KernelUnit> units(const std::vector<int>& shares) const;
  // The kernels whose steps (on a CPU) or launches (on a GPU) have a symbol in `wanted`, with the functions that they
  // call.
  KernelSet subset(const std::set<std::string>& wanted) const;
  // One unit with the kernels whose launches have any of these symbols. GPU only.
  KernelUnit unit_of(const std::set<std::string>& symbols) const;

 private:
  struct Kernel {
    codegen::KernelText text;
    std::set<std::string> symbols;  // that launches name
    bool is_step = false;           // on a CPU: steps name it
    std::set<std::string> calls;    // on a CPU: others that it may call
  };
  // The text that is compiled: the edited one if there is one.
  const codegen::KernelText& chosen(const Kernel& kernel) const;

  std::map<std::string, Kernel> kernels_;
  std::map<std::string, EditedText> edited_;
};

}  // namespace heddle::driver
