#pragma once

#include <string>
#include <string_view>

#include "codegen/region/cpu/context.h"

namespace heddle::codegen {

// "tile::sum_of"
std::string combiner(schedule::Combine c);

// Running results in scratch, one per lane of the vector loop.
void reset_columns(StitchContext& c, const schedule::Stage& stage);
void combine_columns(StitchContext& c, const schedule::Reduction& r, const std::string& value,
                     const std::string& position = "");

// Running results in registers.
void declare_accumulators(StitchContext& c, const schedule::Stage& stage);
// True if a row's result is a sum whose many additions lose digits; and the text that settles its accumulators after
// `count` more terms.
bool is_float_sum(const schedule::Reduction& r);
std::string settle_sums(const schedule::Stage& stage, std::string_view count);
// One step, of `count` lanes ("n"), the vectors of an unrolled loop told apart by `turn`.
void combine_rows(StitchContext& c, const schedule::Stage& stage, const schedule::Piece& piece, size_t reduction,
                  const std::string& count, const std::string& turn);
void finish_rows(StitchContext& c, const schedule::Stage& stage);
void finish_held(StitchContext& c, const schedule::Stage& stage);

// One step of a scan: the running result before or after it is what the stores see.
void step_scan(StitchContext& c, const schedule::Stage& stage, const schedule::Piece& piece);

}  // namespace heddle::codegen
