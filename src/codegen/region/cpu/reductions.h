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
// settle_sums(): the text that calls settle() of such sums, after at most `count` further terms per register.
bool is_float_sum(const schedule::Reduction& r);
std::string settle_sums(const schedule::Stage& stage, std::string_view count);
// Writes one step of a reduction, on `count` lanes ("n"). `turn` numbers the vectors of an unrolled loop.
void combine_rows(StitchContext& c, const schedule::Stage& stage, const schedule::Piece& piece, size_t reduction,
                  const std::string& count, const std::string& turn);
void finish_rows(StitchContext& c, const schedule::Stage& stage);
void finish_held(StitchContext& c, const schedule::Stage& stage);

// Writes one step of a scan. Its stores use the running result from before or after the step.
void step_scan(StitchContext& c, const schedule::Stage& stage, const schedule::Piece& piece);

}  // namespace heddle::codegen
