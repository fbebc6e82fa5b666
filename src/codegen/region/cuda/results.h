#pragma once

#include <string>

#include "codegen/region/cuda/context.h"
#include "codegen/region/cuda/point.h"

namespace heddle::codegen {

// Writes how the threads of a team combine what each of them has reduced.
class ResultWriter {
 public:
  explicit ResultWriter(SweepContext& context) : c_(context) {}

  // All points of the sweep: every thread knows the result.
  void finish_team(const schedule::CudaStage& stage, const schedule::CudaReduction& r);
  // A row's columns, and a column's rows: results go to scratch.
  void finish_group(const schedule::CudaStage& stage, const schedule::CudaReduction& r, const Point& point);
  void finish_column(const schedule::CudaStage& stage, const schedule::CudaReduction& r, const Point& point);
  // The teams of a block, after a serial loop: the results are named [k] for the steps of `layout`.
  void finish_carried(const schedule::ThreadLayout& layout);

 private:
  // `which`: the one of a vector's lanes that a thread has; empty: all of them.
  void store_column(const schedule::CudaStage& stage, const Point& point, const schedule::Index& at, uint32_t scratch,
                    const std::string& value, const std::string& which);
  void begin_cta_group();
  std::string next_cta_group_barrier();

  SweepContext& c_;
  int64_t cta_group_used_ = 0, next_cta_group_barrier_ = 0;
  bool cta_group_began_ = false;
};

}  // namespace heddle::codegen
