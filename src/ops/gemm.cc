#include <algorithm>
#include <array>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>

#include "base/check.h"
#include "ops/gemm_trial.h"
#include "ops/prepared_kernel.h"
#include "schedule/config/config_source.h"
#include "tune/place.h"

namespace heddle::ops {
namespace {

using runtime::CudaContext;
using schedule::CudaCandidate;

constexpr size_t kGemmOperands = 16;
constexpr int kMeasured = 8;  // candidates of one problem that prepare() measures

// Measures the best predictions, stores the winner, and returns it; nullopt where none of them runs.
std::optional<ConfigChoice> measure(const CudaContext& context, const ResolvedGemm& gemm, const tune::Place& place,
                                    const PrepareOptions& options) {
  GemmTrial trial(context, gemm, worthwhile(gemm, context.device().target, kMeasured), {false, options.use_cache});
  tune::TunerOptions tuner;
  tuner.budget_seconds = options.tune_seconds;
  const tune::TunerResult result = tune::choose_best(trial, tuner);
  if (!result.ok) return std::nullopt;
  const schedule::Config& winner = trial.candidates()[result.winner].candidate.config;
  const tune::Record record =
      tune::record_of(result, schedule::name_of(winner), schedule::name_of(trial.candidates()[0].candidate.config));
  tune::user_database().store(place, gemm.text(), record);
  return ConfigChoice{winner,
                      fmt::format("measured: {:.2f} us, {:.2f}x the model's pick", record.winner_us, result.gain)};
}

// Configurations in the order in which they are to be tried: what was measured first, then the model's order.
std::vector<ConfigChoice> choose(const CudaContext& context, const ResolvedGemm& gemm, const PrepareOptions& options) {
  std::vector<CudaCandidate> list = all_candidates(gemm, context.device().target);
  if (list.empty() || !list.front().rejected.empty()) {
    fail(ErrorCode::kUnsupportedType, "gemm",
         fmt::format("no configuration runs on {}: {}", context.device().name,
                     list.empty() ? "there is none" : list.front().rejected));
  }
  std::vector<ConfigChoice> choices;
  const tune::Place place = tune::place_of(context.device());
  if (const auto record = tune::user_database().find(place, gemm.text())) {
    const std::optional<schedule::Choice> winner = schedule::parse_choice(record->winner);
    for (const CudaCandidate& candidate : list) {
      if (!candidate.rejected.empty() || candidate.config.choice != winner) continue;
      choices.push_back(
          {candidate.config, fmt::format("tuned: {:.2f} us, median of {} runs", record->winner_us, record->samples)});
    }
  }
  if (choices.empty() && options.tune_seconds > 0) {
    if (auto measured = measure(context, gemm, place, options)) choices.push_back(std::move(*measured));
  }
  for (CudaCandidate& candidate : list) {
    if (!candidate.rejected.empty() || choices.size() > kMostTries) break;
    choices.push_back(
        {candidate.config, fmt::format("{:.2f} us predicted by the model", candidate.config.predicted_us)});
  }
  return choices;
}

}  // namespace

class Gemm::Impl {
 public:
  Impl(const GemmProblem& problem, const PrepareOptions& options);

  void call(const void* a, const void* b, void* d, void* stream, std::span<const void* const> operands,
            std::span<void* const> reductions) const;

  std::string config, reason;
  int64_t workspace_bytes = 0;

 private:
  // What a call checks of one address.
  struct Span : OperandSpan {
    bool may_be_d = false;  // an operand with exactly D's elements
  };

  void set_spans();
  uint64_t address(size_t operand, const void* pointer) const { return checked_address(spans_[operand], pointer); }
  void check_overlaps(std::span<const uint64_t> addresses) const;

  ResolvedGemm gemm_;
  std::vector<Span> spans_;                 // of A, B, D, the epilogue's operands and the results of reductions
  std::unique_ptr<PreparedKernel> kernel_;  // null where there is nothing to compute
};

Gemm::Impl::Impl(const GemmProblem& problem, const PrepareOptions& options) : gemm_(resolve(problem)) {
  const size_t count = gemm_.problem.operands.size() + gemm_.problem.reductions.size();
  if (count > kGemmOperands) {
    fail(ErrorCode::kInvalidArgument, "gemm",
         fmt::format("its epilogue has {} operands and reductions, at most {}", count, kGemmOperands));
  }
  set_spans();
  if (gemm_.is_empty()) {
    config = reason = "nothing to compute";
    return;
  }
  auto context = CudaContext::of_device(options.device);
  const std::vector<ConfigChoice> choices = choose(*context, gemm_, options);
  kernel_ = std::make_unique<PreparedKernel>(std::move(context), gemm_.desc, choices, options.use_cache);
  config = kernel_->config, reason = kernel_->reason, workspace_bytes = kernel_->workspace_bytes;
}

void Gemm::Impl::set_spans() {
  const GemmProblem& p = gemm_.problem;
  const auto add = [&](std::string name, int64_t elements, DType dtype) {
    spans_.push_back({{"gemm: " + name, elements * static_cast<int64_t>(size_of(dtype))}, false});
  };
  const bool ta = p.transpose_a, tb = p.transpose_b;
  add("A", extent_of(ta ? p.k : p.m, ta ? p.m : p.k, p.lda, p.stride_a, p.batch), p.in);
  add("B", extent_of(tb ? p.n : p.k, tb ? p.k : p.n, p.ldb, p.stride_b, p.batch), p.in);
  add("D", extent_of(p.m, p.n, p.ldd, p.stride_d, p.batch), p.out);
  for (const Operand& o : p.operands) {
    add(fmt::format("operand \"{}\"", o.name), extent_of(o, p), o.dtype);
    spans_.back().may_be_d = o.kind == Operand::Kind::kMatrix && o.dtype == p.out && o.leading == p.ldd &&
                             (p.batch == 1 || *o.stride == p.stride_d);
  }
  for (size_t i = spans_.size(), reduction = 0; i < gemm_.desc.operands.size(); ++i, ++reduction) {
    add(fmt::format("reduction {}", reduction), element_count(gemm_.desc.operands[i].shape),
        gemm_.desc.operands[i].dtype);
  }
}

void Gemm::Impl::check_overlaps(std::span<const uint64_t> addresses) const {
  const uint64_t d = addresses[kOperandD], d_end = d + static_cast<uint64_t>(spans_[kOperandD].bytes);
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (i == kOperandD) continue;
    const uint64_t end = addresses[i] + static_cast<uint64_t>(spans_[i].bytes);
    if (addresses[i] >= d_end || end <= d || (spans_[i].may_be_d && addresses[i] == d)) continue;
    fail(ErrorCode::kInvalidArgument, spans_[i].name, "it overlaps D",
         "D may be a matrix operand of the epilogue of the same type and strides, nothing else");
  }
  for (size_t r = kFirstOperand + gemm_.problem.operands.size(); r < addresses.size(); ++r) {
    const uint64_t begin = addresses[r], end = begin + static_cast<uint64_t>(spans_[r].bytes);
    for (size_t i = 0; i < r; ++i) {
      if (addresses[i] < end && begin < addresses[i] + static_cast<uint64_t>(spans_[i].bytes)) {
        fail(ErrorCode::kInvalidArgument, spans_[r].name, "its result overlaps another operand",
             "Give each reduction memory of its own");
      }
    }
  }
}

void Gemm::Impl::call(const void* a, const void* b, void* d, void* stream, std::span<const void* const> operands,
                      std::span<void* const> reductions) const {
  if (operands.size() != gemm_.problem.operands.size()) [[unlikely]] {
    fail(ErrorCode::kInvalidArgument, "gemm",
         fmt::format("{} operands are given, its epilogue has {}", operands.size(), gemm_.problem.operands.size()));
  }
  if (reductions.size() != gemm_.problem.reductions.size()) [[unlikely]] {
    fail(ErrorCode::kInvalidArgument, "gemm",
         fmt::format("{} results of reductions are given, it has {}", reductions.size(),
                     gemm_.problem.reductions.size()));
  }
  if (kernel_ == nullptr) return;
  std::array<uint64_t, kFirstOperand + kGemmOperands + 2> addresses;
  addresses[0] = address(0, a), addresses[1] = address(1, b), addresses[2] = address(2, d);
  for (size_t i = 0; i < operands.size(); ++i) {
    addresses[kFirstOperand + i] = address(kFirstOperand + i, operands[i]);
  }
  const size_t first_reduction = kFirstOperand + operands.size();
  for (size_t i = 0; i < reductions.size(); ++i) {
    addresses[first_reduction + i] = address(first_reduction + i, reductions[i]);
  }
  const size_t count = first_reduction + reductions.size();
  check_overlaps({addresses.data(), count});
  kernel_->launch({addresses.data(), count + 2}, stream);
}

Gemm Gemm::prepare(const GemmProblem& problem, const PrepareOptions& options) {
  return Gemm(std::make_shared<const Impl>(problem, options));
}

void Gemm::operator()(const void* a, const void* b, void* d, void* stream, std::span<const void* const> operands,
                      std::span<void* const> reductions) const {
  impl_->call(a, b, d, stream, operands, reductions);
}

const std::string& Gemm::config() const {
  return impl_->config;
}
const std::string& Gemm::reason() const {
  return impl_->reason;
}
int64_t Gemm::workspace_bytes() const {
  return impl_->workspace_bytes;
}

std::vector<GemmInstance> gemm_instances(const GemmProblem& problem, int device) {
  const ResolvedGemm gemm = resolve(problem);
  const auto context = CudaContext::of_device(device);
  std::vector<GemmInstance> list;
  for (CudaCandidate& candidate : all_candidates(gemm, context->device().target)) {
    list.push_back({schedule::name_of(candidate.config), candidate.config.predicted_us, std::move(candidate.rejected)});
  }
  return list;
}

bool GemmProblem::operator==(const GemmProblem& other) const {
  const auto numbers = [](const GemmProblem& p) {
    return std::tie(p.m, p.n, p.k, p.batch, p.in, p.out, p.tf32, p.transpose_a, p.transpose_b, p.lda, p.ldb, p.ldd,
                    p.stride_a, p.stride_b, p.stride_d);
  };
  const auto same = [](const Operand& a, const Operand& b) {
    return std::tie(a.kind, a.dtype, a.leading, a.stride, a.name) ==
           std::tie(b.kind, b.dtype, b.leading, b.stride, b.name);
  };
  return numbers(*this) == numbers(other) && epilogue == other.epilogue && reductions == other.reductions &&
         std::equal(operands.begin(), operands.end(), other.operands.begin(), other.operands.end(), same);
}

namespace {

struct CacheKey {
  GemmProblem problem;
  int device;
};

// Of what differs between the problems of a program; equal hashes are told apart by comparing.
struct CacheHash {
  using is_transparent = void;
  static size_t mix(size_t h, uint64_t value) { return (h ^ value) * 0x9E3779B97F4A7C15u + (h >> 29); }
  static size_t of(const GemmProblem& p, int device) {
    size_t h = mix(static_cast<size_t>(device), static_cast<uint64_t>(p.m));
    h = mix(h, static_cast<uint64_t>(p.n));
    h = mix(h, static_cast<uint64_t>(p.k));
    h = mix(h, static_cast<uint64_t>(p.batch));
    h = mix(h, static_cast<uint64_t>(p.in) | static_cast<uint64_t>(p.out) << 8 | uint64_t{p.transpose_a} << 16 |
                   uint64_t{p.transpose_b} << 17 | uint64_t{p.tf32} << 18 | p.operands.size() << 19);
    h = mix(h, static_cast<uint64_t>(p.lda ^ p.ldb << 20 ^ p.ldd << 40));
    return mix(h, std::hash<std::string_view>()(p.epilogue));
  }
  size_t operator()(const CacheKey& key) const { return of(key.problem, key.device); }
  size_t operator()(const std::pair<const GemmProblem*, int>& key) const { return of(*key.first, key.second); }
};

struct CacheEqual {
  using is_transparent = void;
  bool operator()(const CacheKey& a, const CacheKey& b) const { return a.device == b.device && a.problem == b.problem; }
  bool operator()(const std::pair<const GemmProblem*, int>& a, const CacheKey& b) const {
    return a.second == b.device && *a.first == b.problem;
  }
  bool operator()(const CacheKey& a, const std::pair<const GemmProblem*, int>& b) const { return (*this)(b, a); }
};

struct GemmCache {
  std::shared_mutex mutex;
  std::unordered_map<CacheKey, Gemm, CacheHash, CacheEqual> map;
};

// Never destroyed: the driver may be gone when static variables are.
GemmCache& gemm_cache() {
  static auto* cache = new GemmCache;
  return *cache;
}

}  // namespace

void gemm(const GemmProblem& problem, const void* a, const void* b, void* d, void* stream,
          std::span<const void* const> operands, const PrepareOptions& options, std::span<void* const> reductions) {
  GemmCache& cache = gemm_cache();
  const std::pair<const GemmProblem*, int> key(&problem, options.device);
  {
    const std::shared_lock lock(cache.mutex);
    if (const auto found = cache.map.find(key); found != cache.map.end()) {
      return found->second(a, b, d, stream, operands, reductions);
    }
  }
  const Gemm prepared = Gemm::prepare(problem, options);
  {
    const std::lock_guard lock(cache.mutex);
    cache.map.try_emplace({problem, options.device}, prepared);
  }
  prepared(a, b, d, stream, operands, reductions);
}

}  // namespace heddle::ops
