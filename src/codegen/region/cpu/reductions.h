#pragma once

#include <string>
#include <string_view>

#include "codegen/region/cpu/context.h"

namespace heddle::codegen {

// The name of the library function that combines two results: "tile::sum_of".
std::string combiner(schedule::Combine c);

// Reductions of columns. Running results are in scratch memory, one per lane of the vector loop. reset_columns()
// initializes them, and combine_columns() adds one step.
void reset_columns(StitchContext& c, const schedule::Stage& stage);
void combine_columns(StitchContext& c, const schedule::Reduction& r, const std::string& value,
                     const std::string& position = "");

// Reductions of rows. Running results are in registers.
void declare_accumulators(StitchContext& c, const schedule::Stage& stage);
// is_float_sum(): true if the reduction is a floating-point sum, which loses precision over many additions.
// settle_sums(): returns the code that calls settle() for each floating-point sum of the stage. `count` is a C++
// expression: the maximum number of terms that a register has received since the previous call.
bool is_float_sum(const schedule::Reduction& r);
std::string settle_sums(const schedule::Stage& stage, std::string_view count);
// Writes the code of one step of a reduction. `count` and `turn` are C++ expressions: the number of lanes ("n"), and
// the index of the vector in an unrolled loop.
void combine_rows(StitchContext& c, const schedule::Stage& stage, const schedule::Piece& piece, size_t reduction,
                  const std::string& count, const std::string& turn);
void finish_rows(StitchContext& c, const schedule::Stage& stage);
void finish_held(StitchContext& c, const schedule::Stage& stage);

// Writes the code of one step of a scan. The scan's stores use the running result before or after the step.
void step_scan(StitchContext& c, const schedule::Stage& stage, const schedule::Piece& piece);

}  // namespace heddle::codegen
