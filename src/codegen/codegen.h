#pragma once

#include <string>
#include <vector>

#include "codegen/text/numbers.h"
#include "schedule/kernel_plan.h"
#include "target/cuda_launch.h"

namespace heddle::codegen {

// Functions as text. The symbol carries a hash of the text without its comments: equal text, equal symbol.
struct KernelText {
  std::string symbol;
  std::vector<std::string> includes;  // "tile/kernel/cpu/gemm.h"
  std::string text;
  // What texts that name it begin with, where it is one that all libraries may have; "" elsewhere.
  std::string declaration = {};
  // Which numbers of the text, in the order of numbers_of(), are arguments; empty: none.
  std::vector<bool> as_arguments = {};
};

// One kernel.
//
// For a CPU the text defines `extern "C" void <symbol>(void* const* operands, void* scratch, int64_t begin, int64_t
// end)`, which runs tasks [begin, end). Each of `others` defines what it shares with other kernels: micro-kernels, and
// the function that kernels of one problem in different sizes call. Units may repeat them and lie in one library.
//
// For a GPU it defines one or more `extern "C" __global__` functions, named <symbol> or <symbol>_<what>, and so does
// each of `others`, by itself, so that kernels share what they have in common: a product that leaves sums of parts of k
// for any epilogue. `launches` says how the functions run, in order. Everything else in a text lies in a namespace of
// the symbol's name, since texts are joined into units. Pointer patches and tensor maps count operands as the
// description does; after its last operand n come two that the driver supplies: n is a workspace of `workspace_bytes`,
// whose content is arbitrary, n + 1 holds `counter_bytes` (at most kMostCounterBytes) that are zero when the first
// launch begins and that the last one has to leave zero: semaphores, barriers of the grid. Steps of one run share the
// counters.
struct KernelSource : KernelText {
  std::vector<KernelText> others;
  int64_t tasks = 1;
  int64_t scratch_bytes = 0;  // per thread
  std::vector<CudaLaunch> launches;
  int64_t workspace_bytes = 0, counter_bytes = 0;
  // What an operand after the last one of the description holds; empty: there is none. What has it needs neither
  // workspace nor counters.
  std::vector<int64_t> arguments;
};

// `choice` may make arguments of the numbers that `marks` says, on a GPU in kernels of memory-bound nodes; without it
// the text has literals only.
KernelSource emit(const schedule::KernelPlan& plan, const Target& target, NumberChoice* choice = nullptr,
                  Marks marks = Marks::kAll);

// Joins texts into one translation unit; repeated symbols are taken once.
std::string join_texts(const std::vector<const KernelText*>& texts);
std::string translation_unit(const std::vector<const KernelSource*>& kernels);

}  // namespace heddle::codegen
