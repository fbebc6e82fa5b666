#pragma once

#include <string>

#include "codegen/region/cuda/context.h"
#include "codegen/region/cuda/point.h"

namespace heddle::codegen {

// Writes the code with which the threads of a team (a group of threads) combine their partial results.
class ResultWriter {
 public:
  explicit ResultWriter(SweepContext& context) : c_(context) {}

  // Reduces over all points of the sweep. Every thread gets the result.
  void finish_team(const schedule::CudaStage& stage, const schedule::CudaReduction& r);
  // finish_group() reduces over the columns of a row, finish_column() over the rows of a column. Results are stored in
  // scratch buffers.
  void finish_group(const schedule::CudaStage& stage, const schedule::CudaReduction& r, const Point& point);
  void finish_column(const schedule::CudaStage& stage, const schedule::CudaReduction& r, const Point& point);
  // Reduces over the teams of a block after a serial loop. In the generated code, the result for step k of `layout` is
  // element [k] of an array.
  void finish_carried(const schedule::ThreadLayout& layout);

 private:
  // `which` is the vector lane whose element the thread holds; if it is empty, the thread holds all lanes.
  void store_column(const schedule::CudaStage& stage, const Point& point, const schedule::Index& at, uint32_t scratch,
                    const std::string& value, const std::string& which);
  void begin_cta_group();
  std::string next_cta_group_barrier();

  SweepContext& c_;
  int64_t cta_group_used_ = 0, next_cta_group_barrier_ = 0;
  bool cta_group_began_ = false;
};

}  // namespace heddle::codegen
