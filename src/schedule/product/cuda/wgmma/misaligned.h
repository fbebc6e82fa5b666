#pragma once

#include <string>

#include "schedule/product/cuda/wgmma/wgmma.h"

namespace heddle::schedule {

// Products whose long operand has rows at any address, which TMA reads in place. Every n-th row belongs to one class (n
// classes): its rows begin equally many bytes after a multiple of 16 bytes. The short operand is copied once per class,
// shifted by as many bytes. Used by tile/kernel/cuda/gemm/sm90_cluster_splitk.h (WgmmaProblem::classed).

// The number of classes of the kernel's A: 2, 4 or 8. 0: the kernel does not support the problem.
int classes_of(const WgmmaProblem& problem, bool swapped);

// Bytes of the copies of the kernel's B.
int64_t misaligned_copies_bytes(const WgmmaProblem& problem, bool swapped);

// The number of k-tiles of a row, equal for all classes.
int64_t class_k_tiles(const WgmmaProblem& problem);

// The launch of the copies, "gemm_copies", and the tensor maps of the product: one of A per class, one of B.
// `workspace` is an operand of the kernel.
CudaLaunch misaligned_copies_launch(const WgmmaProblem& problem, bool swapped, int workspace);
std::vector<TensorMapDesc> class_maps(const WgmmaProblem& problem, const ClusterSplitKConfig& config, int workspace);

// Bytes from a multiple of 16 bytes to row 0 of the kernel's A, and the increase of this offset per row (mod 16).
int class_skip(const WgmmaProblem& problem, bool swapped);
int class_skip_step(const WgmmaProblem& problem, bool swapped);

}  // namespace heddle::schedule
