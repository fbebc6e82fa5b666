#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::schedule {

// The memory through which a value passes from its producer to its consumer (after AStitch).
enum class Scheme : uint8_t {
  kIndependent,  // nothing passes: computed beside the others in one kernel
  kLocal,        // in a register
  kRegional,     // in the scratch of the thread, within one iteration of the grid
  kCluster,      // between the blocks of a cluster, through their shared memory
  kGlobal,       // in a workspace, between two kernels; the step boundary is the barrier
};

// A value that is stored instead of recomputed, and the reason for its place.
struct SchemeChoice {
  std::string value;  // "max of Softmax"
  Scheme scheme;
  bool dominant;  // false: a costly elementwise value that several stages read (a sub-dominant)
  std::string reason;
  bool operator==(const SchemeChoice&) const = default;
};

// Forces the threads that share a reducing iteration, to compare with the cost model's choice. If the forced mapping is
// not possible, the cost model chooses.
enum class ForcedMapping : uint8_t {
  kNone,
  kWarp,     // at most a warp a row, or a thread a vector of columns
  kBlock,    // a block
  kCluster,  // several blocks
  kParts,    // two kernels, the second of which joins the parts
};

// The optimisations that the stitching scheduler may use. All are on by default; they are turned off to compare them.
struct StitchOptions {
  // Grids, column blocks, tiles and splits of reductions follow shape and machine. If false, there is one iteration for
  // each element that the outputs share, in narrow blocks of columns; on a GPU, one block for each iteration that
  // reduces.
  bool adaptive_mapping = true;
  // Results of reductions and costly values stay on chip. If false, reductions are handed on through memory and costly
  // values are recomputed.
  bool data_reuse = true;
  // Reductions and outputs over the same data share one sweep. If false, each has its own.
  bool dominant_merging = true;
  ForcedMapping mapping = ForcedMapping::kNone;  // of reductions on a GPU
  bool operator==(const StitchOptions&) const = default;
};

// A stitch kernel in numbers.
struct StitchFacts {
  std::string mapping;  // "8192 rows x [1024], 8 tasks": the fixed variables of an iteration, and its sweep
  std::vector<SchemeChoice> schemes;
  int64_t on_chip_bytes = 0;     // scratch of a thread; shared memory of a block
  int64_t barriers = 0;          // inside the kernel, across threads or blocks
  double bytes_moved = 0;        // each buffer read and written once
  double predicted_seconds = 0;  // by the cost model, on all threads
};

// A value that one kernel of a group hands to another through memory, and the reason why the kernels are separate.
struct Boundary {
  std::string value;  // "reduce f32[256]"
  double bytes = 0;   // written once, read once or more
  std::string reason;
};

}  // namespace heddle::schedule
