#pragma once

#include "driver/model/report.h"

namespace heddle::cli {

// What `heddle explain` opens with: at most ten lines that say what was fused, where the time goes, what holds it back,
// what memory it takes and what to try. Times are measured ones where the report has them, else predicted.
void print_overview(const driver::CompileReport& report);

}  // namespace heddle::cli
