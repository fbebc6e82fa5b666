#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/codegen.h"
#include "schedule/region/cuda/stitch.h"
#include "schedule/region/stitch.h"

namespace heddle::codegen {

// Returns the beginning of a kernel's symbol, which describes the computation: "layer_norm_768", "softmax_128",
// "sum_exp_mul". It depends only on the content of the kernel's text, so that equal texts have equal symbols. It
// contains no names of the model and no extents that are passed at launch.
std::string kernel_name(const schedule::CpuStitchDesc& body, bool with_extents);
std::string kernel_name(const schedule::CudaStitchDesc& body);

// Returns the operators of an epilogue, such as "_add_max"; "" if it has none.
std::string operators_of(const schedule::ExprPool& pool, const std::vector<schedule::ExprId>& roots);

// The placeholder for a kernel's name in the text from which the name is derived.
inline constexpr const char* kStandIn = "KERNEL_NAME";

// The head of a GPU function: its symbol, and whether the function first waits for the previous launch.
struct KernelHead {
  std::string symbol;
  bool waits = false;
};
// The first lines of a kernel that waits for the previous launch.
inline constexpr const char* kWait =
    "heddle::tile::sm90::launch_dependents();\n  heddle::tile::sm90::grid_dependency_wait();";
std::string first_lines(const KernelHead& head);
inline constexpr const char* kWaitHeader = "tile/arch/sm90/dependent.h";

// A kernel's text as a function of its head.
using TextOf = std::function<std::string(const KernelHead&)>;

// Writes a kernel and derives its name from its text, in which `stand_in` stands for the name. `waits` is the same for
// all kernels of a device, so the name does not depend on it.
void name_kernel(KernelText& kernel, std::string_view prefix, const TextOf& text, bool waits,
                 const std::string& stand_in = kStandIn);

// Returns the symbol of a kernel with this text. The text contains a stand-in for the symbol.
std::string symbol_of(std::string_view prefix, const std::string& text);

// Replaces `placeholder` in a complete kernel text by the kernel's symbol, and returns the symbol. Texts that differ
// only in comments have equal symbols.
std::string name_kernel(std::string& text, std::string_view prefix, std::string_view placeholder = kStandIn);

}  // namespace heddle::codegen
