#pragma once

#include <functional>
#include <string>

#include "codegen/region/cuda/results.h"

namespace heddle::codegen {

// Writes the sweeps of a stitch kernel. A sweep is a pair of nested loops in which a thread iterates over its elements.
class CudaSweepWriter {
 public:
  explicit CudaSweepWriter(SweepContext& context) : c_(context), results_(context) {}

  // If set, this is called once: after the loops over a stage's elements, and before the threads combine their results.
  std::function<void()> between;

  void write(const schedule::CudaStage& stage);
  // Writes the code after the serial loop. In this code, the whole block, as one team, combines the results that the
  // teams of the block carried through the loop.
  void write_after(const schedule::CudaStage& stage);

 private:
  enum class Pass : uint8_t { kAll, kCopy, kUse };  // kCopy: asynchronous copies to shared memory only

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
