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

// Makes plans of one model for further sets of shapes and reuses existing kernels. On a CPU, kernels take the numbers
// that differ as arguments, so after a few shapes the next one mostly needs no compiler. On a GPU, products and
// memory-bound kernels take their outermost extents as arguments from the beginning. Products also reuse tiles of
// existing kernels: in the best plan if these are about as fast, in a plan that is wanted soon whenever possible.
// Thread-safe. Plans are made one at a time, but while the compiler runs for one, others whose kernels exist are made.
class VariantMaker {
 public:
  // `known`: a plan of the model, whose shapes, constants and kernels the others are compared with.
  VariantMaker(std::string path, std::shared_ptr<const runtime::Plan> known);
  ~VariantMaker();

  struct Made {
    std::shared_ptr<const runtime::Plan> plan;
    runtime::Libraries libraries;  // with its kernels; on a GPU the plan itself has them
    bool is_best = true;           // false: kernels not compiled yet would be faster
  };
  // kSoon: a plan that compiles no kernel that existing ones can stand in for (on a GPU). kBest: the best plan.
  enum class Aim : uint8_t { kSoon, kBest };
  // The plan for the shapes of `options`. Throws what compile_model throws, and kFile if the model's file has changed.
  Made make(const CompileOptions& options, Aim aim);

  // improve() and prepare() work on a background thread, after earlier requests. improve() makes the best plan for
  // these shapes and passes it to `use`, unless `user` has expired.
  void improve(const CompileOptions& options, std::weak_ptr<const void> user, std::function<void(Made)> use);
  // Makes plans for these, so that their kernels exist when make() needs them. Failures are logged, and occur again in
  // make().
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
  Background background_;  // destroyed first: its tasks use the others
};

}  // namespace heddle::driver
