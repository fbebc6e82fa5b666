#pragma once

#include <string>

#include "codegen/region/cuda/sweep.h"

namespace heddle::codegen {

// Writes a team's work in one iteration of the grid: the sweeps in order, inside a serial loop if there is one.
class IterationWriter {
 public:
  explicit IterationWriter(SweepContext& context) : c_(context), sweeps_(context) {}

  // Declares the variables that iteration number `iteration` of `total` fixes, the last grid dimension fastest.
  void declare_grid(int64_t total, const std::string& iteration);
  void write_iteration();
  // Writes only the loads of the iteration's first sweep.
  void write_ahead();

 private:
  // The teams of the block take the values of `v` in turn.
  void write_serial(schedule::VarId v);
  void write_next(schedule::VarId v);
  void write_prefetches();

  SweepContext& c_;
  CudaSweepWriter sweeps_;
};

}  // namespace heddle::codegen
