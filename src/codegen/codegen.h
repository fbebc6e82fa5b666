#pragma once

#include <string>
#include <vector>

#include "codegen/names.h"
#include "codegen/text/numbers.h"
#include "schedule/kernel_plan.h"
#include "target/cuda_launch.h"

namespace heddle::codegen {

// Functions as text. The symbol carries a hash of the text without its comments: equal text, equal symbol.
struct KernelText {
  std::string symbol;
  std::vector<std::string> includes;  // "tile/kernel/cpu/gemm.h"
  std::string text;
  // For a text that all libraries may contain: the declaration that texts which use it begin with. Else "".
  std::string declaration = {};
  // Which numbers of the text, in the order of numbers_of(), are arguments; empty: none.
  std::vector<bool> as_arguments = {};
};

// One kernel.
//
// For a CPU the text defines `extern "C" void <symbol>(void* const* operands, void* scratch, int64_t begin, int64_t
// end)`, which runs tasks [begin, end). Each of `others` defines code that is shared with other kernels: micro-kernels,
// and the function that kernels of one problem in different sizes call. Several units of one library may contain it.
//
// For a GPU it defines one or more `extern "C" __global__` functions, named <symbol> or <symbol>_<what>. Each of
// `others` does so by itself, so that kernels share common code, such as a split-k product for any epilogue. `launches`
// says how the functions run, in order. Everything else in a text is in a namespace of the symbol's name, since texts
// are joined into units. Pointer patches and tensor maps number operands as the description does. After its n operands
// the driver supplies two more. Operand n is a workspace of `workspace_bytes` with arbitrary content. Operand n + 1
// holds `counter_bytes` (at most kMostCounterBytes) for semaphores and grid barriers. They are zero when the first
// launch begins, and the last launch must leave them zero. Steps of one run share the counters.
struct KernelSource : KernelText {
  std::vector<KernelText> others;
  int64_t tasks = 1;
  int64_t scratch_bytes = 0;  // per thread
  std::vector<CudaLaunch> launches;
  int64_t workspace_bytes = 0, counter_bytes = 0;
  // The content of one more operand after the description's last; empty: none. A kernel that has it needs neither
  // workspace nor counters.
  std::vector<int64_t> arguments;
};

// `choice` may turn the numbers that `marks` selects into arguments, on a GPU in kernels of memory-bound nodes. Without
// it, the text has only literals.
KernelSource emit(const schedule::KernelPlan& plan, const Target& target, NumberChoice* choice = nullptr,
                  Marks marks = Marks::kAll);

// Joins texts into one translation unit; repeated symbols are taken once.
std::string join_texts(const std::vector<const KernelText*>& texts);
std::string translation_unit(const std::vector<const KernelSource*>& kernels);

}  // namespace heddle::codegen
