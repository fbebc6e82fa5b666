#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "driver/compile/background.h"
#include "driver/compile/compile.h"
#include "runtime/plan.h"

namespace heddle::driver {

struct Neighbour;

// Makes plans of one model for further sets of shapes, with the kernels that there are. On a CPU kernels are told what
// differs: once a few shapes were seen, the next one mostly needs no compiler. On a GPU products and memory-bound
// kernels are told their outermost extents from the beginning, and products take tiles that others have: in the best
// plan where these are about as fast, in one that is wanted soon wherever they can. Thread-safe; one plan is made at a
// time, and while the compiler runs for one, others whose kernels are there are made.
class VariantMaker {
 public:
  // `known`: a plan of the model, whose shapes, constants and kernels the others are compared with.
  VariantMaker(std::string path, std::shared_ptr<const runtime::Plan> known);
  ~VariantMaker();

  struct Made {
    std::shared_ptr<const runtime::Plan> plan;
    runtime::Libraries libraries;  // with its kernels; on a GPU the plan itself has them
    bool is_best = true;           // false: kernels that are not there yet would be faster
  };
  // What somebody waits for: a plan that needs no kernel that others can stand in for (on a GPU), or the best plan.
  enum class Aim : uint8_t { kSoon, kBest };
  // The plan for the shapes of `options`. Throws what compile_model throws, and kFile where the model's file is another
  // one by now.
  Made make(const CompileOptions& options, Aim aim);

  // On a thread of its own, after what was wanted before:
  // Makes the best plan for these shapes and gives it to `use`, unless nothing holds `user` any more.
  void improve(const CompileOptions& options, std::weak_ptr<const void> user, std::function<void(Made)> use);
  // Makes plans for these, so that their kernels are there when make() wants them. What fails is logged, and fails
  // again where it is wanted.
  void prepare(std::vector<CompileOptions> all);
  // Returns when that thread has nothing to do.
  void wait_for_background() { background_.wait(); }

 private:
  struct Kernels {
    std::shared_ptr<const jit::Library> library;  // CPU
    std::shared_ptr<const runtime::Cubin> cubin;  // GPU
    uint64_t used = 0;
  };
  using Lock = std::unique_lock<std::timed_mutex>;
  void begin(const CompileOptions& options);
  CompiledModel compile(const CompileOptions& options);
  std::set<std::string> missing(const CompiledModel& compiled);
  template <typename Use>
  void with_neighbour(const CompileOptions& options, const Neighbour& to, std::optional<size_t> one, const Use& use);
  void learn_from_neighbours(const CompileOptions& options);
  KernelSet wanted(const CompiledModel& compiled, const CompileOptions& options);
  CompiledModel of_known_kernels(const CompileOptions& options);
  void load(const KernelSet& kernels, const CompileOptions& options, int jobs, Lock& lock);
  void keep(std::vector<runtime::Cubin> cubins);
  void learn_known_choices(const CompileOptions& options);
  CompileOptions of_known(const CompileOptions& options) const;
  Made with_machine_code(const CompiledModel& compiled);
  void forget_kernels();
  void prepare_each(const std::vector<CompileOptions>& all);

  std::string path_, stamp_;  // of the file when the model was loaded
  std::shared_ptr<const runtime::Plan> known_;
  std::shared_ptr<const jit::Library> known_library_;  // with the kernels of known_ and some of other batches
  std::timed_mutex mutex_;
  std::unique_ptr<Session> session_;        // made when it is first needed
  std::map<std::string, Kernels> kernels_;  // by symbol
  uint64_t uses_ = 0;
  Background background_;  // goes first: its tasks use the others
};

}  // namespace heddle::driver
