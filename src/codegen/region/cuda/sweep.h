#pragma once

#include <functional>
#include <string>

#include "codegen/region/cuda/results.h"

namespace heddle::codegen {

// Writes the sweeps of a stitch kernel: each as two nested walks of a thread over its points.
class CudaSweepWriter {
 public:
  explicit CudaSweepWriter(SweepContext& context) : c_(context), results_(context) {}

  // Written once after a stage's points and before its threads combine what they have.
  std::function<void()> between;

  void write(const schedule::CudaStage& stage);
  // When the serial loop has ended: the block as one team combines what its teams carried.
  void write_after(const schedule::CudaStage& stage);

 private:
  enum class Pass : uint8_t { kAll, kCopy, kUse };  // kCopy: only what goes to shared memory by itself

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
