#pragma once

#include <string>

#include "schedule/product/cuda/wgmma/wgmma.h"

namespace heddle::schedule {

// Products whose long operand has rows that begin at any address, read by TMA where they lie: rows of one
// class, so many apart, begin equally far behind a multiple of 16 bytes, and the short operand is copied once for each
// class, that many bytes later. By tile/kernel/cuda/gemm/sm90_cluster_splitk.h (WgmmaProblem::classed).

// The classes of the kernel's A: 2, 4 or 8. 0: it has none, or the problem is none for it.
int classes_of(const WgmmaProblem& problem, bool swapped);

// Bytes of the copies of the kernel's B.
int64_t misaligned_copies_bytes(const WgmmaProblem& problem, bool swapped);

// The k-tiles of all classes.
int64_t class_k_tiles(const WgmmaProblem& problem);

// The launch that copies, "gemm_copies", and the maps of the product: one of A for each class, one of B. `from` and
// `workspace` are operands of the kernel.
CudaLaunch misaligned_copies_launch(const WgmmaProblem& problem, bool swapped, int workspace);
std::vector<TensorMapDesc> class_maps(const WgmmaProblem& problem, const ClusterSplitKConfig& config, int workspace);

// How far row 0 of the kernel's A begins behind a multiple of 16 bytes, and how much further every other one.
int class_skip(const WgmmaProblem& problem, bool swapped);
int class_skip_step(const WgmmaProblem& problem, bool swapped);

}  // namespace heddle::schedule
