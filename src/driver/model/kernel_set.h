#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/codegen.h"

namespace heddle::driver {

struct KernelUnit {
  std::string text;
  std::vector<std::string> symbols;  // by which launches refer to its kernels; GPU only
  size_t kernels = 0;
  double cost = 0;      // the cost of compiling it, as an equivalent number of bytes of text
  bool shared = false;  // true for a text that every library may contain
};

// A text that a user wrote to replace a generated one.
struct EditedText {
  std::string file;
  codegen::KernelText text;
};

// The texts of a model's kernels by symbol. Layers with equal kernels share a text.
class KernelSet {
 public:
  // Adds a kernel and returns its symbol.
  const std::string& add(codegen::KernelSource source);
  void add(const KernelSet& other);
  // Adds the cheapest kernels of `other` while the total cost stays at most `most_cost`.
  void add_cheapest(const KernelSet& other, double most_cost);
  // The text that add() received under this symbol.
  const codegen::KernelText& text_of(const std::string& symbol) const { return kernels_.at(symbol).text; }
  // Makes the set compile `edited` instead of texts from add(). Returns the edited texts that match no kernel.
  std::vector<EditedText> replace(std::map<std::string, EditedText> edited);
  const std::map<std::string, EditedText>& edited() const { return edited_; }
  // The number of kernels. On a CPU, functions that several kernels call do not count.
  size_t size() const;
  // CPU only: the symbols that steps name.
  std::vector<std::string> step_symbols() const;
  // The cost of compiling all kernels, in the unit of KernelUnit::cost.
  double cost() const;
  // Distributes the kernels over translation units whose compile times have roughly the ratios `shares`. Returns fewer
  // units if there are fewer kernels. Texts that every library may contain come first, each in its own unit.
  std::vector<KernelUnit> units(const std::vector<int>& shares) const;
  // The kernels named by steps (on a CPU) or launches (on a GPU) with a symbol in `wanted`, and the functions that
  // these kernels call.
  KernelSet subset(const std::set<std::string>& wanted) const;
  // Returns a unit of the kernels to which launches refer by any of these symbols. GPU only.
  KernelUnit unit_of(const std::set<std::string>& symbols) const;

 private:
  struct Kernel {
    codegen::KernelText text;
    std::set<std::string> symbols;  // by which launches name it
    bool is_step = false;           // CPU: a step names it
    std::set<std::string> calls;    // CPU: symbols of functions that it may call
  };
  // The text to compile: the edited text if there is one, else the generated text.
  const codegen::KernelText& chosen(const Kernel& kernel) const;

  std::map<std::string, Kernel> kernels_;
  std::map<std::string, EditedText> edited_;
};

}  // namespace heddle::driver
