#include "codegen/cuda_gemm.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace heddle::codegen {
namespace {

using schedule::CudaGemmConfig;
using schedule::CudaGemmProblem;
using schedule::tile_type;
using tile::GemmStore;
using Kind = CudaEpilogueOperand::Kind;
using ir::Op;
using schedule::ExprId;

void add_step(CudaEpilogue& epilogue, const std::string& step, DType dtype) {
  const auto operand = [&](Kind kind) {
    epilogue.operands.push_back({step, kind, dtype});
    epilogue.steps.push_back(step);
  };
  if (step == "bias") return operand(Kind::kColumn);
  if (step == "row_bias") return operand(Kind::kRow);
  if (step == "residual") return operand(Kind::kMatrix);
  for (const char* name : {"relu", "gelu", "silu", "hardswish", "softplus", "sigmoid", "tanh"}) {
    if (step == name) return epilogue.steps.push_back(step);
  }
  if (step.starts_with("scale=")) {
    double value = 0;
    const char* end = step.data() + step.size();
    const auto [stop, error] = std::from_chars(step.data() + 6, end, value);
    if (error == std::errc() && stop == end && std::isfinite(value)) return epilogue.steps.push_back(step);
  }
  fail(ErrorCode::kInvalidArgument, "epilogue", fmt::format("\"{}\" is no step", step),
       "Steps: bias, row_bias, residual, scale=S, relu, gelu, silu, hardswish, softplus, sigmoid, tanh");
}

// Steps as expressions of x.
class StepLowering {
 public:
  explicit StepLowering(schedule::ExprPool& pool) : pool_(pool) {}

  ExprId step(const std::string& name, ExprId x) {
    if (name == "relu") return op(Op::kMax, {x, number(0)});
    if (name == "tanh") return op(Op::kTanh, {x});
    if (name == "sigmoid") return sigmoid(x);
    if (name == "silu") return op(Op::kMul, {x, sigmoid(x)});
    if (name == "gelu") {
      const ExprId phi = op(Op::kAdd, {op(Op::kErf, {op(Op::kMul, {x, number(0.70710678118654752)})}), number(1)});
      return op(Op::kMul, {op(Op::kMul, {x, number(0.5)}), phi});
    }
    if (name == "hardswish") {
      const ExprId y = op(Op::kMin, {op(Op::kMax, {op(Op::kAdd, {x, number(3)}), number(0)}), number(6)});
      return op(Op::kMul, {op(Op::kMul, {x, y}), number(1.0 / 6)});
    }
    if (name == "softplus") {
      const ExprId tail = op(Op::kLog1p, {op(Op::kExp, {op(Op::kNeg, {op(Op::kAbs, {x})})})});
      return op(Op::kAdd, {op(Op::kMax, {x, number(0)}), tail});
    }
    return op(Op::kMul, {x, number(std::stod(name.substr(name.find('=') + 1)))});
  }
  ExprId op(Op op, std::vector<ExprId> args) {
    schedule::Expr e{schedule::Expr::Kind::kOp, DType::kF32};
    e.op = op;
    e.args = std::move(args);
    return pool_.add(std::move(e));
  }

 private:
  ExprId number(double value) { return pool_.constant(DType::kF32, value); }
  ExprId sigmoid(ExprId x) {
    return op(Op::kDiv, {number(1), op(Op::kAdd, {number(1), op(Op::kExp, {op(Op::kNeg, {x})})})});
  }

  schedule::ExprPool& pool_;
};

std::string config_text(const CudaGemmProblem& p, const CudaGemmConfig& c) {
  constexpr const char* kStores[] = {"kTma", "kEpilogue", "kPartial"};
  return fmt::format(
      "struct Config {{\n"
      "  using In = {};\n"
      "  using Out = {};\n"
      "  static constexpr int kTileM = {}, kTileN = {}, kStages = {}, kConsumers = {};\n"
      "  static constexpr bool kPingPong = {};\n"
      "  static constexpr int kClusterM = {}, kClusterN = {};\n"
      "  static constexpr bool kAKMajor = {}, kBKMajor = {}, kSwapped = {};\n"
      "  static constexpr bool kStream = {};\n"
      "  static constexpr auto kStore = tile::GemmStore::{};\n"
      "}};\n",
      tile_type(p.in, true), tile_type(p.out, false), c.tile_m, c.tile_n, c.stages, c.consumers, c.ping_pong,
      c.cluster_m, c.cluster_n, c.swapped ? p.b_k_major : p.a_k_major, c.swapped ? p.a_k_major : p.b_k_major, c.swapped,
      c.stream, kStores[static_cast<int>(c.store)]);
}

std::string multiply_text(const CudaGemmConfig& c, const std::string& symbol) {
  const int cluster = c.cluster_m * c.cluster_n;
  const bool partial = c.store == GemmStore::kPartial;
  return fmt::format(
      "extern \"C\" __global__ void {0}__launch_bounds__(tile::sm90::GemmTraits<{1}_parts::Config>::kThreads, 1)\n"
      "    {1}(const __grid_constant__ tile::sm90::TensorMap a, const __grid_constant__ tile::sm90::TensorMap b,\n"
      "        const __grid_constant__ tile::sm90::TensorMap d, const __grid_constant__ tile::GemmArgs args{2}) {{\n"
      "  tile::sm90::gemm<{1}_parts::Config>(a, b, d, args, {3});\n"
      "}}\n",
      cluster > 1 ? fmt::format("__cluster_dims__({}, 1, 1) ", cluster) : "", symbol,
      partial ? "" : fmt::format(",\n        const __grid_constant__ {}_parts::Epilogue epilogue", symbol),
      partial ? "tile::sm90::NoEpilogue{}" : "epilogue");
}

std::string reduce_text(const CudaGemmProblem& p, const std::string& symbol) {
  return fmt::format(
      "extern \"C\" __global__ void __launch_bounds__(128)\n"
      "    {0}_reduce(const __grid_constant__ tile::GemmReduceArgs args,\n"
      "               const __grid_constant__ {0}_parts::Epilogue epilogue) {{\n"
      "  tile::cuda::gemm_reduce<tile::sm90::accumulator_t<{1}>>(args, epilogue);\n"
      "}}\n",
      symbol, tile_type(p.in, true));
}

std::string multiply_views_text(const CudaGemmConfig& c, const std::string& symbol) {
  const bool partial = c.store == GemmStore::kPartial, copied = c.store == GemmStore::kTma;
  return fmt::format(
      "extern \"C\" __global__ void __launch_bounds__(tile::sm90::GemmTraits<{0}_parts::Config>::kThreads, 1)\n"
      "    {0}({1}const __grid_constant__ tile::GemmArgs args, const __grid_constant__ {0}_parts::A a,\n"
      "        const __grid_constant__ {0}_parts::B b{2}) {{\n"
      "  tile::sm90::gemm_views<{0}_parts::Config>({3}, args, a, b, {4});\n"
      "}}\n",
      symbol, copied ? "const __grid_constant__ tile::sm90::TensorMap d,\n        " : "",
      partial ? "" : fmt::format(",\n        const __grid_constant__ {}_parts::Epilogue epilogue", symbol),
      copied ? "d" : "tile::sm90::TensorMap{}", partial ? "tile::sm90::NoEpilogue{}" : "epilogue");
}

}  // namespace

CudaEpilogue CudaEpilogue::parse(std::string_view text, DType dtype) {
  CudaEpilogue epilogue;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    add_step(epilogue, std::string(text.substr(0, comma)), dtype);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return epilogue;
}

GemmEpilogue lower(const CudaEpilogue& epilogue, const CudaGemmProblem& p) {
  using Role = schedule::Operand::Role;
  GemmEpilogue result;
  schedule::Epilogue& e = result.epilogue;
  schedule::IndexPool& indices = e.pool.indices;
  e.batch = indices.new_var(std::max<int64_t>(p.batch, 1)), e.row = indices.new_var(std::max<int64_t>(p.m, 1));
  e.split = std::max<int64_t>(p.n, 1);
  e.col_outer = indices.new_var(1), e.col = indices.new_var(e.split);
  e.accumulator = p.in == DType::kI8 ? DType::kI32 : DType::kF32;
  result.operands = {{Role::kInput, p.in, {}, {}},
                     {Role::kInput, p.in, {}, {}},
                     {Role::kOutput, p.out, {}, {}},
                     {Role::kOutput, DType::kU8, {}, {}}};
  const auto place = [&](int64_t batch, int64_t row, int64_t col) {
    return indices.add(indices.add(indices.scale(indices.var(e.batch), batch), indices.scale(indices.var(e.row), row)),
                       indices.scale(indices.var(e.col), col));
  };
  StepLowering steps(e.pool);
  ExprId x = e.pool.local(e.accumulator, 0);
  const auto cast = [&](DType to) {
    if (e.pool[x].dtype == to) return;
    schedule::Expr c{schedule::Expr::Kind::kOp, to};
    c.op = Op::kCast;
    c.args = {x};
    x = e.pool.add(std::move(c));
  };
  if (!epilogue.empty()) cast(DType::kF32);
  size_t next = 0;
  for (const std::string& step : epilogue.steps) {
    if (next == epilogue.operands.size() || epilogue.operands[next].name != step) {
      x = steps.step(step, x);
      continue;
    }
    const CudaEpilogueOperand& o = epilogue.operands[next++];
    const auto id = static_cast<uint32_t>(result.operands.size());
    result.operands.push_back({Role::kInput, o.dtype, {}, {}});
    const schedule::Index at = o.kind == Kind::kColumn ? place(0, 0, 1)
                               : o.kind == Kind::kRow  ? place(0, 1, 0)
                                                       : place(p.m * p.n, p.n, 1);
    ExprId value = e.pool.load(o.dtype, id, at);
    if (o.dtype != DType::kF32) {
      schedule::Expr c{schedule::Expr::Kind::kOp, DType::kF32};
      c.op = Op::kCast;
      c.args = {value};
      value = e.pool.add(std::move(c));
    }
    x = steps.op(Op::kAdd, {x, value});
  }
  cast(p.out);
  e.stores.push_back({2, place(p.stride_d, p.ldd, 1), x});
  return result;
}

std::string CudaGemmUnit::source() const {
  std::string unit;
  for (const std::string& path : includes) unit += "#include \"" + path + "\"\n";
  return unit + "namespace tile = heddle::tile;\n\n" + text;
}

CudaGemmUnit gemm_unit(const CudaGemmProblem& p, const CudaGemmConfig& c, const schedule::Epilogue& epilogue,
                       const std::vector<schedule::Operand>& operands, const std::string& symbol) {
  const bool partial = c.store == GemmStore::kPartial;
  const bool repack = schedule::needs_repack(p);
  CudaGemmUnit unit;
  unit.includes = {"tile/kernel/cuda/gemm_sm90.h", "tile/kernel/cuda/row.h", "tile/op/cuda/stitch.h"};
  if (partial) unit.includes.emplace_back("tile/kernel/cuda/gemm_reduce.h");
  if (repack) unit.includes.emplace_back("tile/kernel/cuda/repack.h");
  unit.epilogue =
      cuda_epilogue(epilogue, operands, c.store == GemmStore::kTma ? std::optional<size_t>(0) : std::nullopt);
  std::string& text = unit.text;
  text = fmt::format("namespace {}_parts {{\n", symbol) + unit.epilogue.text;
  if (p.k > 0) text += config_text(p, c);
  text += fmt::format("}}  // namespace {}_parts\n", symbol);
  if (p.k > 0) text += multiply_text(c, symbol);
  if (partial) text += reduce_text(p, symbol);
  if (repack) {
    const size_t bytes = size_of(p.in);
    text += fmt::format(
        "extern \"C\" __global__ void __launch_bounds__(256)\n"
        "    {0}_repack_{1}(const __grid_constant__ tile::GemmRepackArgs args) {{\n"
        "  tile::gemm_repack<uint{2}_t>(args);\n"
        "}}\n",
        symbol, bytes, bytes * 8);
  }
  return unit;
}

CudaGemmUnit gemm_views_unit(const CudaGemmProblem& p, const CudaGemmConfig& c, const schedule::CudaTileProblem& views,
                             const schedule::Epilogue& epilogue, const std::vector<schedule::Operand>& operands,
                             const std::string& symbol) {
  const bool partial = c.store == GemmStore::kPartial;
  CudaGemmUnit unit;
  unit.includes = {"tile/kernel/cuda/gemm_sm90_views.h", "tile/kernel/cuda/operand.h", "tile/kernel/cuda/row.h",
                   "tile/op/cuda/stitch.h"};
  if (partial) unit.includes.emplace_back("tile/kernel/cuda/gemm_reduce.h");
  unit.epilogue =
      cuda_epilogue(epilogue, operands, c.store == GemmStore::kTma ? std::optional<size_t>(0) : std::nullopt);
  unit.text = fmt::format("namespace {}_parts {{\n", symbol) + unit.epilogue.text;
  if (p.k > 0) {
    unit.text += views.a.text + views.b.text;
    unit.text += fmt::format("using A = {};\nusing B = {};\n", views.a.type, views.b.type) + config_text(p, c);
  }
  unit.text += fmt::format("}}  // namespace {}_parts\n", symbol);
  if (p.k > 0) unit.text += multiply_views_text(c, symbol);
  if (partial) unit.text += reduce_text(p, symbol);
  return unit;
}

}  // namespace heddle::codegen
