#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::schedule {

// The memory through which a value is passed from its producer to its consumer (after AStitch).
enum class Scheme : uint8_t {
  kIndependent,  // the value is not passed; computed alongside other values in one kernel
  kLocal,        // a register
  kRegional,     // scratch memory of the thread, within one iteration of the grid
  kCluster,      // shared memory of the blocks of a cluster
  kGlobal,       // a workspace, between two kernels; the boundary between steps is the barrier
};

// A value that is stored instead of recomputed, and the reason for this choice of memory.
struct SchemeChoice {
  std::string value;  // "max of Softmax"
  Scheme scheme;
  bool dominant;  // false: sub-dominant, a costly elementwise value that several stages read
  std::string reason;
  bool operator==(const SchemeChoice&) const = default;
};

// Forces the number of threads that share a reducing iteration, for comparison with the cost model's choice. If the
// forced mapping is impossible, the cost model chooses.
enum class ForcedMapping : uint8_t {
  kNone,
  kWarp,     // at most one warp per row, or one thread per vector of columns
  kBlock,    // one block
  kCluster,  // several blocks
  kParts,    // two kernels; the second combines the parts
};

// The optimisations of the stitching scheduler. All are on by default; they are turned off for comparisons.
struct StitchOptions {
  // Adapts grids, column blocks, tiles and splits of reductions to the shape and the machine. If false, uses one
  // iteration for each element that the outputs share, with narrow blocks of columns. On a GPU, uses one block for each
  // iteration that reduces.
  bool adaptive_mapping = true;
  // Keeps results of reductions and costly values on chip. If false, reductions are passed through memory, and costly
  // values are recomputed.
  bool data_reuse = true;
  // Computes reductions and outputs over the same data in one loop. If false, each has a separate loop.
  bool dominant_merging = true;
  // Lets more of a group be one launch on a GPU: reductions over different axes share one read, independent reductions
  // go side by side, and the last blocks of a kernel compute the next one. Products of several groups go side by side,
  // too. If false, only elementwise kernels share launches.
  bool global = true;
  ForcedMapping mapping = ForcedMapping::kNone;  // of reductions on a GPU
  bool operator==(const StitchOptions&) const = default;
};

// The properties of a stitch kernel, for reports.
struct StitchFacts {
  std::string mapping;  // variables that an iteration holds constant, and inner loop: "8192 rows x [1024], 8 tasks"
  std::vector<SchemeChoice> schemes;
  int64_t on_chip_bytes = 0;     // scratch of a thread on a CPU; shared memory of a block on a GPU
  int64_t barriers = 0;          // the number of barriers across threads or blocks inside the kernel
  double bytes_moved = 0;        // reading and writing each buffer once
  double predicted_seconds = 0;  // from the cost model, with all threads
};

// A value that one kernel of a group passes to another through memory, and the reason why the kernels are separate.
struct Boundary {
  std::string value;  // "reduce f32[256]"
  double bytes = 0;   // the value is written once and read at least once
  std::string reason;
};

}  // namespace heddle::schedule
