#pragma once

#include <map>
#include <string>
#include <vector>

#include "driver/compile/compile.h"
#include "driver/model/report.h"
#include "target/target.h"

namespace heddle::cli {

// The source texts of a model's kernels, numbered from 1 in order of first use by the model. `explain --kernels` prints
// them and `compile --emit` writes them. Identical kernels share one text. A kernel that calls other kernels, or
// launches several kernels, has several texts.
class KernelTexts {
 public:
  KernelTexts(const driver::CompiledModel& model, const Target& target);

  size_t size() const { return symbols_.size(); }
  const std::string& symbol(size_t number) const { return symbols_.at(number - 1); }
  std::string file_name(size_t number) const;
  // The content of the text's file. It begins with a comment that describes the computation, the values, the launch and
  // the uses of the kernel. The text of a stitch kernel uses names of the model.
  std::string file(size_t number) const;
  // The numbers of a kernel's texts: "3" or "3, 4".
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

// Writes the texts of a model's kernels to a folder, which is created if necessary, and prints the number of texts. No
// kernel is compiled. Throws kFile if a file with the name of a text was not written by Heddle or was edited since;
// nothing is written in that case.
void emit_kernels(const std::string& model, const CompileOptions& options, const std::string& folder);

// Describes the launches of a GPU kernel or the number of tasks of a CPU kernel.
std::string grid_text(const driver::KernelReport& kernel);

}  // namespace heddle::cli
