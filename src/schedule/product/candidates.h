#pragma once

#include <string>
#include <vector>

#include "schedule/product/contraction.h"

namespace heddle::schedule {

// Blockings around the cost model's, which comes first: each differs from it in one choice.
std::vector<Config> gemm_candidates(const GemmDesc& desc, DType compute, const Target& target);
std::vector<Config> conv_candidates(const ConvDesc& desc, DType compute, const Target& target);
std::vector<Config> planar_candidates(const ConvDesc& desc, DType compute, const Target& target);
std::vector<Config> winograd_candidates(const WinogradDesc& desc, const Target& target);

// The parts of a problem's text (ConfigSource): an operand by its type and strides, constants (which are packed)
// without.
std::string gemm_operand_text(const ir::Graph& graph, ir::ValueId value, int64_t row, int64_t column);
std::string gemm_problem_text(const tile::GemmShape& shape, DType compute, const std::string& a, const std::string& b);

}  // namespace heddle::schedule
