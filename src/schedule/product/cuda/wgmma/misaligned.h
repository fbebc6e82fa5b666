#pragma once

#include <string>

#include "schedule/product/cuda/wgmma/wgmma.h"

namespace heddle::schedule {

// This file describes products whose long operand (the one with more rows) has rows at arbitrary addresses. TMA reads
// these rows in place. The rows are divided into n classes; row i belongs to class i mod n. All rows of a class start
// at the same offset from a multiple of 16 bytes. The short operand is copied once per class, shifted by the class's
// offset. Used by tile/kernel/cuda/gemm/sm90_cluster_splitk.h (WgmmaProblem::classed).

// The number of classes of the kernel's A: 2, 4 or 8; 0 if the kernel does not support the problem.
int classes_of(const WgmmaProblem& problem, bool swapped);

// The bytes of all shifted copies of the kernel's B.
int64_t misaligned_copies_bytes(const WgmmaProblem& problem, bool swapped);

// The number of k-tiles per row, which is the same for all classes.
int64_t class_k_tiles(const WgmmaProblem& problem);

// misaligned_copies_launch() is the launch "gemm_copies", which makes the copies. class_maps() are the tensor maps of
// the product: one map of A per class, and one of B. `workspace` is the index of a kernel operand.
CudaLaunch misaligned_copies_launch(const WgmmaProblem& problem, bool swapped, int workspace);
std::vector<TensorMapDesc> class_maps(const WgmmaProblem& problem, const ClusterSplitKConfig& config, int workspace);

// class_skip() is the offset of row 0 of the kernel's A from a multiple of 16 bytes; class_skip_step() is the increase
// of this offset per row (mod 16).
int class_skip(const WgmmaProblem& problem, bool swapped);
int class_skip_step(const WgmmaProblem& problem, bool swapped);

}  // namespace heddle::schedule
