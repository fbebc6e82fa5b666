#include "ops/gemm_workload.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "base/divide.h"
#include "ir/analysis/partial_reduction.h"
#include "tune/random_data.h"

namespace heddle::ops {
namespace {

constexpr size_t kGuardBytes = 4096;
constexpr uint8_t kPoison = 0xFF;  // NaN in every floating type

std::vector<uint8_t> random_bytes(DType type, int64_t count, uint64_t seed) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count) * size_of(type));
  tune::fill_random(bytes.data(), type, count, seed);
  return bytes;
}

double element(const std::vector<uint8_t>& data, DType type, int64_t index) {
  return tune::as_double(data.data() + index * static_cast<int64_t>(size_of(type)), type);
}

std::unique_ptr<runtime::CudaBuffer> on_device(const runtime::CudaContext& context, const std::vector<uint8_t>& bytes) {
  // cp.async that asks for the last bytes of an operand alone counts as a read of all 16 with compute-sanitizer.
  constexpr int64_t kPiece = 16;
  const auto size = static_cast<int64_t>(bytes.size());
  const int64_t room = context.device().target.emulated ? size : round_up(size, kPiece);
  auto buffer = std::make_unique<runtime::CudaBuffer>(context, static_cast<size_t>(room));
  buffer->write(bytes.data(), bytes.size());
  return buffer;
}

}  // namespace

GemmWorkload::GemmWorkload(const runtime::CudaContext& context, const ResolvedGemm& gemm, bool reference, uint64_t seed)
    : gemm_(gemm), reference_(reference), context_(context) {
  const GemmProblem& p = gemm.problem;
  const int64_t a_rows = p.transpose_a ? p.k : p.m, a_columns = p.transpose_a ? p.m : p.k;
  const int64_t b_rows = p.transpose_b ? p.n : p.k, b_columns = p.transpose_b ? p.k : p.n;
  a_ = random_bytes(p.in, extent_of(a_rows, a_columns, p.lda, p.stride_a, p.batch), seed);
  b_ = random_bytes(p.in, extent_of(b_rows, b_columns, p.ldb, p.stride_b, p.batch), seed + 1);
  d_bytes_ = static_cast<size_t>(extent_of(p.m, p.n, p.ldd, p.stride_d, p.batch)) * size_of(p.out);
  device_a_ = on_device(context, a_);
  device_b_ = on_device(context, b_);
  device_d_ = std::make_unique<runtime::CudaBuffer>(context, d_bytes_ + kGuardBytes);
  for (const Operand& o : p.operands) {
    extra_.push_back(random_bytes(o.dtype, extent_of(o, p), seed + 2 + extra_.size()));
    device_extra_.push_back(on_device(context, extra_.back()));
  }
  for (size_t i = kFirstOperand + p.operands.size(); i < gemm.desc.operands.size(); ++i) {
    const schedule::Operand& o = gemm.desc.operands[i];
    const auto bytes = static_cast<size_t>(element_count(o.shape)) * size_of(o.dtype);
    device_extra_.push_back(std::make_unique<runtime::CudaBuffer>(context, bytes));
  }
}

std::vector<uint64_t> GemmWorkload::operands(uint64_t workspace, uint64_t counters) const {
  std::vector<uint64_t> list = {device_a_->address(), device_b_->address(), device_d_->address()};
  for (const auto& buffer : device_extra_) list.push_back(buffer->address());
  list.push_back(workspace);
  list.push_back(counters);
  return list;
}

void GemmWorkload::poison() {
  const auto fill = [&](const runtime::CudaBuffer& buffer) {
    context_.check(context_.driver().set_d8_async(buffer.address(), kPoison, buffer.size(), context_.stream()),
                   "cuMemsetD8Async");
  };
  fill(*device_d_);
  for (size_t i = gemm_.problem.operands.size(); i < device_extra_.size(); ++i) fill(*device_extra_[i]);
}

double GemmWorkload::reference_at(int64_t batch, int64_t row, int64_t column, double& magnitude) const {
  const GemmProblem& p = gemm_.problem;
  double sum = 0;
  magnitude = 0;
  for (int64_t k = 0; k < p.k; ++k) {
    const double x = element(a_, p.in, batch * p.stride_a + (p.transpose_a ? k * p.lda + row : row * p.lda + k));
    const double y = element(b_, p.in, batch * p.stride_b + (p.transpose_b ? column * p.ldb + k : k * p.ldb + column));
    sum += x * y;
    magnitude += std::abs(x * y);
  }
  const schedule::Epilogue& epilogue = gemm_.contraction().epilogue;
  return evaluate_epilogue(epilogue, batch, row, column, sum, [&](uint32_t operand, int64_t position) {
    const size_t i = operand - kFirstOperand;
    const double value = element(extra_.at(i), p.operands[i].dtype, position);
    magnitude += std::abs(value);
    return value;
  });
}

// All rows of a D of some million elements; of a larger one a row of every so many.
std::vector<int64_t> GemmWorkload::choose_rows() const {
  constexpr int64_t kMostElements = int64_t{1} << 21, kMostRows = 4096;
  const GemmProblem& p = gemm_.problem;
  const int64_t rows = p.batch * p.m;
  const auto parts = [](int64_t x, int64_t most) { return (x + most - 1) / most; };
  const int64_t step =
      rows * p.n <= kMostElements ? 1 : std::max(parts(rows * p.n, kMostElements), parts(rows, kMostRows));
  std::mt19937_64 random(11);
  std::vector<int64_t> chosen;
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t some = std::min(step, rows - first);
    chosen.push_back(first + static_cast<int64_t>(random() % static_cast<uint64_t>(some)));
  }
  chosen.back() = rows - 1;
  return chosen;
}

// D's rows as they are in `rows_`, one behind the other.
std::vector<uint8_t> GemmWorkload::read_rows() const {
  const GemmProblem& p = gemm_.problem;
  const auto element = static_cast<int64_t>(size_of(p.out));
  const auto row_bytes = static_cast<size_t>(p.n * element);
  const auto place = [&](int64_t row) {
    return static_cast<size_t>((row / p.m * p.stride_d + row % p.m * p.ldd) * element);
  };
  std::vector<uint8_t> bytes(rows_.size() * row_bytes);
  if (static_cast<int64_t>(rows_.size()) < p.batch * p.m) {
    for (size_t i = 0; i < rows_.size(); ++i) {
      device_d_->read(bytes.data() + i * row_bytes, row_bytes, place(rows_[i]));
    }
    return bytes;
  }
  std::vector<uint8_t> all(d_bytes_);
  device_d_->read(all.data(), all.size());
  for (size_t i = 0; i < rows_.size(); ++i) {
    std::copy_n(all.data() + place(rows_[i]), row_bytes, bytes.data() + i * row_bytes);
  }
  return bytes;
}

// All elements of a small D; of a large one those at the ends and some at random, in the rows that are read.
void GemmWorkload::take_samples() {
  constexpr int64_t kMost = 4096, kLeast = 256, kMostProducts = int64_t{1} << 25;
  const GemmProblem& p = gemm_.problem;
  const auto rows = static_cast<int64_t>(rows_.size());
  const int64_t count = rows * p.n;
  const int64_t most = std::clamp(kMostProducts / std::max<int64_t>(p.k, 1), kLeast, kMost);
  std::mt19937_64 random(7);
  // Rounding of the result; of sums in f32 (fp8: in fewer bits); of operands to tf32; of functions in f32.
  const double round = p.out == DType::kBF16 ? 0x1p-7 : p.out == DType::kF16 ? 0x1p-10 : 0x1p-18;
  const bool integers = !is_float(p.in);
  const double sum = size_of(p.in) == 2 || (p.in == DType::kF32 && !p.tf32) ? 0x1p-16
                     : integers || p.in == DType::kF64                      ? 0x1p-22
                                                                            : 0x1p-9;
  // Functions before a result of 16 bits: a part of their argument (tile/op/cuda/fast.h).
  const double function = !p.epilogue.empty() && (p.out == DType::kF16 || p.out == DType::kBF16) ? 0x1p-13 : 0;
  const int64_t taken = std::min(count, most);
  for (int64_t i = 0; i < taken; ++i) {
    int64_t at = count <= most ? i : static_cast<int64_t>(random() % static_cast<uint64_t>(count));
    if (count > most && i < 4) at = (i & 1) * (p.n - 1) + (i >> 1) * (rows - 1) * p.n;
    const int64_t row = rows_[static_cast<size_t>(at / p.n)], column = at % p.n;
    double magnitude = 0;
    const double value = reference_at(row / p.m, row % p.m, column, magnitude);
    // An integer result of an epilogue may fall on the other side of a whole number.
    const double whole = is_int(p.out) && !p.epilogue.empty() ? 1.0 : 1e-6;
    samples_.push_back({at, value, round * std::abs(value) + std::max(sum, function) * magnitude + whole});
  }
}

GemmWorkload::Tolerance GemmWorkload::tolerance() const {
  const GemmProblem& p = gemm_.problem;
  const double relative = p.out == DType::kBF16 ? 0x1p-5 : p.out == DType::kF16 ? 0x1p-8 : 0x1p-12;
  const double unit = !is_float(p.in) ? 0 : size_of(p.in) == 2 ? 0x1p-8 : 0x1p-4;
  return {relative, std::sqrt(static_cast<double>(std::max<int64_t>(p.k, 1))) * unit};
}

bool GemmWorkload::reductions_agree() {
  constexpr double kTerms = std::max(ir::kPartialRows, ir::kPartialColumns);
  const size_t first = gemm_.problem.operands.size();
  const auto [relative, absolute] = tolerance();
  for (size_t i = first; i < device_extra_.size(); ++i) {
    std::vector<float> values(device_extra_[i]->size() / sizeof(float));
    device_extra_[i]->read(values.data(), values.size() * sizeof(float));
    if (first_reductions_.size() == i - first) first_reductions_.push_back(values);
    const std::vector<float>& expected = first_reductions_[i - first];
    for (size_t k = 0; k < values.size(); ++k) {
      if (std::bit_cast<uint32_t>(values[k]) == kPoison * 0x01010101u) return false;
      const double x = values[k], y = expected[k];
      const bool same = x == y || (std::isnan(x) && std::isnan(y));
      if (!same && !(std::abs(x - y) <= relative * std::abs(y) + kTerms * absolute)) return false;
    }
  }
  return true;
}

double GemmWorkload::check() {
  const GemmProblem& p = gemm_.problem;
  if (rows_.empty()) rows_ = choose_rows();
  std::vector<uint8_t> guard(kGuardBytes);
  device_d_->read(guard.data(), guard.size(), d_bytes_);
  for (const uint8_t byte : guard) {
    if (byte != kPoison) return INFINITY;
  }
  std::vector<uint8_t> bytes = read_rows();
  double worst = 0;
  if (reference_) {
    if (samples_.empty()) take_samples();
    for (const Sample& sample : samples_) {
      const double error = std::abs(element(bytes, p.out, sample.index) - sample.value) / sample.bound;
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    }
    if (worst > 1) return worst;
  }
  if (first_.empty()) first_ = bytes;
  const auto [relative, absolute] = tolerance();
  const auto count = static_cast<int64_t>(rows_.size()) * p.n;
  for (int64_t i = 0; i < count; ++i) {
    const double x = element(bytes, p.out, i), y = element(first_, p.out, i);
    if (!(std::abs(x - y) <= relative * std::abs(y) + absolute || (!reference_ && x == y))) return INFINITY;
  }
  return reductions_agree() ? worst : INFINITY;
}

}  // namespace heddle::ops
