#include "driver/cuda/gemm_bench.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <tuple>

#include "base/check.h"
#include "base/thread_pool.h"
#include "driver/cuda/cublaslt.h"
#include "jit/cuda/nvrtc.h"
#include "runtime/cuda/launch.h"

namespace heddle::driver {
namespace {

using runtime::CudaBuffer;
using runtime::CudaContext;
using runtime::CudaGraph;
using schedule::CudaGemmProblem;

constexpr size_t kFlushBytes = size_t{256} << 20;
constexpr size_t kGuardBytes = 4096;  // behind D; must stay as it was
constexpr uint8_t kPoison = 0xFF;     // NaN in every floating type

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// Random finite values in [-1, 1) (int8: -100 to 100), never zeros: those run faster.
std::vector<uint8_t> random_bytes(DType type, int64_t count, uint64_t seed) {
  constexpr size_t kTable = 1 << 16;
  const size_t element = size_of(type);
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<uint8_t> table(kTable * element), bytes(static_cast<size_t>(count) * element);
  for (size_t i = 0; i < kTable; ++i) {
    const double value = uniform(random);
    uint32_t bits = 0;
    if (type == DType::kF32) {
      const auto single = static_cast<float>(value);
      std::memcpy(&bits, &single, sizeof(bits));
    } else if (type == DType::kI8) {
      bits = static_cast<uint8_t>(static_cast<int8_t>(value * 100));
    } else if (type == DType::kI32) {
      bits = static_cast<uint32_t>(static_cast<int32_t>(value * 1000));
    } else {
      bits = encode_float(type, value);
    }
    std::memcpy(table.data() + i * element, &bits, element);
  }
  uint64_t state = seed * 2654435761u + 1;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::memcpy(bytes.data() + i * element, table.data() + (state >> 48) * element, element);
  }
  return bytes;
}

int64_t extent(int64_t rows, int64_t columns, int64_t leading, int64_t stride, int64_t batch) {
  if (rows == 0 || columns == 0 || batch == 0) return 0;
  return (batch - 1) * stride + (rows - 1) * leading + columns;
}

// Operands on the host and the device, and expected values of some elements of D.
class Workload {
 public:
  Workload(const CudaContext& context, const CudaGemmProblem& problem, const codegen::CudaEpilogue& epilogue,
           uint64_t seed)
      : p_(problem),
        epilogue_(epilogue),
        a_(random_bytes(p_.in,
                        extent(p_.a_k_major ? p_.m : p_.k, p_.a_k_major ? p_.k : p_.m, p_.lda, p_.stride_a, p_.batch),
                        seed)),
        b_(random_bytes(p_.in,
                        extent(p_.b_k_major ? p_.n : p_.k, p_.b_k_major ? p_.k : p_.n, p_.ldb, p_.stride_b, p_.batch),
                        seed + 1)),
        d_bytes_(static_cast<size_t>(extent(p_.m, p_.n, p_.ldd, p_.stride_d, p_.batch)) * size_of(p_.out)),
        a(context, a_.size()),
        b(context, b_.size()),
        d(context, d_bytes_ + kGuardBytes) {
    a.write(a_.data(), a_.size());
    b.write(b_.data(), b_.size());
    for (const codegen::CudaEpilogueOperand& o : epilogue.operands) {
      const int64_t count = o.kind == codegen::CudaEpilogueOperand::Kind::kColumn ? p_.n
                            : o.kind == codegen::CudaEpilogueOperand::Kind::kRow  ? p_.m
                                                                                  : p_.batch * p_.m * p_.n;
      extra_.push_back(random_bytes(o.dtype, count, seed + 2 + extra_.size()));
      extra.push_back(std::make_unique<CudaBuffer>(context, extra_.back().size()));
      extra.back()->write(extra_.back().data(), extra_.back().size());
    }
  }

  std::vector<uint64_t> operands(uint64_t workspace, uint64_t counters) const {
    std::vector<uint64_t> list = {a.address(), b.address(), d.address(), workspace};
    for (const auto& buffer : extra) list.push_back(buffer->address());
    list.push_back(counters);
    return list;
  }
  void poison() {
    const std::vector<uint8_t> bytes(d.size(), kPoison);
    d.write(bytes.data(), bytes.size());
  }
  // The largest error over the bound; infinite where an element was not written or what lies behind D was.
  double check();

 private:
  struct Sample {
    int64_t index;
    double value, bound;
  };
  void take_samples();
  double value_at(const uint8_t* data, int64_t index) const;

  const CudaGemmProblem& p_;
  const codegen::CudaEpilogue& epilogue_;
  std::vector<uint8_t> a_, b_;
  std::vector<std::vector<uint8_t>> extra_;
  size_t d_bytes_;
  std::vector<Sample> samples_;
  std::vector<uint8_t> first_;  // D of the first candidate that was right at the samples

 public:
  CudaBuffer a, b, d;
  std::vector<std::unique_ptr<CudaBuffer>> extra;
};

double Workload::value_at(const uint8_t* data, int64_t index) const {
  const uint8_t* bytes = data + index * static_cast<int64_t>(size_of(p_.out));
  if (p_.out == DType::kI32) {
    int32_t value = 0;
    std::memcpy(&value, bytes, sizeof(value));
    return value;
  }
  if (p_.out == DType::kF32) {
    float value = 0;
    std::memcpy(&value, bytes, sizeof(value));
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, bytes, sizeof(bits));
  return decode_float(p_.out, bits);
}

// All elements of a small D; of a large one the corners and elements at random.
void Workload::take_samples() {
  constexpr int64_t kMost = 4096;
  const int64_t count = p_.batch * p_.m * p_.n;
  std::mt19937_64 random(7);
  const GemmReference reference{p_, epilogue_, a_.data(), b_.data(), extra_};
  // Rounding of the result; of sums in f32 (fp8: in fewer bits); of operands to tf32.
  const double round = p_.out == DType::kBF16 ? 0x1p-7 : p_.out == DType::kF16 ? 0x1p-10 : 0x1p-20;
  const double sum = size_of(p_.in) == 2 ? 0x1p-16 : p_.in == DType::kI8 ? 0x1p-22 : 0x1p-9;
  const int64_t taken = std::min(count, kMost);
  for (int64_t i = 0; i < taken; ++i) {
    int64_t at = count <= kMost ? i : static_cast<int64_t>(random() % static_cast<uint64_t>(count));
    if (count > kMost && i < 4) at = (i & 1) * (p_.n - 1) + (i >> 1) * (p_.m - 1) * p_.n;
    const int64_t batch = at / (p_.m * p_.n), row = at / p_.n % p_.m, col = at % p_.n;
    double magnitude = 0;
    const double value = reference.at(batch, row, col, magnitude);
    samples_.push_back(
        {batch * p_.stride_d + row * p_.ldd + col, value, round * std::abs(value) + sum * magnitude + 1e-6});
  }
}

double Workload::check() {
  if (samples_.empty()) take_samples();
  std::vector<uint8_t> got(d.size());
  d.read(got.data(), got.size());
  for (size_t i = d_bytes_; i < got.size(); ++i) {
    if (got[i] != kPoison) return INFINITY;
  }
  double worst = 0;
  for (const Sample& sample : samples_) {
    const double error = std::abs(value_at(got.data(), sample.index) - sample.value) / sample.bound;
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  // Every other element: written, and close to what the first right candidate gave.
  if (worst > 1) return worst;
  if (first_.empty()) first_ = got;
  const double near = p_.out == DType::kBF16 ? 0x1p-5 : p_.out == DType::kF16 ? 0x1p-8 : 0x1p-12;
  const double small = std::sqrt(static_cast<double>(std::max<int64_t>(p_.k, 1))) * (p_.in == DType::kI8   ? 0
                                                                                     : size_of(p_.in) == 2 ? 0x1p-8
                                                                                                           : 0x1p-4);
  for (int64_t batch = 0; batch < p_.batch; ++batch) {
    for (int64_t row = 0; row < p_.m; ++row) {
      for (int64_t col = 0; col < p_.n; ++col) {
        const int64_t index = batch * p_.stride_d + row * p_.ldd + col;
        const double x = value_at(got.data(), index), y = value_at(first_.data(), index);
        if (!(std::abs(x - y) <= near * std::abs(y) + small)) return INFINITY;
      }
    }
  }
  return worst;
}

// One candidate on the device.
struct Instance {
  GemmTiming timing;
  std::unique_ptr<runtime::CudaModule> module;
  std::unique_ptr<CudaBuffer> workspace, counters;
  std::unique_ptr<runtime::CudaSequence> sequence;
  std::unique_ptr<CudaGraph> graph;
};

std::vector<jit::CompiledCubin> compile_all(const CudaGemmProblem& problem, const codegen::CudaEpilogue& epilogue,
                                            const CudaTarget& target, std::vector<GemmTiming>& timings,
                                            const GemmBenchOptions& options) {
  std::vector<jit::CompiledCubin> cubins(timings.size());
  if (!target.emulated) jit::find_nvrtc();
  const codegen::GemmEpilogue lowered = codegen::lower(epilogue, problem);
  std::atomic<int> done{0};
  const int threads =
      std::max(1, std::min(static_cast<int>(timings.size()), static_cast<int>(std::thread::hardware_concurrency())));
  ThreadPool pool(threads);
  pool.run(static_cast<int64_t>(timings.size()), [&](int64_t begin, int64_t end, int) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      try {
        const codegen::CudaGemmUnit unit =
            codegen::gemm_unit(problem, timings[i].candidate.config, lowered.epilogue, lowered.operands);
        cubins[i] = jit::compile_cubin(unit.source(), target.architecture(), options.use_cache);
        timings[i].compile_seconds = cubins[i].seconds;
        timings[i].from_cache = cubins[i].from_cache;
      } catch (const Error& error) {
        timings[i].failure = error.what();
      }
      ++done;
    }
  });
  return cubins;
}

void instantiate(Instance& instance, const CudaContext& context, const CudaGemmProblem& problem,
                 const codegen::CudaEpilogue& epilogue, const Workload& work, const std::string& cubin) {
  schedule::CudaGemmLaunches launches =
      schedule::make_launches(problem, instance.timing.candidate.config, context.device().target,
                              static_cast<int>(4 + epilogue.operands.size()));
  CudaLaunch& last = launches.launches.at(static_cast<size_t>(launches.epilogue_launch));
  const codegen::GemmEpilogue lowered = codegen::lower(epilogue, problem);
  const codegen::CudaFunctor functor =
      codegen::gemm_unit(problem, instance.timing.candidate.config, lowered.epilogue, lowered.operands).epilogue;
  for (PointerPatch patch : functor.pointers) {
    patch.argument = static_cast<int>(last.arguments.size());
    last.pointers.push_back(patch);
  }
  last.arguments.push_back(functor.block);
  instance.module = std::make_unique<runtime::CudaModule>(context, cubin);
  instance.workspace = std::make_unique<CudaBuffer>(context, static_cast<size_t>(launches.workspace_bytes));
  instance.counters = std::make_unique<CudaBuffer>(context, static_cast<size_t>(launches.counter_bytes));
  const std::vector<uint8_t> zeros(instance.counters->size(), 0);
  instance.counters->write(zeros.data(), zeros.size());
  instance.sequence = std::make_unique<runtime::CudaSequence>(
      context, *instance.module, launches.launches,
      work.operands(instance.workspace->address(), instance.counters->address()));
  instance.graph = std::make_unique<CudaGraph>(context, [&] { instance.sequence->enqueue(); });
}

double time_median(runtime::CudaTimer& timer, const CudaGraph& graph, int repeats) {
  std::vector<double> times;
  if (repeats > 0) timer.time_us(graph);  // the first launch loads code
  for (int i = 0; i < repeats; ++i) times.push_back(timer.time_us(graph));
  return median(std::move(times));
}

// The library's best algorithm, then both alternating.
void time_beside_library(GemmBenchResult& result, const CudaContext& context, runtime::CudaTimer& timer,
                         const Workload& work, const CudaGraph& ours, const GemmBenchOptions& options) {
  constexpr int kQuick = 7;
  std::unique_ptr<CublasLt> library = CublasLt::load(context, result.library_why);
  std::unique_ptr<CudaGraph> theirs;
  if (library != nullptr) {
    const auto problem = library->prepare(result.problem, work.operands(0, 0));
    result.library_algorithms = CublasLt::algorithms(*problem);
    result.library_why = result.library_algorithms == 0 ? "it supports no such problem" : "";
    double best = 0;
    for (int i = 0; i < result.library_algorithms; ++i) {
      bool good = true;
      auto graph = std::make_unique<CudaGraph>(context, [&] { good = library->enqueue(*problem, i); });
      if (!good) continue;
      const double us = time_median(timer, *graph, kQuick);
      if (i == 0) result.library_first_us = us;
      if (theirs == nullptr || us < best) {
        best = us;
        theirs = std::move(graph);
      }
    }
  }
  std::vector<double> our_times, their_times;
  for (int i = 0; i < options.repeats; ++i) {
    our_times.push_back(timer.time_us(ours));
    if (theirs != nullptr) their_times.push_back(timer.time_us(*theirs));
  }
  result.best_us = median(our_times);
  result.library_us = median(their_times);
}

}  // namespace

GemmBenchResult bench_gemm(const CudaGemmProblem& given, const GemmBenchOptions& options) {
  constexpr int kQuick = 9;
  GemmBenchResult result;
  result.problem = given.resolved();
  const CudaGemmProblem& problem = result.problem;
  const codegen::CudaEpilogue epilogue = codegen::CudaEpilogue::parse(options.epilogue, problem.out);
  const CudaContext context(options.ordinal);
  const CudaTarget& target = context.device().target;
  result.device = context.device().name;
  if (target.sm != 90) {
    fail(ErrorCode::kDevice, result.device,
         fmt::format("its compute capability is {}, these kernels are for 90", target.sm));
  }
  result.floor_us = schedule::floor_us(problem, target);

  // The model errs most between clusters and parts of one tile: at most two of each tile leave room for others.
  constexpr int kOfOneTile = 2;
  std::map<std::tuple<int, int, int, bool, bool, bool>, int> taken;
  for (schedule::CudaGemmCandidate& candidate : schedule::enumerate(problem, target, true)) {
    if (!candidate.rejected.empty()) continue;
    const schedule::CudaGemmConfig& c = candidate.config;
    if (options.most > 0) {
      if (static_cast<int>(result.timings.size()) == options.most) break;
      if (taken[{c.tile_m, c.tile_n, c.consumers, c.ping_pong, c.swapped, c.stream}]++ >= kOfOneTile) continue;
    }
    result.timings.emplace_back().candidate = std::move(candidate);
  }
  if (problem.m == 0 || problem.n == 0 || problem.batch == 0) result.timings.clear();  // nothing to do
  const std::vector<jit::CompiledCubin> cubins = compile_all(problem, epilogue, target, result.timings, options);

  Workload work(context, problem, epilogue, options.seed);
  CudaBuffer flush(context, target.emulated ? 4 : kFlushBytes);  // times of an emulator mean nothing
  runtime::CudaTimer timer(context, flush);
  CudaBuffer word(context, 4);
  const CudaGraph empty(context, [&] {
    context.driver().check(context.driver().set_d32_async(word.address(), 0, 1, context.stream()), "cuMemsetD32Async");
  });
  result.empty_graph_us = time_median(timer, empty, options.repeats);

  std::unique_ptr<Instance> best;
  for (size_t i = 0; i < result.timings.size(); ++i) {
    if (options.progress) options.progress(static_cast<int>(i), static_cast<int>(result.timings.size()));
    GemmTiming& timing = result.timings[i];
    if (!timing.failure.empty()) {
      result.verified = false;
      continue;
    }
    auto instance = std::make_unique<Instance>();
    instance->timing = timing;
    instantiate(*instance, context, problem, epilogue, work, cubins[i].bytes);
    if (options.verify) {
      work.poison();
      instance->graph->launch();
      timing.error = work.check();
      if (!(timing.error <= 1)) {
        result.verified = false;
        continue;
      }
    }
    timing.median_us = time_median(timer, *instance->graph, target.emulated ? 0 : kQuick);
    if (result.pick < 0) result.pick = static_cast<int>(i);
    if (result.best < 0 || timing.median_us < result.timings[static_cast<size_t>(result.best)].median_us) {
      result.best = static_cast<int>(i);
      best = std::move(instance);
    }
  }
  if (best != nullptr && options.library) {
    time_beside_library(result, context, timer, work, *best->graph, options);
  } else if (best != nullptr) {
    result.best_us = time_median(timer, *best->graph, target.emulated ? 0 : options.repeats);
  }
  return result;
}

}  // namespace heddle::driver
