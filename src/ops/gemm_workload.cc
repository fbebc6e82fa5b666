#include "ops/gemm_workload.h"

#include <algorithm>
#include <cmath>
#include <random>

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
  auto buffer = std::make_unique<runtime::CudaBuffer>(context, bytes.size());
  buffer->write(bytes.data(), bytes.size());
  return buffer;
}

}  // namespace

GemmWorkload::GemmWorkload(const runtime::CudaContext& context, const ResolvedGemm& gemm, bool reference, uint64_t seed)
    : gemm_(gemm), reference_(reference) {
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
}

std::vector<uint64_t> GemmWorkload::operands(uint64_t workspace, uint64_t counters) const {
  std::vector<uint64_t> list = {device_a_->address(), device_b_->address(), device_d_->address()};
  for (const auto& buffer : device_extra_) list.push_back(buffer->address());
  list.push_back(workspace);
  list.push_back(counters);
  return list;
}

void GemmWorkload::poison() {
  const std::vector<uint8_t> bytes(device_d_->size(), kPoison);
  device_d_->write(bytes.data(), bytes.size());
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

// All elements of a small D; of a large one the corners and elements at random.
void GemmWorkload::take_samples() {
  constexpr int64_t kMost = 4096;
  const GemmProblem& p = gemm_.problem;
  const int64_t count = p.batch * p.m * p.n;
  std::mt19937_64 random(7);
  // Rounding of the result; of sums in f32 (fp8: in fewer bits); of operands to tf32; of functions in f32.
  const double round = p.out == DType::kBF16 ? 0x1p-7 : p.out == DType::kF16 ? 0x1p-10 : 0x1p-18;
  const bool integers = !is_float(p.in);
  const double sum = size_of(p.in) == 2 || (p.in == DType::kF32 && !p.tf32) ? 0x1p-16
                     : integers || p.in == DType::kF64                      ? 0x1p-22
                                                                            : 0x1p-9;
  const int64_t taken = std::min(count, kMost);
  for (int64_t i = 0; i < taken; ++i) {
    int64_t at = count <= kMost ? i : static_cast<int64_t>(random() % static_cast<uint64_t>(count));
    if (count > kMost && i < 4) at = (i & 1) * (p.n - 1) + (i >> 1) * (p.m - 1) * p.n;
    const int64_t batch = at / (p.m * p.n), row = at / p.n % p.m, column = at % p.n;
    double magnitude = 0;
    const double value = reference_at(batch, row, column, magnitude);
    // An integer result of an epilogue may fall on the other side of a whole number.
    const double whole = is_int(p.out) && !p.epilogue.empty() ? 1.0 : 1e-6;
    samples_.push_back(
        {batch * p.stride_d + row * p.ldd + column, value, round * std::abs(value) + sum * magnitude + whole});
  }
}

double GemmWorkload::check() {
  const GemmProblem& p = gemm_.problem;
  std::vector<uint8_t> bytes(device_d_->size());
  device_d_->read(bytes.data(), bytes.size());
  for (size_t i = d_bytes_; i < bytes.size(); ++i) {
    if (bytes[i] != kPoison) return INFINITY;
  }
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
  // Sums in another order: what rounding may do to them, with the operands' size of about 1.
  const double near = p.out == DType::kBF16 ? 0x1p-5 : p.out == DType::kF16 ? 0x1p-8 : 0x1p-12;
  const double unit = !is_float(p.in) ? 0 : size_of(p.in) == 2 ? 0x1p-8 : 0x1p-4;
  const double small = std::sqrt(static_cast<double>(std::max<int64_t>(p.k, 1))) * unit;
  for (int64_t batch = 0; batch < p.batch; ++batch) {
    for (int64_t row = 0; row < p.m; ++row) {
      for (int64_t column = 0; column < p.n; ++column) {
        const int64_t index = batch * p.stride_d + row * p.ldd + column;
        const double x = element(bytes, p.out, index), y = element(first_, p.out, index);
        if (!(std::abs(x - y) <= near * std::abs(y) + small || (!reference_ && x == y))) return INFINITY;
      }
    }
  }
  return worst;
}

}  // namespace heddle::ops
