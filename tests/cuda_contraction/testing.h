#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "ir/group.h"
#include "schedule/kernel_desc.h"
#include "tests/instances.h"

namespace heddle::testing {

// Contraction and attention groups on the emulated GPU: each graph is one group, scheduled, emitted and run between
// sentinels on random inputs, every output compared with the reference evaluation in float64. All kernels of a batch
// are one unit.
class CudaBatch {
 public:
  struct Options {
    double tolerance = 1e-5;  // relative to the magnitude of the largest result; integers must be equal
    int sm = 90;
    std::string family = {};  // "": the model's pick, else the first candidate of this family
    bool split = false;       // the first candidate whose k is split
    std::string named = {};   // the first candidate whose text has this
    ir::GroupKind kind = ir::GroupKind::kContraction;
    unsigned skip = 0;                // so many candidates that would do are passed by, round and round
    bool only_wgmma = false;          // of a device on which everything else takes long
    std::vector<float> factors = {};  // of the random values of each input, which are of f32
  };
  void add(std::string name, const std::string& text, const Options& options);
  void add(std::string name, const std::string& text) { add(std::move(name), text, Options()); }
  // All nodes of the graph are one group.
  void add_graph(std::string name, ir::Graph graph, const Options& options);
  // Runs the first case of each kind and some of the others, which each run draws (tests/instances.h).
  void run();
  // Compiles some of the cases for real devices, where NVRTC is installed: a spill is a failure. Tests that compile the
  // first case of each kind have all kinds between them; each run draws some of these.
  enum class Compiled : uint8_t { kSome, kKinds };
  void compile(Compiled which = Compiled::kSome) const;
  // The text of the kernels for devices of this compute capability, 0: of any.
  std::string unit(int sm) const;
  // "mma: gemm 4x5x6 + add" of every kernel.
  std::vector<std::string> decisions() const;

 private:
  struct Case {
    std::string name;
    ir::Graph graph;
    Options options;
    schedule::ScheduledGroup scheduled;
    std::vector<codegen::KernelSource> sources;
    std::string kind, form;
    bool taken;  // by run()
  };
  std::string unit_of(const std::function<bool(const Case&)>& has) const;
  void run(const Case& c, const class CudaRun& run) const;
  std::vector<Case> cases_;
  test::Kinds kinds_;
};

// "graph g(%x: TYPE[..]) {...}" of common forms.
std::string matmul_text(const std::string& type, int64_t m, int64_t n, int64_t k, const std::string& out = "",
                        bool a_along_k = true, bool b_along_k = false, bool constant = true);
std::string conv_text(const std::string& x, const std::string& w, const std::string& attrs, const std::string& y);

inline void compile_and_run(CudaBatch& batch, CudaBatch::Compiled which = CudaBatch::Compiled::kSome) {
  batch.compile(which);
  batch.run();
}

}  // namespace heddle::testing
