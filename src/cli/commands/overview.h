#pragma once

#include "driver/model/report.h"

namespace heddle::cli {

// The head of `heddle explain`: at most ten lines about what was fused, where the time goes, what limits it, how much
// memory it takes and what to try. Times are measured if the report has such times, else predicted.
void print_overview(const driver::CompileReport& report);

}  // namespace heddle::cli
