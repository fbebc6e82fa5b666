#pragma once

#include <string>
#include <utility>
#include <vector>

#include "codegen/names.h"
#include "codegen/text/writer.h"

namespace heddle::codegen {

// Names of a sweep's reductions, and the tile types that hold them.
std::string value_type(const schedule::CudaReduction& r);
std::string combiner(const schedule::CudaReduction& r);
// The type of a thread's running result over vectors of `width`.
std::string accumulator_type(const schedule::ExprPool& pool, const schedule::CudaReduction& r, int width);
std::string result_name(const schedule::CudaReduction& r);
std::string result_type(const schedule::CudaReduction& r, int width);

// Declares variables by type and name: neighbours of one type in one line.
void declare_together(Writer& out, const std::vector<std::pair<std::string, std::string>>& variables);

}  // namespace heddle::codegen
