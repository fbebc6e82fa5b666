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

// Makes plans of one model for further sets of shapes, and reuses existing kernels. On a CPU, numbers that differ
// between sets of shapes become kernel arguments, so after a few sets the next set usually needs no compilation. On a
// GPU, the outermost extents of products and memory-bound kernels are always kernel arguments. Products also reuse the
// tile sizes of existing kernels: for Aim::kSoon whenever possible, for Aim::kBest only if these tile sizes are about
// as fast as the best ones. Thread-safe. Plans are made one at a time. While the compiler runs for one plan, other
// plans whose kernels exist can be made.
class VariantMaker {
 public:
  // `known`: an existing plan of the model. New plans are compared with its shapes, and reuse its constants and
  // kernels.
  VariantMaker(std::string path, std::shared_ptr<const runtime::Plan> known);
  ~VariantMaker();

  struct Made {
    std::shared_ptr<const runtime::Plan> plan;
    runtime::Libraries libraries;  // contain the plan's kernels; on a GPU the plan itself does
    bool is_best = true;           // false: a kernel that is not compiled yet would be faster
  };
  // kSoon: a plan that uses existing kernels wherever possible instead of compiling better ones (on a GPU). kBest: the
  // best plan.
  enum class Aim : uint8_t { kSoon, kBest };
  // Makes the plan for the shapes of `options`. Throws all errors of compile_model(), and kFile if the model's file has
  // changed.
  Made make(const CompileOptions& options, Aim aim);

  // improve() and prepare() add requests to a background thread, which handles them in order. improve() makes the best
  // plan for the shapes of `options` and passes it to `use`, unless `user` has expired.
  void improve(const CompileOptions& options, std::weak_ptr<const void> user, std::function<void(Made)> use);
  // Makes plans for all of these options, so that their kernels exist when make() needs them. Errors are logged, and
  // make() throws them again.
  void prepare(std::vector<CompileOptions> all);
  // Waits until the background thread has no work left.
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

  std::string path_, stamp_;  // the file's path, and its stamp when the model was loaded
  std::shared_ptr<const runtime::Plan> known_;
  std::shared_ptr<const jit::Library> known_library_;  // the kernels of known_ and some for other batch sizes
  std::timed_mutex mutex_;
  std::unique_ptr<Session> session_;        // created at first use
  std::map<std::string, Kernels> kernels_;  // by symbol
  uint64_t uses_ = 0;
  Background background_;  // destroyed first: its tasks use the other members
};

}  // namespace heddle::driver
