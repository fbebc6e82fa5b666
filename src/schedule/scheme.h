#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::schedule {

// How a value passes from where it is made to where it is used (after AStitch).
enum class Scheme : uint8_t {
  kIndependent,  // nothing passes: computed beside the others in one kernel
  kLocal,        // in a register
  kRegional,     // in the scratch of the thread, within one iteration of the grid
  kCluster,      // between the blocks of a cluster, through their shared memory
  kGlobal,       // in a workspace, between two kernels; the step boundary is the barrier
};

// A value that is stored rather than recomputed, and why it is stored there.
struct SchemeChoice {
  std::string value;  // "max of Softmax"
  Scheme scheme;
  bool dominant;  // false: a costly elementwise value that several stages read (a sub-dominant)
  std::string reason;
  bool operator==(const SchemeChoice&) const = default;
};

// Who shares an iteration that reduces, where that is not the cost model's choice but one to compare it with. What
// cannot be done so is done as the model says.
enum class ForcedMapping : uint8_t {
  kNone,
  kWarp,     // at most a warp a row, or a thread a vector of columns
  kBlock,    // a block
  kCluster,  // several blocks
  kParts,    // two kernels, the second of which joins the parts
};

// What the stitching optimiser may do: all of it, except where its parts are to be compared.
struct StitchOptions {
  // Grids, column blocks, tiles and splits of reductions by shape and machine; else an iteration for each element that
  // the outputs share, in narrow blocks of columns, and on a GPU a block for each iteration that reduces.
  bool adaptive_mapping = true;
  // Results of reductions and costly values stay on chip; else reductions are handed on through memory and costly
  // values computed again.
  bool data_reuse = true;
  // Reductions and outputs over the same data share one sweep; else each has its own.
  bool dominant_merging = true;
  ForcedMapping mapping = ForcedMapping::kNone;  // of reductions on a GPU
  bool operator==(const StitchOptions&) const = default;
};

// How a stitch kernel works, in numbers.
struct StitchFacts {
  std::string mapping;  // "8192 rows x [1024], 8 tasks": what an iteration fixes and what it sweeps over
  std::vector<SchemeChoice> schemes;
  int64_t on_chip_bytes = 0;     // scratch of a thread; shared memory of a block
  int64_t barriers = 0;          // inside the kernel, across threads or blocks
  double bytes_moved = 0;        // each buffer read and written once
  double predicted_seconds = 0;  // of the cost model, on all threads
};

// A value that one kernel of a group hands to another through memory, and why they are two.
struct Boundary {
  std::string value;  // "reduce f32[256]"
  double bytes = 0;   // written once, read once or more
  std::string reason;
};

}  // namespace heddle::schedule
