#pragma once

#include <map>
#include <string>
#include <vector>

#include "driver/compile/compile.h"
#include "driver/model/report.h"
#include "target/target.h"

namespace heddle::cli {

// The texts of a model's kernels, numbered from 1 in the order in which the model first uses them: what `explain
// --kernels` prints and `compile --emit` writes. Equal kernels are one text; a kernel that calls others, or launches
// several, has several.
class KernelTexts {
 public:
  KernelTexts(const driver::CompiledModel& model, const Target& target);

  size_t size() const { return symbols_.size(); }
  const std::string& symbol(size_t number) const { return symbols_.at(number - 1); }
  std::string file_name(size_t number) const;
  // The text, with names of the model where it is that of a stitch kernel, behind a comment that says what the kernel
  // computes, on what, how it is launched and where it is used.
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

// Writes the texts of a model's kernels into a folder, which is made if it is missing, and says so; compiles nothing.
// Throws kFile, before anything is written, where a file of such a name is not one that Heddle wrote, or was edited
// since.
void emit_kernels(const std::string& model, const CompileOptions& options, const std::string& folder);

// How a kernel is spread over the machine.
std::string grid_text(const driver::KernelReport& kernel);

}  // namespace heddle::cli
