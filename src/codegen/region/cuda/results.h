#pragma once

#include <string>

#include "codegen/region/cuda/context.h"
#include "codegen/region/cuda/point.h"

namespace heddle::codegen {

// Writes the code by which the threads of a team combine their partial results.
class ResultWriter {
 public:
  explicit ResultWriter(SweepContext& context) : c_(context) {}

  // Combines all points of the sweep; every thread gets the result.
  void finish_team(const schedule::CudaStage& stage, const schedule::CudaReduction& r);
  // finish_group() combines a row's columns, finish_column() a column's rows. Results go to scratch.
  void finish_group(const schedule::CudaStage& stage, const schedule::CudaReduction& r, const Point& point);
  void finish_column(const schedule::CudaStage& stage, const schedule::CudaReduction& r, const Point& point);
  // Combines the teams of a block after a serial loop. The results are named [k] for the steps of `layout`.
  void finish_carried(const schedule::ThreadLayout& layout);

 private:
  // `which`: the one lane of a vector that a thread has; empty: it has all of them.
  void store_column(const schedule::CudaStage& stage, const Point& point, const schedule::Index& at, uint32_t scratch,
                    const std::string& value, const std::string& which);
  void begin_cta_group();
  std::string next_cta_group_barrier();

  SweepContext& c_;
  int64_t cta_group_used_ = 0, next_cta_group_barrier_ = 0;
  bool cta_group_began_ = false;
};

}  // namespace heddle::codegen
