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

void add_step(CudaEpilogue& epilogue, const std::string& step, DType dtype) {
  const auto operand = [&](Kind kind) {
    const std::string expression = fmt::format("x + o{}[i]", epilogue.operands.size());
    epilogue.operands.push_back({step, kind, dtype});
    epilogue.steps.push_back(expression);
  };
  if (step == "bias") return operand(Kind::kColumn);
  if (step == "row_bias") return operand(Kind::kRow);
  if (step == "residual") return operand(Kind::kMatrix);
  for (const char* name : {"relu", "gelu", "silu", "hardswish", "softplus", "sigmoid", "tanh"}) {
    if (step == name) return epilogue.steps.push_back(fmt::format("tile::cuda::{}(x)", name));
  }
  if (step.starts_with("scale=")) {
    double value = 0;
    const char* end = step.data() + step.size();
    const auto [stop, error] = std::from_chars(step.data() + 6, end, value);
    if (error == std::errc() && stop == end && std::isfinite(value)) {
      return epilogue.steps.push_back(fmt::format("x * float({:.9g})", value));
    }
  }
  fail(ErrorCode::kInvalidArgument, "epilogue", fmt::format("\"{}\" is no step", step),
       "Steps: bias, row_bias, residual, scale=S, relu, gelu, silu, hardswish, softplus, sigmoid, tanh");
}

std::string epilogue_text(const CudaEpilogue& e) {
  std::string text = "struct Epilogue {\n";
  if (e.operands.empty()) text += "  int64_t unused;\n";
  for (size_t i = 0; i < e.operands.size(); ++i) {
    text +=
        fmt::format("  const {}* p{};\n  int64_t row{}, batch{};\n", tile_type(e.operands[i].dtype, false), i, i, i);
  }
  text +=
      "  template <typename T, int W>\n"
      "  __device__ void operator()(T (&v)[W], int batch, int row, int col, int n) const {\n";
  for (size_t i = 0; i < e.operands.size(); ++i) {
    switch (e.operands[i].kind) {
      case Kind::kColumn:
        text += fmt::format("    float o{0}[W];\n    tile::sm90::load_row<W>(o{0}, p{0} + col, n);\n", i);
        break;
      case Kind::kRow:
        text += fmt::format(
            "    float o{0}[W];\n    for (int i = 0; i < W; ++i) o{0}[i] = tile::sm90::to_float(p{0}[row]);\n", i);
        break;
      case Kind::kMatrix:
        text += fmt::format(
            "    float o{0}[W];\n"
            "    tile::sm90::load_row<W>(o{0}, p{0} + batch * batch{0} + row * row{0} + col, n);\n",
            i);
        break;
    }
  }
  if (!e.steps.empty()) {
    text += "#pragma unroll\n    for (int i = 0; i < W; ++i) {\n      float x = tile::sm90::to_float(v[i]);\n";
    for (const std::string& step : e.steps) text += fmt::format("      x = {};\n", step);
    text += "      v[i] = static_cast<T>(x);\n    }\n";
  }
  return text + "  }\n};\n";
}

std::string config_text(const CudaGemmProblem& p, const CudaGemmConfig& c) {
  constexpr const char* kStores[] = {"kTma", "kDirect", "kPartial"};
  return fmt::format(
      "struct Config {{\n"
      "  using In = {};\n"
      "  using Out = {};\n"
      "  static constexpr int kTileM = {}, kTileN = {}, kStages = {}, kConsumers = {};\n"
      "  static constexpr bool kPingPong = {};\n"
      "  static constexpr int kClusterM = {}, kClusterN = {};\n"
      "  static constexpr bool kAKMajor = {}, kBKMajor = {}, kSwapped = {};\n"
      "  static constexpr auto kStore = tile::GemmStore::{};\n"
      "}};\n",
      tile_type(p.in, true), tile_type(p.out, false), c.tile_m, c.tile_n, c.stages, c.consumers, c.ping_pong,
      c.cluster_m, c.cluster_n, c.swapped ? p.b_k_major : p.a_k_major, c.swapped ? p.a_k_major : p.b_k_major, c.swapped,
      kStores[static_cast<int>(c.store)]);
}

std::string multiply_text(const CudaGemmConfig& c) {
  const int cluster = c.cluster_m * c.cluster_n;
  const bool partial = c.store == GemmStore::kPartial;
  return fmt::format(
      "using Traits = tile::sm90::GemmTraits<Config>;\n"
      "extern \"C\" __global__ void {}__launch_bounds__(Traits::kThreads, 1)\n"
      "    gemm(const __grid_constant__ tile::sm90::TensorMap a, const __grid_constant__ tile::sm90::TensorMap b,\n"
      "         const __grid_constant__ tile::sm90::TensorMap d, const __grid_constant__ tile::GemmArgs args{}) {{\n"
      "  tile::sm90::gemm<Config>(a, b, d, args, {});\n"
      "}}\n",
      cluster > 1 ? fmt::format("__cluster_dims__({}, 1, 1) ", cluster) : "",
      partial ? "" : ",\n         const __grid_constant__ Epilogue epilogue",
      partial ? "tile::sm90::NoEpilogue{}" : "epilogue");
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

std::vector<uint8_t> epilogue_block(const CudaEpilogue& epilogue, const CudaGemmProblem& problem) {
  std::vector<int64_t> words;
  for (size_t i = 0; i < epilogue.operands.size(); ++i) {
    words.insert(words.end(), {0, problem.n, problem.n * problem.m});  // dense; the pointer is patched
  }
  if (words.empty()) words.push_back(0);
  std::vector<uint8_t> bytes(words.size() * sizeof(int64_t));
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

std::string gemm_unit(const CudaGemmProblem& p, const CudaGemmConfig& c, const CudaEpilogue& epilogue) {
  const bool partial = c.store == GemmStore::kPartial;
  const bool repack = schedule::needs_repack(p.in, p.lda, p.stride_a, p.batch) ||
                      schedule::needs_repack(p.in, p.ldb, p.stride_b, p.batch);
  std::string text = "#include \"tile/kernel/cuda/gemm_sm90.h\"\n";
  if (repack) text += "#include \"tile/kernel/cuda/repack.h\"\n";
  if (!epilogue.empty()) text += "#include \"tile/kernel/cuda/activation.h\"\n";
  text += "namespace tile = heddle::tile;\n\n" + epilogue_text(epilogue) + "\n";
  if (p.k > 0) text += config_text(p, c) + multiply_text(c);
  if (partial) {
    text += fmt::format(
        "extern \"C\" __global__ void __launch_bounds__(128)\n"
        "    gemm_reduce(const __grid_constant__ tile::GemmReduceArgs args, const __grid_constant__ Epilogue epilogue) "
        "{{\n"
        "  tile::sm90::gemm_reduce<tile::sm90::accumulator_t<{}>, {}>(args, epilogue);\n"
        "}}\n",
        tile_type(p.in, true), tile_type(p.out, false));
  }
  if (repack) {
    const size_t bytes = size_of(p.in);
    text += fmt::format(
        "extern \"C\" __global__ void __launch_bounds__(256)\n"
        "    gemm_repack_{}(const __grid_constant__ tile::GemmRepackArgs args) {{\n"
        "  tile::gemm_repack<uint{}_t>(args);\n"
        "}}\n",
        bytes, bytes * 8);
  }
  return text;
}

}  // namespace heddle::codegen
