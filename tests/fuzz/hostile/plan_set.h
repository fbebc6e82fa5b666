#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "driver/plan/plan_builder.h"
#include "ir/graph.h"
#include "ir/reference/array.h"
#include "runtime/cuda/device.h"

namespace heddle::fuzz {

// Plans of several graphs whose kernels are compiled by one call of the C++ compiler: starting it and reading the tile
// headers costs more than the kernels of a small graph.
class PlanSet {
 public:
  // `target`: "cpu", "cuda:N" or "hip:N". `use_cache`: of compiled kernels, the user's.
  explicit PlanSet(passes::FusionPolicy fusion, const std::string& target = "cpu", bool use_cache = false);
  // Runs the passes and schedules the graph, for this machine or (`small`) for one like it with four threads, tiny
  // caches and slow memory, to which small graphs are large. Returns its index. Throws what the stages throw.
  size_t add(const ir::Graph& graph, bool small = false);
  // Throws kCompilerFailed.
  void compile();
  std::vector<ir::Array> run(size_t index, const std::vector<ir::Array>& inputs, int threads) const;
  // Kernels and reference steps of a plan, for the record.
  struct Steps {
    int kernels = 0, references = 0;
  };
  Steps steps(size_t index) const;

 private:
  passes::FusionPolicy fusion_;
  int device_;  // the number of the GPU
  bool use_cache_;
  Target target_;
  // The GPU's, which would else end with each run and begin anew (a second on hardware with many processes).
  std::shared_ptr<const runtime::CudaContext> context_;
  driver::KernelSet kernels_;
  driver::CompileReport report_;
  std::vector<std::shared_ptr<runtime::Plan>> plans_;
};

}  // namespace heddle::fuzz
