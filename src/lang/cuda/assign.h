#pragma once

#include <unordered_map>
#include <vector>

#include "lang/cuda/axis_facts.h"
#include "lang/cuda/layout.h"
#include "lang/ir/kernel.h"

// Chooses the layout of every tile of a kernel. Tiles that are combined elementwise or carried by a loop form a set and
// share one layout. If the set includes accumulators of a product, the layout is that of the accumulators. Any other
// set gets a layout that avoids conversions from or to a set whose layout is already known. If there is none, the
// layout suits the widest load or store of the set. A set without loads and stores gets a default layout.
namespace heddle::lang::cuda {

// How a product is computed.
struct DotPlan {
  std::string by;    // the C++ type that computes the product: "block::by_f16"
  std::string sums;  // the C++ type of the accumulators' layout: "block::mma_layout<...>"
  bool by_thread = false;
  bool by_group = false;  // computed by warpgroup instructions (wgmma)
  bool swapped = false;   // computes the transposed product, since there are few rows
  int pieces = 1;
  int64_t element = 2;  // bytes of an operand's element in shared memory
  Layout layout;        // of the accumulators
  WarpGrid grid{};      // tensor cores only
};

struct Assignment {
  std::vector<Layout> layouts;  // indexed by value; meaningful only for tiles
  std::unordered_map<const Op*, DotPlan> dots;

  const Layout& of(ValueId v) const { return layouts[static_cast<size_t>(v)]; }
};

struct AssignOptions {
  int64_t warps = 4;
  bool warpgroups = false;  // the target has wgmma
};

Assignment assign_layouts(const Kernel& kernel, const std::vector<AxisFacts>& facts, const AssignOptions& options);

// The number of elements that one access through a pointer moves in this layout. `element` is the size of an element in
// bytes.
int64_t access_vector(const Layout& layout, const AxisFacts& facts, int64_t element);

// True if each thread's registers hold runs of 16 bytes of consecutive elements, and the addresses of these runs are
// not known to be multiples of 8. Loads then shift the bytes into position. `element` is the size of an element in
// bytes.
bool is_shifted(const Layout& layout, const AxisFacts& facts, int64_t element);

// The number of elements along the last dimension that one access to a window of a view moves. `offsets` is the
// position of the window's first element.
int64_t view_vector(const Kernel& kernel, const std::vector<AxisFacts>& facts, ValueId view,
                    const std::vector<ValueId>& offsets);

}  // namespace heddle::lang::cuda
