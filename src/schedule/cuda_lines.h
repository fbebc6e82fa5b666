#pragma once

#include <string>
#include <vector>

#include "schedule/cuda_tile.h"

namespace heddle::schedule {

// The configurations of tile/kernel/cuda/gemm_lines.h (Engine::kLines) for a problem; none where it is none for it. For
// enumerate().
std::vector<CudaTileConfig> lines_configs(const CudaTileProblem& problem, const CudaTarget& target);

// Why one cannot run; empty: it can.
std::string reject_lines(const CudaTileConfig& config, const CudaTileProblem& problem, const CudaTarget& target);

double predict_lines_us(const CudaTileProblem& problem, const CudaTileConfig& config, const CudaTarget& target);

// Of one of the problem's operands: what all of its lines are multiples of, in bytes, at most 16.
int line_alignment(const CudaOperand& operand);

// The launch, without operands. Partial sums lie in the kernel's operand `workspace`.
CudaLaunch lines_launch(const CudaTileProblem& problem, const CudaTileConfig& config, int workspace);

// Columns of D that the epilogue gets at once.
int lines_neighbours(const CudaTileProblem& problem, const CudaTileConfig& config);

// Blocks of a multiprocessor that registers and shared memory allow.
int lines_resident(const CudaTileConfig& config);

}  // namespace heddle::schedule
