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
// is_float_sum(): a row's result is a sum that loses digits over many additions. settle_sums(): the text that settles
// such accumulators after `count` more terms.
bool is_float_sum(const schedule::Reduction& r);
std::string settle_sums(const schedule::Stage& stage, std::string_view count);
// Writes one step of `count` lanes ("n"). `turn` tells the vectors of an unrolled loop apart.
void combine_rows(StitchContext& c, const schedule::Stage& stage, const schedule::Piece& piece, size_t reduction,
                  const std::string& count, const std::string& turn);
void finish_rows(StitchContext& c, const schedule::Stage& stage);
void finish_held(StitchContext& c, const schedule::Stage& stage);

// Writes one step of a scan. The stores see the running result before or after the step.
void step_scan(StitchContext& c, const schedule::Stage& stage, const schedule::Piece& piece);

}  // namespace heddle::codegen
