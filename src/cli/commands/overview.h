#pragma once

#include "driver/model/report.h"

namespace heddle::cli {

// Prints the beginning of `heddle explain`: at most ten lines about fused operators, the main costs in time, the limits
// of speed, memory use and suggestions. Shows measured times if the report has them, else predicted times.
void print_overview(const driver::CompileReport& report);

}  // namespace heddle::cli
