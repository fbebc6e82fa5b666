#pragma once

#include <functional>
#include <string>

#include "codegen/region/cuda/results.h"

namespace heddle::codegen {

// Writes the sweeps of a stitch kernel: each as two nested walks of a thread over its points.
class CudaSweepWriter {
 public:
  explicit CudaSweepWriter(SweepContext& context) : c_(context), results_(context) {}

  // Called once, after a stage's points and before its threads combine their results.
  std::function<void()> between;

  void write(const schedule::CudaStage& stage);
  // Writes the end of the serial loop: the block as one team combines the results that its teams carried.
  void write_after(const schedule::CudaStage& stage);

 private:
  enum class Pass : uint8_t { kAll, kCopy, kUse };  // kCopy: only the asynchronous copies to shared memory

  void declare_results(const schedule::CudaStage& stage);
  void transpose(const schedule::CudaStage& stage);
  void write_walks(const schedule::CudaStage& stage, int team);
  void write_inner(const schedule::CudaStage& stage, const Point& point);
  void write_copies(const schedule::CudaStage& stage, const Point& point);
  void write_steps(const schedule::CudaStage& stage, const Point& point, int64_t from, int64_t to, Pass pass);
  void write_body(const schedule::CudaStage& stage, Pass pass);
  void write_tail(const schedule::CudaStage& stage);

  SweepContext& c_;
  ResultWriter results_;
};

}  // namespace heddle::codegen
