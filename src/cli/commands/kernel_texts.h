#pragma once

#include <map>
#include <string>
#include <vector>

#include "driver/compile/compile.h"
#include "driver/model/report.h"
#include "target/target.h"

namespace heddle::cli {

// The source texts of a model's kernels, numbered from 1 in the order in which the model first uses them. `explain
// --kernels` prints them and `compile --emit` writes them. Equal kernels share one text. A kernel that calls other
// kernels, or launches several, has several texts.
class KernelTexts {
 public:
  KernelTexts(const driver::CompiledModel& model, const Target& target);

  size_t size() const { return symbols_.size(); }
  const std::string& symbol(size_t number) const { return symbols_.at(number - 1); }
  std::string file_name(size_t number) const;
  // The text after a comment that says what the kernel computes, on which values, how it is launched and where it is
  // used. The text of a stitch kernel uses names of the model.
  std::string file(size_t number) const;
  // "3", "3, 4": the numbers of a kernel's texts.
  std::string numbers_of(const driver::KernelReport& kernel) const;

 private:
  struct Use {
    size_t group;
    const driver::KernelReport* kernel;
  };
  std::string comment(const std::string& symbol, const std::vector<std::string>& names) const;

  const driver::CompiledModel& model_;
  const Target& target_;
  std::vector<std::string> symbols_;
  std::map<std::string, size_t> numbers_;         // by symbol
  std::map<std::string, std::vector<Use>> uses_;  // by symbol
};

// Writes the texts of a model's kernels to a folder, which it creates if necessary, and prints how many there are.
// Compiles no kernel. Throws kFile before it writes anything if it would overwrite a file that Heddle did not write or
// that was edited since.
void emit_kernels(const std::string& model, const CompileOptions& options, const std::string& folder);

// The launches of a kernel on a GPU, or its number of tasks on a CPU, as text.
std::string grid_text(const driver::KernelReport& kernel);

}  // namespace heddle::cli
