#pragma once

#include <string>
#include <utility>
#include <vector>

#include "codegen/names.h"
#include "codegen/text/writer.h"

namespace heddle::codegen {

// The following functions return type names and variable names in the text of a reduction. value_type() is the type of
// a value, combiner() the functor that combines two values.
std::string value_type(const schedule::CudaReduction& r);
std::string combiner(const schedule::CudaReduction& r);
// Returns the type in which a thread accumulates a reduction over vectors of `width` elements.
std::string accumulator_type(const schedule::ExprPool& pool, const schedule::CudaReduction& r, int width);
std::string result_name(const schedule::CudaReduction& r);
std::string result_type(const schedule::CudaReduction& r, int width);

// Declares variables, given as (type, name). Consecutive variables of one type share a line.
void declare_together(Writer& out, const std::vector<std::pair<std::string, std::string>>& variables);

}  // namespace heddle::codegen
