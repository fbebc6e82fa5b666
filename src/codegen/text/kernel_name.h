#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/codegen.h"
#include "schedule/region/cuda/stitch.h"
#include "schedule/region/stitch.h"

namespace heddle::codegen {

// What a kernel computes, as the beginning of its symbol: "layer_norm_768", "softmax_128", "sum_exp_mul". It depends on
// nothing but the content of the text, so that equal texts have equal symbols. It contains no names of the model and no
// extents that only the launch knows.
std::string kernel_name(const schedule::CpuStitchDesc& body, bool with_extents);
std::string kernel_name(const schedule::CudaStitchDesc& body);

// The operators of an epilogue: "_add_max", "" where there are none.
std::string operators_of(const schedule::ExprPool& pool, const std::vector<schedule::ExprId>& roots);

// The placeholder for a kernel's name in the text that the name is derived from.
inline constexpr const char* kStandIn = "KERNEL_NAME";

// The start of a GPU function: its symbol, and whether it first waits for the previous launch.
struct KernelHead {
  std::string symbol;
  bool waits = false;
};
// The first lines of one that waits.
inline constexpr const char* kWait =
    "heddle::tile::sm90::launch_dependents();\n  heddle::tile::sm90::grid_dependency_wait();";
std::string first_lines(const KernelHead& head);
inline constexpr const char* kWaitHeader = "tile/arch/sm90/dependent.h";

// A kernel's text as a function of its head.
using TextOf = std::function<std::string(const KernelHead&)>;

// Writes a kernel and derives its name from its text, in which `stand_in` stands for the name. Whether it waits is the
// same for all kernels of a device, so it is not part of the name.
void name_kernel(KernelText& kernel, std::string_view prefix, const TextOf& text, bool waits,
                 const std::string& stand_in = kStandIn);

// The symbol of a kernel of this text, which has a stand-in for it.
std::string symbol_of(std::string_view prefix, const std::string& text);

// The symbol of a kernel whose text is complete except for its name, written as `placeholder`: equal text but
// for comments, equal symbol.
std::string name_kernel(std::string& text, std::string_view prefix, std::string_view placeholder = kStandIn);

}  // namespace heddle::codegen
