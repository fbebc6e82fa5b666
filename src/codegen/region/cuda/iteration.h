#pragma once

#include <string>
#include <string_view>

#include "codegen/region/cuda/sweep.h"

namespace heddle::codegen {

// Generates the code of a thread group for one iteration of the grid: the passes over the data in order, inside a
// serial loop if the kernel has one.
class IterationWriter {
 public:
  explicit IterationWriter(SweepContext& context) : c_(context), sweeps_(context) {}

  // Declares the grid variables of iteration number `iteration` of `total`. The last grid dimension varies fastest.
  void declare_grid(int64_t total, const std::string& iteration);
  void write_iteration();
  // Writes only the loads of the iteration's first pass.
  void write_ahead();

 private:
  // Writes a loop in which the thread groups of the block process the values of `v` round-robin.
  void write_serial(schedule::VarId v);
  void write_next(schedule::VarId v);
  void open_turns();
  void close_turns();
  std::string turn_of(std::string_view first) const;
  void write_prefetches();

  SweepContext& c_;
  std::string serial_end_;  // of the serial loop
  CudaSweepWriter sweeps_;
};

}  // namespace heddle::codegen
