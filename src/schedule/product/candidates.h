#pragma once

#include <string>
#include <vector>

#include "schedule/product/contraction.h"

namespace heddle::schedule {

// Each function returns the cost model's choice of blocking first, followed by blockings that differ from it in one
// parameter.
std::vector<Config> gemm_candidates(const GemmDesc& desc, DType compute, const Target& target);
std::vector<Config> conv_candidates(const ConvDesc& desc, DType compute, const Target& target);
std::vector<Config> planar_candidates(const ConvDesc& desc, DType compute, const Target& target);
std::vector<Config> winograd_candidates(const WinogradDesc& desc, const Target& target);

// gemm_operand_text() describes an operand of a GEMM: its type and strides, or only its type if it is a constant, since
// constants are packed. gemm_problem_text() returns Problem::text of a GEMM; `a` and `b` are the texts of the operands.
std::string gemm_operand_text(const ir::Graph& graph, ir::ValueId value, int64_t row, int64_t column);
std::string gemm_problem_text(const tile::GemmShape& shape, DType compute, const std::string& a, const std::string& b);

}  // namespace heddle::schedule
