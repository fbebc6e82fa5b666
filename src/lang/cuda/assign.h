#pragma once

#include <unordered_map>
#include <vector>

#include "lang/cuda/axis_facts.h"
#include "lang/cuda/layout.h"
#include "lang/ir/kernel.h"

// Chooses the layout of every tile of a kernel. Values combined element by element, and the values that a loop carries,
// share one layout. It is that of the tensor cores if sums of a product are among them, else the one that suits their
// loads and stores, else that of the values made from them.
namespace heddle::lang::cuda {

// How a product is computed.
struct DotPlan {
  std::string by;    // "block::by_f16"
  std::string sums;  // "block::mma_layout<...>"
  bool by_thread = false;
  bool by_group = false;  // by the warpgroup instruction (wgmma)
  bool swapped = false;   // computes the transpose, since there are few rows
  int pieces = 1;
  int64_t element = 2;  // bytes of an element in shared memory
  Layout layout;        // of the sums
  WarpGrid grid{};      // on tensor cores
};

struct Assignment {
  std::vector<Layout> layouts;  // by value; meaningful only for tiles
  std::unordered_map<const Op*, DotPlan> dots;

  const Layout& of(ValueId v) const { return layouts[static_cast<size_t>(v)]; }
};

struct AssignOptions {
  int64_t warps = 4;
  bool warpgroups = false;  // the target has wgmma
};

Assignment assign_layouts(const Kernel& kernel, const std::vector<AxisFacts>& facts, const AssignOptions& options);

// Elements that one access through a pointer in this layout moves at once.
int64_t access_vector(const Layout& layout, const AxisFacts& facts, int64_t element);

// True if registers hold runs of 16 bytes of consecutive elements that may start off a multiple of 8 bytes, so that
// loads shift them into place.
bool is_shifted(const Layout& layout, const AxisFacts& facts, int64_t element);

// Elements along the last dimension that one access through a window of a view moves. `offsets`: the first element of
// the window.
int64_t view_vector(const Kernel& kernel, const std::vector<AxisFacts>& facts, ValueId view,
                    const std::vector<ValueId>& offsets);

}  // namespace heddle::lang::cuda
