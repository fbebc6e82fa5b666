#pragma once

#include <unordered_map>
#include <vector>

#include "lang/cuda/axis_facts.h"
#include "lang/cuda/layout.h"
#include "lang/ir/kernel.h"

// The layout of every tile of a kernel. Values that meet element by element, and what a loop carries, have one layout;
// it is that of tensor cores where sums of a product are among them, else what their loads and stores want, else what
// values that are made of them have.
namespace heddle::lang::cuda {

// How a product is computed.
struct DotPlan {
  std::string by;    // "block::by_f16"
  std::string sums;  // "block::mma_layout<...>"
  bool by_thread = false;
  bool by_group = false;  // by the instruction of warpgroups
  bool swapped = false;   // which computes the transpose, since there are few rows
  int pieces = 1;
  int64_t element = 2;  // bytes of what lies in shared memory
  Layout layout;        // of the sums
  WarpGrid grid{};      // on tensor cores
};

struct Assignment {
  std::vector<Layout> layouts;  // by value; those of tiles count
  std::unordered_map<const Op*, DotPlan> dots;

  const Layout& of(ValueId v) const { return layouts[static_cast<size_t>(v)]; }
};

struct AssignOptions {
  int64_t warps = 4;
  bool warpgroups = false;  // have an instruction of their own
};

Assignment assign_layouts(const Kernel& kernel, const std::vector<AxisFacts>& facts, const AssignOptions& options);

// Elements that one access through `pointer` in this layout moves at once.
int64_t access_vector(const Layout& layout, const AxisFacts& facts, int64_t element);

// Whether registers hold groups of 16 bytes of neighbours which begin between multiples of 8 bytes, so that loads shift
// them into place.
bool is_shifted(const Layout& layout, const AxisFacts& facts, int64_t element);

// Elements along the last dimension that one access through a window of a view moves, `offsets` being its first ones.
int64_t view_vector(const Kernel& kernel, const std::vector<AxisFacts>& facts, ValueId view,
                    const std::vector<ValueId>& offsets);

}  // namespace heddle::lang::cuda
