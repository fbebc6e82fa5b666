#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "ir/builder.h"
#include "ir/group.h"
#include "jit/library.h"
#include "schedule/kernel_desc.h"
#include "schedule/scheme.h"

namespace heddle::testing {

// A group of all nodes of a graph that are not parameters or constants, with the contraction or window as the anchor of
// a group that has one.
ir::Group whole_graph(const ir::Graph& graph, ir::GroupKind kind = ir::GroupKind::kStitch);

ir::ValueId input(ir::Builder& b, const std::string& name, DType dtype, Shape shape);

// What kernels are made for and run on: this CPU, unless a test binary puts something else here before its tests begin.
struct Machine;
Machine& machine();
// Its target.
Target test_target(int threads = 2);

// Memory between sentinels that kernels must not touch.
class Guarded {
 public:
  // `alignment` is a power of two, at most 64; 64 is what the runtime gives.
  explicit Guarded(int64_t bytes, size_t alignment = 1);
  unsigned char* data() { return bytes_.data() + begin_; }
  int64_t size() const { return size_; }
  bool intact() const;

 private:
  std::vector<unsigned char> bytes_;
  size_t begin_;
  int64_t size_;
};

// The buffers of one case.
struct Memory {
  std::map<ir::ValueId, std::unique_ptr<Guarded>> values;
  std::vector<std::unique_ptr<Guarded>> workspaces;
};
// Runs the kernels of a scheduled group, whose sources are given, on such buffers.
using RunKernels = std::function<void(const schedule::ScheduledGroup&, const std::vector<codegen::KernelSource>&,
                                      const std::string& name, Memory&)>;
// Makes the kernels of all cases ready to run.
using CompileKernels = std::function<RunKernels(const std::vector<const codegen::KernelSource*>&, const Target&)>;
std::shared_ptr<const jit::Library> compile_library(const std::vector<const codegen::KernelSource*>& kernels,
                                                    const Target& target);
RunKernels compile_for_cpu(const std::vector<const codegen::KernelSource*>& kernels, const Target& target);

struct Machine {
  std::function<Target(int threads)> target;
  CompileKernels compile;
  size_t one_of = 2;  // cases of a batch that a run draws: compiling takes most of the time
};

// Many graphs, scheduled, emitted, compiled as a few translation units, run with sentinels around every buffer and
// compared with the reference evaluation. Inputs are random by seed; integers lie in [-4, 4] unless `limits` says more.
class Batch {
 public:
  struct Case {
    std::string name;
    ir::Graph graph;
    double tolerance = 0;     // relative to max(1, |reference|); 0: by the dtype of the output
    int64_t index_limit = 0;  // > 0: integer inputs are indices in [-limit, limit)
  };
  explicit Batch(Target target = test_target(), const schedule::StitchOptions& options = {})
      : target_(std::move(target)), options_(options) {}
  void add(std::string name, const std::function<void(ir::Builder&)>& build, double tolerance = 0,
           int64_t index_limit = 0);
  void add_text(std::string name, const std::string& text, double tolerance = 0, int64_t index_limit = 0);
  // Schedules every case, and runs the first and those that this run draws (tests/instances.h). Failures name the case
  // and show the text of its kernels.
  void run();

 private:
  Target target_;
  schedule::StitchOptions options_;
  std::vector<Case> cases_;
};

}  // namespace heddle::testing
