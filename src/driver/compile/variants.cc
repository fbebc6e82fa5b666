#include "driver/compile/variants.h"

#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "base/check.h"
#include "base/log.h"
#include "base/thread/cancel.h"
#include "driver/compile/kernel_override.h"
#include "driver/compile/open_batch.h"
#include "driver/options/options.h"
#include "runtime/executor.h"

namespace heddle::driver {

// Other values of an extent. They show which numbers of kernels it decides: near ones what it decides directly, far
// ones sizes and counts of blocks; multiples do not reach those from the first tokens of a growing cache, sums do.
struct Neighbour {
  int64_t times, parts, more;
  int64_t of(int64_t extent) const { return extent * times / parts + more; }
};

namespace {

// Kernels that a model keeps loaded although no plan needs them.
constexpr size_t kMostKernels = 1024;

constexpr Neighbour kNeighbours[] = {{1, 1, 1},   {1, 1, 2}, {1, 1, 3}, {1, 1, 16}, {1, 1, 64},
                                     {1, 1, 400}, {1, 2, 1}, {1, 4, 2}, {2, 1, 0},  {4, 1, 1}};
// Those whose kernels are compiled along, as far as that takes at most this part of the time more.
constexpr Neighbour kLikely[] = {{1, 1, 16}, {2, 1, 0}, {1, 2, 1}, {1, 1, 64}, {1, 1, 400}};
constexpr double kMostMore = 0.5;

void collect_symbols(const runtime::Plan& plan, std::set<std::string>& symbols) {
  for (const runtime::Step& step : plan.steps) {
    if (const auto* kernel = std::get_if<runtime::KernelStep>(&step.action)) {
      symbols.insert(kernel->symbol);
    } else if (const auto* on_gpu = std::get_if<runtime::CudaStep>(&step.action)) {
      for (const CudaLaunch& launch : on_gpu->launches) symbols.insert(launch.symbol);
    } else if (const auto* loop = std::get_if<runtime::LoopStep>(&step.action)) {
      collect_symbols(*loop->body, symbols);
    } else if (const auto* branch = std::get_if<runtime::BranchStep>(&step.action)) {
      collect_symbols(*branch->then_body, symbols);
      collect_symbols(*branch->else_body, symbols);
    }
  }
}

std::set<std::string> symbols_of(const runtime::Plan& plan) {
  std::set<std::string> symbols;
  collect_symbols(plan, symbols);
  return symbols;
}

std::string stamp_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return "none";
  return fmt::format("{} {} {}.{}", status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

// The extents that differ from those of a known plan, those that changed alike together: they mostly are one extent of
// the model, or one more than it.
std::vector<std::vector<int64_t*>> varying_extents(const runtime::Plan& known, CompileOptions& options) {
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t*>> groups;
  for (const runtime::Port& input : known.inputs) {
    const auto found = options.shapes.find(input.name);
    if (found == options.shapes.end() || found->second.size() != input.shape.size()) continue;
    for (size_t d = 0; d < input.shape.size(); ++d) {
      int64_t& extent = found->second[d];
      if (extent != input.shape[d]) groups[{input.shape[d], extent}].push_back(&extent);
    }
  }
  std::vector<std::vector<int64_t*>> result;
  for (auto& [change, extents] : groups) result.push_back(std::move(extents));
  return result;
}

}  // namespace

VariantMaker::VariantMaker(std::string path, std::shared_ptr<const runtime::Plan> known)
    : path_(std::move(path)), stamp_(stamp_of(path_)), known_(std::move(known)) {}

// Values of inputs are used only where shapes depend on them, which shows when it does not work without.
CompiledModel VariantMaker::compile(const CompileOptions& options) {
  CompileOptions without = options;
  without.values.clear();
  try {
    return compile_model(path_, without, false, true, session_.get());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnknownShape || options.values.empty()) throw;
  }
  return compile_model(path_, options, false, true, session_.get());
}

std::set<std::string> VariantMaker::missing(const CompiledModel& compiled) {
  std::set<std::string> symbols = symbols_of(*compiled.plan);
  std::erase_if(symbols, [&](const std::string& symbol) {
    if (kernels_.contains(symbol)) return true;
    const bool known = known_library_ != nullptr && known_library_->find_if_there(symbol) != nullptr;
    if (known) kernels_[symbol] = {known_library_, nullptr, uses_};
    return known;
  });
  return symbols;
}

// Runs `use` on what is compiled for `options` with each extent that varies as `to` says; of several that do, with one
// of them as it says where it is given.
template <typename Use>
void VariantMaker::with_neighbour(const CompileOptions& options, const Neighbour& to, std::optional<size_t> one,
                                  const Use& use) {
  CompileOptions neighbour = options;
  neighbour.progress = nullptr;
  const auto groups = varying_extents(*known_, neighbour);
  for (size_t i = 0; i < groups.size(); ++i) {
    for (int64_t* extent : groups[i]) {
      if (!one || *one == i) *extent = to.of(*extent);
    }
  }
  try {
    use(compile(neighbour));
  } catch (const Error&) {
    // These extents do not fit together.
  }
}

void VariantMaker::learn_from_neighbours(const CompileOptions& options) {
  const auto learnt = [](const CompiledModel&) {};
  CompileOptions copy = options;
  const size_t groups = varying_extents(*known_, copy).size();
  if (groups == 0) return;  // what differs is a value, or which inputs are given
  for (const Neighbour& neighbour : kNeighbours) with_neighbour(options, neighbour, std::nullopt, learnt);
  for (size_t i = 0; groups > 1 && i < groups; ++i) with_neighbour(options, kNeighbours[0], i, learnt);
}

// What this model and likely ones lack, so that the compiler seldom starts again.
KernelSet VariantMaker::wanted(const CompiledModel& compiled, const CompileOptions& options) {
  KernelSet kernels = compiled.kernels.subset(missing(compiled));
  CompileOptions copy = options;
  if (varying_extents(*known_, copy).empty()) return kernels;
  const double most = (1 + kMostMore) * kernels.cost();
  for (const Neighbour& neighbour : kLikely) {
    with_neighbour(options, neighbour, std::nullopt, [&](const CompiledModel& other) {
      KernelSet more = kernels;
      more.add(other.kernels.subset(missing(other)));
      if (more.cost() <= most) kernels = std::move(more);
    });
  }
  return kernels;
}

// The lock is open while the compiler runs.
void VariantMaker::load(const KernelSet& kernels, const CompileOptions& options, int jobs, Lock& lock) {
  const Settings settings = resolve(options);
  lock.unlock();
  MachineCode code;
  std::shared_ptr<const jit::Library> library;
  {
    const auto relock = std::shared_ptr<void>(nullptr, [&](void*) { lock.lock(); });
    code = compile_kernels(kernels, settings.target, jobs, options.use_cache);
    if (!code.library.empty()) library = jit::Library::load(code.library);
  }
  for (const std::string& symbol : kernels.step_symbols()) kernels_[symbol] = {library, nullptr, uses_};
  keep(std::move(code.cubins));
}

void VariantMaker::keep(std::vector<runtime::Cubin> cubins) {
  for (runtime::Cubin& cubin : cubins) {
    const auto shared = std::make_shared<const runtime::Cubin>(std::move(cubin));
    for (const std::string& symbol : shared->symbols) kernels_[symbol] = {nullptr, shared, uses_};
  }
}

VariantMaker::Made VariantMaker::with_machine_code(const CompiledModel& compiled) {
  std::set<std::shared_ptr<const jit::Library>> libraries;
  std::set<std::shared_ptr<const runtime::Cubin>> cubins;
  for (const std::string& symbol : symbols_of(*compiled.plan)) {
    Kernels& kernels = kernels_.at(symbol);
    kernels.used = uses_;
    if (kernels.library != nullptr) libraries.insert(kernels.library);
    if (kernels.cubin != nullptr) cubins.insert(kernels.cubin);
  }
  for (const auto& cubin : cubins) compiled.built.plan->cubins.push_back(*cubin);
  return {compiled.plan, {libraries.begin(), libraries.end()}, true};
}

// Those of the known plan, by compiling its shapes as far as the texts.
void VariantMaker::learn_known_choices(const CompileOptions& options) {
  session_->known_choices = compile(of_known(options)).chosen;
}

CompileOptions VariantMaker::of_known(const CompileOptions& options) const {
  CompileOptions known = options;
  known.progress = nullptr;
  for (const runtime::DefaultInput& input : known_->defaults) known.shapes.erase(input.name);
  for (const runtime::Port& input : known_->inputs) known.shapes[input.name] = input.shape;
  for (const runtime::Text& text : known_->text_inputs) known.values[text.name] = text.value;
  for (const runtime::FixedInput& fixed : known_->fixed) known.values[known_->inputs[fixed.input].name] = fixed.value;
  return known;
}

// Plans that exist keep the libraries that they use.
void VariantMaker::forget_kernels() {
  if (kernels_.size() <= kMostKernels) return;
  std::vector<uint64_t> uses;
  for (const auto& [symbol, kernels] : kernels_) uses.push_back(kernels.used);
  std::nth_element(uses.begin(), uses.begin() + kMostKernels / 2, uses.end(), std::greater<>());
  const uint64_t oldest = uses[kMostKernels / 2];
  std::erase_if(kernels_, [&](const auto& named) { return named.second.used < oldest; });
}

void VariantMaker::begin(const CompileOptions& options) {
  ++uses_;
  forget_kernels();
  if (session_ != nullptr) return;
  if (stamp_of(path_) != stamp_) {
    fail(ErrorCode::kFile, path_, "it was changed or removed after the model was loaded, and another shape needs it",
         "Load the model again");
  }
  auto session = std::make_unique<Session>(path_, options);
  session->constants.adopt(known_->constants);
  if (!known_->library.empty()) known_library_ = jit::Library::load(known_->library);
  session_ = std::move(session);
  learn_batch(*session_, of_known(options), [&](const CompileOptions& shapes) { return compile(shapes); });
  if (runtime::runs_on_gpu(*known_)) {
    keep(known_->cubins);
    learn_known_choices(options);
  }
}

// However much slower than others they are.
CompiledModel VariantMaker::of_known_kernels(const CompileOptions& options) {
  session_->most_slower = std::numeric_limits<double>::infinity();
  const auto reset = std::shared_ptr<void>(nullptr, [&](void*) { session_->most_slower = ReusedConfigs::kMostSlower; });
  return compile(options);
}

VariantMaker::Made VariantMaker::make(const CompileOptions& options, Aim aim) {
  Lock lock = lock_or_cancel(mutex_);
  begin(options);
  CompiledModel compiled = compile(options);
  bool is_best = true;
  if (aim == Aim::kSoon && runtime::runs_on_gpu(*known_) && !missing(compiled).empty()) {
    CompiledModel sooner = of_known_kernels(options);
    // Two plans are worth it where most of the kernels are spared.
    is_best = 2 * missing(sooner).size() > missing(compiled).size();
    if (!is_best) compiled = std::move(sooner);
  }
  // Who waits for the best plan runs another one meanwhile, which needs the host, too.
  const int threads = Target::host_cpu().cpu.threads, jobs = aim == Aim::kSoon ? threads : (threads + 1) / 2;
  const size_t count = symbols_of(*compiled.plan).size(), lacking = missing(compiled).size();
  log(LogLevel::kInfo, fmt::format("{}: another shape, {} of {} kernels are there", path_, count - lacking, count));
  if (lacking > 0 && !runtime::runs_on_gpu(*known_)) {
    const bool of_batch = session_->batch_is_open && differs_in_batch(*known_, options);
    if (of_batch) {
      learn_batch(*session_, options, [&](const CompileOptions& shapes) { return compile(shapes); });
    } else {
      learn_from_neighbours(options);
    }
    compiled = compile(options);
    if (!of_batch) load(wanted(compiled, options), options, jobs, lock);
  }
  // What another thread made room for meanwhile is compiled again.
  while (!missing(compiled).empty()) load(compiled.kernels.subset(missing(compiled)), options, jobs, lock);
  for (const auto& [problem, choices] : compiled.chosen)
    session_->known_choices[problem].insert(choices.begin(), choices.end());
  Made made = with_machine_code(compiled);
  made.is_best = is_best;
  return made;
}

void VariantMaker::improve(const CompileOptions& options, std::weak_ptr<const void> user,
                           std::function<void(Made)> use) {
  background_.add(path_ + ": a better plan", [this, options, user = std::move(user), use = std::move(use)] {
    if (user.lock() != nullptr) use(make(options, Aim::kBest));
  });
}

void VariantMaker::prepare(std::vector<CompileOptions> all) {
  background_.add(path_ + ": kernels for a range of shapes", [this, all = std::move(all)] { prepare_each(all); });
}

// All shapes are looked at before any kernel is compiled, so that each kernel takes as arguments whatever differs.
void VariantMaker::prepare_each(const std::vector<CompileOptions>& all) {
  for (const bool loads : {false, true}) {
    for (const CompileOptions& options : all) {
      if (background_.ends()) return;
      try {
        if (loads) {
          make(options, Aim::kSoon);
        } else {
          const Lock lock(mutex_);
          begin(options);
          compile(options);
        }
      } catch (const std::exception& error) {
        log(LogLevel::kInfo, fmt::format("{}: kernels for a range of shapes: {}", path_, error.what()));
      }
    }
  }
  try {
    if (!all.empty()) tell_unused_texts(path_, driver::resolve(all.front()).target);
  } catch (const Error& error) {
    log(LogLevel::kInfo, error.what());
  }
}

VariantMaker::~VariantMaker() = default;

}  // namespace heddle::driver
