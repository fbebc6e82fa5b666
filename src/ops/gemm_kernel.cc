#include "ops/gemm_kernel.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/check.h"

namespace heddle::ops {
namespace {

using schedule::CudaCandidate;
using schedule::OperandView;
using schedule::Product;

constexpr int64_t kMostExtent = std::numeric_limits<int32_t>::max();
constexpr double kMostSpan = 0x1p46;  // elements: addresses stay far below the range of int64

[[noreturn]] void refuse_gemm(const std::string& why, const std::string& remedy = {}) {
  fail(ErrorCode::kInvalidArgument, "gemm", why, remedy);
}

// A matrix in memory: rows of `row` elements, `leading` apart, batches `stride` apart.
struct Matrix {
  const char* name;
  int64_t rows, row;
  int64_t &leading, &stride;
};

void resolve_matrix(const Matrix& x, int64_t batch) {
  if (x.leading < 0 || (x.leading > 0 && x.leading < x.row)) {
    refuse_gemm(
        fmt::format("the leading dimension of {} is {}, smaller than a row of {} elements", x.name, x.leading, x.row),
        "Count elements from row to row, or give 0 for a dense matrix");
  }
  if (x.stride < 0) refuse_gemm(fmt::format("the batch stride of {} is negative ({})", x.name, x.stride));
  if (x.leading == 0) x.leading = std::max<int64_t>(x.row, 1);
  if (static_cast<double>(x.rows) * static_cast<double>(x.leading) +
          static_cast<double>(batch) * static_cast<double>(x.stride) >
      kMostSpan) {
    refuse_gemm(fmt::format("{} has {} rows {} elements apart, {} batches {} apart: beyond any memory", x.name, x.rows,
                            x.leading, batch, x.stride));
  }
  if (x.stride == 0) x.stride = x.leading * x.rows;
}

// What sums are held in; fails for pairs that no kernel has.
DType accumulator_of(DType in, DType out) {
  const bool narrow = out == DType::kF32 || out == DType::kF16 || out == DType::kBF16;
  switch (in) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      if (narrow) return DType::kF32;
      break;
    case DType::kI8:
    case DType::kU8:
      if (narrow || out == DType::kI32) return DType::kI32;
      break;
    case DType::kF64:
      if (out == DType::kF64) return DType::kF64;
      break;
    default:
      break;
  }
  fail(ErrorCode::kUnsupportedType, "gemm", fmt::format("{} operands cannot give {}", to_string(in), to_string(out)),
       "There are f16, bf16, f32, f8e4m3, f8e5m2 -> f32, f16, bf16; i8, u8 -> i32, f32, f16, bf16; f64 -> f64");
}

GemmProblem resolve_sizes(GemmProblem p) {
  for (const auto& [name, value] : {std::pair{"m", p.m}, {"n", p.n}, {"k", p.k}, {"batch", p.batch}}) {
    if (value < 0 || value > kMostExtent)
      refuse_gemm(fmt::format("{} is {}, it must be 0 to {}", name, value, kMostExtent));
  }
  if (p.tf32 && p.in != DType::kF32)
    refuse_gemm(fmt::format("tf32 is for f32 operands, these are {}", to_string(p.in)));
  resolve_matrix({"A", p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.lda, p.stride_a}, p.batch);
  resolve_matrix({"B", p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.ldb, p.stride_b}, p.batch);
  resolve_matrix({"D", p.m, p.n, p.ldd, p.stride_d}, p.batch);
  if (p.batch > 1 && p.stride_d < extent_of(p.m, p.n, p.ldd, 0, 1)) {
    refuse_gemm(fmt::format("the batch stride of D is {}: batches of D overlap", p.stride_d));
  }
  for (Operand& o : p.operands) {
    const bool matrix = o.kind == Operand::Kind::kMatrix;
    if (matrix && o.leading == 0) o.leading = std::max<int64_t>(p.n, 1);
    if (!o.stride) o.stride = matrix ? o.leading * p.m : 0;
  }
  return p;
}

const char* kind_name(Operand::Kind kind) {
  switch (kind) {
    case Operand::Kind::kColumn:
      return "column";
    case Operand::Kind::kRow:
      return "row";
    case Operand::Kind::kMatrix:
      return "matrix";
    case Operand::Kind::kScalar:
      return "scalar";
  }
  return "";
}

OperandView matrix_operand(uint32_t operand, DType dtype, int64_t row, int64_t k, const GemmProblem& p,
                           int64_t stride) {
  OperandView o;
  o.form = OperandView::Form::kMatrix;
  o.dtype = dtype;
  o.operand = operand;
  if (p.batch > 1) o.batch = {{p.batch, stride}};
  o.row = row, o.k = k, o.depth = p.k;
  return o;
}

}  // namespace

int64_t extent_of(int64_t rows, int64_t columns, int64_t leading, int64_t stride, int64_t batch) {
  return rows == 0 || columns == 0 || batch == 0 ? 0 : (batch - 1) * stride + (rows - 1) * leading + columns;
}

int64_t extent_of(const Operand& o, const GemmProblem& p) {
  const bool matrix = o.kind == Operand::Kind::kMatrix;
  const int64_t columns = matrix || o.kind == Operand::Kind::kColumn ? p.n : o.kind == Operand::Kind::kRow ? p.m : 1;
  return extent_of(matrix ? p.m : 1, columns, o.leading, o.stride.value_or(0), p.batch);
}

const schedule::ContractionDesc& ResolvedGemm::contraction() const {
  return *std::get<std::shared_ptr<const schedule::ContractionDesc>>(desc.body);
}
const Product& ResolvedGemm::gemm() const {
  return *contraction().get<Product>();
}

std::string ResolvedGemm::text() const {
  const GemmProblem& p = problem;
  std::string text =
      fmt::format("cuda call {}{} -> {} {}{} {}x{}x{}x{} ld {} {} {} strides {} {} {}", to_string(p.in),
                  p.tf32 ? " as tf32" : "", to_string(p.out), p.transpose_a ? "t" : "n", p.transpose_b ? "t" : "n",
                  p.batch, p.m, p.n, p.k, p.lda, p.ldb, p.ldd, p.stride_a, p.stride_b, p.stride_d);
  if (!p.epilogue.empty()) text += "; " + p.epilogue;
  for (const Operand& o : p.operands) {
    text += fmt::format("; {} {} {} {} {}", o.name, kind_name(o.kind), to_string(o.dtype), o.leading, *o.stride);
  }
  for (const Reduction& r : p.reductions) {
    text += fmt::format("; {} of {} {}", kind_name(r.kind), r.over == Reduction::Over::kRows ? "rows" : "columns",
                        r.expression);
  }
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

double ResolvedGemm::operations() const {
  return 2.0 * static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.k) *
         static_cast<double>(problem.batch);
}

double ResolvedGemm::floor_us(const CudaTarget& target) const {
  double bytes = 0;
  for (const schedule::Operand& o : desc.operands) {
    bytes += static_cast<double>(element_count(o.shape)) * static_cast<double>(size_of(o.dtype));
  }
  return 1e6 * std::max(operations() / schedule::cuda_peak(contraction(), target),
                        bytes / (target.model.chip.read_tbps * 1e12));
}

ResolvedGemm resolve(const GemmProblem& given) {
  ResolvedGemm gemm;
  gemm.accumulator = accumulator_of(given.in, given.out);
  gemm.problem = resolve_sizes(given);
  const GemmProblem& p = gemm.problem;
  auto contraction = std::make_shared<schedule::ContractionDesc>();
  contraction->compute = gemm.accumulator;
  LoweredEpilogue lowered = lower_epilogue(gemm.problem, gemm.accumulator);
  contraction->epilogue = std::move(lowered.epilogue);
  Product d;
  d.m = p.m, d.n = p.n, d.k = p.k, d.batch = p.batch;
  d.multiply_a = d.multiply_b = p.in;
  d.tf32 = p.tf32;
  d.a = matrix_operand(0, p.in, p.transpose_a ? 1 : p.lda, p.transpose_a ? p.lda : 1, p, p.stride_a);
  d.b = matrix_operand(1, p.in, p.transpose_b ? p.ldb : 1, p.transpose_b ? 1 : p.ldb, p, p.stride_b);
  contraction->problem = std::move(d);
  gemm.desc = {std::move(lowered.operands), std::shared_ptr<const schedule::ContractionDesc>(std::move(contraction))};
  return gemm;
}

std::vector<CudaCandidate> all_candidates(const ResolvedGemm& gemm, const CudaTarget& target) {
  return schedule::cuda_candidates({gemm.gemm(), gemm.contraction().epilogue, gemm.desc.operands}, target);
}

std::vector<CudaCandidate> worthwhile(const ResolvedGemm& gemm, const CudaTarget& target, int most,
                                      const std::string& family) {
  constexpr int kOfOneTile = 2;
  std::vector<CudaCandidate> found;
  std::map<std::string, int> taken;  // by tile
  for (CudaCandidate& candidate : all_candidates(gemm, target)) {
    if (!candidate.rejected.empty()) continue;
    const schedule::Config& c = candidate.config;
    if (!family.empty() && family_of(c) != family) continue;
    if (most > 0) {
      if (static_cast<int>(found.size()) == most) break;
      if (taken[tile_name(c)]++ >= kOfOneTile) continue;
    }
    found.push_back(std::move(candidate));
  }
  return found;
}

}  // namespace heddle::ops
