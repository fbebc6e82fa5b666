#pragma once

#include <string>
#include <vector>

#include "schedule/kernel_desc.h"

namespace heddle::codegen {

// One kernel as text. The text defines `extern "C" void <symbol>(void* const* operands, void* scratch, int64_t begin,
// int64_t end)`, which runs tasks [begin, end). The symbol carries a hash of the text: equal text, equal symbol.
struct KernelSource {
  std::string symbol;
  std::vector<std::string> includes;  // "tile/kernel/cpu/gemm.h"
  std::string text;
  int64_t tasks = 1;
  int64_t scratch_bytes = 0;  // per thread
};

KernelSource emit(const schedule::KernelDesc& desc, const schedule::Config& config, const Target& target);

// Joins kernels into one translation unit; repeated symbols are taken once.
std::string translation_unit(const std::vector<const KernelSource*>& kernels, const Target& target);

}  // namespace heddle::codegen
