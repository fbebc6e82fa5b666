#pragma once

#include <string>
#include <vector>

#include "codegen/names.h"
#include "codegen/text/numbers.h"
#include "schedule/kernel_plan.h"
#include "target/cuda_launch.h"

namespace heddle::codegen {

// Functions as source text. The symbol contains a hash of the text without its comments, so equal texts have equal
// symbols.
struct KernelText {
  std::string symbol;
  std::vector<std::string> includes;  // "tile/kernel/cpu/gemm.h"
  std::string text;
  // For a text that several libraries may contain: the declaration at the start of each text that uses it. Else "".
  std::string declaration = {};
  // For each number of the text, in the order of numbers_of(): true if it is a kernel argument. Empty if none is.
  std::vector<bool> as_arguments = {};
};

// The source of one kernel.
//
// On a CPU, the text defines `extern "C" void <symbol>(void* const* operands, void* scratch, int64_t begin, int64_t
// end)`, which runs tasks [begin, end). Each of `others` defines code that several kernels share: micro-kernels, and
// the function that all sizes of one problem call. Several units of one library may contain the same text of `others`.
//
// On a GPU, the text defines one or more `extern "C" __global__` functions, named <symbol> or <symbol>_<suffix>. Each
// of `others` does the same; such texts are common code of several kernels, for example a split-k product for any
// epilogue. `launches` lists the launches of these functions in order. Everything else in a text is in a namespace with
// the symbol's name, since texts are joined into units. Pointer patches and tensor maps number operands as the
// description does. The driver passes two more operands after the description's n operands. Operand n is a workspace of
// `workspace_bytes` with arbitrary content. Operand n + 1 holds `counter_bytes` (at most kMostCounterBytes) for
// semaphores and grid barriers. These counters are zero when the first launch begins, and the last launch must leave
// them zero. All steps of a run share the counters.
struct KernelSource : KernelText {
  std::vector<KernelText> others;
  int64_t tasks = 1;
  int64_t scratch_bytes = 0;  // per thread
  std::vector<CudaLaunch> launches;
  int64_t workspace_bytes = 0, counter_bytes = 0;
  // The content of an additional operand after the description's last one. Empty if there is no such operand. A kernel
  // with this operand needs no workspace and no counters.
  std::vector<int64_t> arguments;
};

// Writes the source of a kernel. On a GPU, `choice` may turn numbers that `marks` selects into arguments, in kernels
// of memory-bound nodes. Without `choice`, all numbers are literals.
KernelSource emit(const schedule::KernelPlan& plan, const Target& target, NumberChoice* choice = nullptr,
                  Marks marks = Marks::kAll);

// Joins texts into one translation unit. A symbol that occurs repeatedly is included once.
std::string join_texts(const std::vector<const KernelText*>& texts);
std::string translation_unit(const std::vector<const KernelSource*>& kernels);

}  // namespace heddle::codegen
