#pragma once

#include <string>
#include <vector>

#include "schedule/product/contraction.h"

namespace heddle::schedule {

// The cost model's blocking first, then blockings that differ from it in one choice.
std::vector<Config> gemm_candidates(const GemmDesc& desc, DType compute, const Target& target);
std::vector<Config> conv_candidates(const ConvDesc& desc, DType compute, const Target& target);
std::vector<Config> planar_candidates(const ConvDesc& desc, DType compute, const Target& target);
std::vector<Config> winograd_candidates(const WinogradDesc& desc, const Target& target);

// Parts of a problem's text (Problem::text). An operand is described by its type and strides, a constant (which is
// packed) by its type only.
std::string gemm_operand_text(const ir::Graph& graph, ir::ValueId value, int64_t row, int64_t column);
std::string gemm_problem_text(const tile::GemmShape& shape, DType compute, const std::string& a, const std::string& b);

}  // namespace heddle::schedule
