#include "codegen/product/cuda/gemm.h"

#include <fmt/format.h>

#include <initializer_list>
#include <utility>

#include "base/check.h"
#include "schedule/product/cuda/gemm_cluster_splitk.h"
#include "schedule/product/cuda/gemm_misaligned.h"

namespace heddle::codegen {
namespace {

using schedule::CudaGemmConfig;
using schedule::CudaGemmProblem;
using schedule::loads_residual;
using schedule::multiplied_type;
using schedule::tile_type;
using tile::GemmStore;

// Whether the kernel's A (else B) is read once and leaves the L2 first.
bool streams(const CudaGemmProblem& p, const CudaGemmConfig& c, bool is_a) {
  return !p.views && !p.windows && schedule::streams_operand(p, c, is_a);
}

// The members of a configuration that are not what its base says.
class ConfigText {
 public:
  explicit ConfigText(std::string_view base) : text_(fmt::format("struct Config : tile::sm90::{} {{\n", base)) {}

  ConfigText& types(std::initializer_list<std::pair<const char*, std::string_view>> types) {
    std::vector<std::string> list;
    for (const auto& [name, type] : types) list.push_back(fmt::format("using {} = {};", name, type));
    text_ += fmt::format("  {}\n", fmt::join(list, " "));
    return *this;
  }
  // All in one line.
  ConfigText& sizes(std::initializer_list<std::pair<const char*, int64_t>> values) {
    std::vector<std::string> list;
    for (const auto& [name, value] : values) list.push_back(fmt::format("{} = {}", name, value));
    if (!list.empty()) text_ += fmt::format("  static constexpr int {};\n", fmt::join(list, ", "));
    return *this;
  }
  ConfigText& size(const char* name, int64_t value, int64_t base) {
    return value == base ? *this : sizes({{name, value}});
  }
  ConfigText& flag(const char* name, bool value, bool base = false) {
    if (value != base) flags_.push_back(fmt::format("{} = {}", name, value));
    return *this;
  }
  ConfigText& store(GemmStore store, GemmStore base) {
    constexpr const char* kStores[] = {"kTma", "kRows", "kEpilogue", "kPartial"};
    if (store != base) {
      text_ += fmt::format("  static constexpr auto kStore = tile::GemmStore::{};\n", kStores[static_cast<int>(store)]);
    }
    return *this;
  }
  std::string text() const {
    const std::string flags =
        flags_.empty() ? "" : fmt::format("  static constexpr bool {};\n", fmt::join(flags_, ", "));
    return text_ + flags + "};\n";
  }

 private:
  std::string text_;
  std::vector<std::string> flags_;
};

std::string config_text(const CudaGemmProblem& p, const CudaGemmConfig& c) {
  ConfigText config("GemmDefaults");
  config.types({{"In", multiplied_type(p)}, {"Out", tile_type(p.out, false)}});
  config.sizes({{"kTileM", c.tile_m}, {"kTileN", c.tile_n}, {"kStages", c.stages}, {"kConsumers", c.consumers}});
  config.size("kClusterM", c.cluster_m, 1).size("kClusterN", c.cluster_n, 1);
  config.flag("kPingPong", c.ping_pong).flag("kStream", c.stream).flag("kSwapped", c.swapped);
  config.flag("kAKMajor", c.swapped ? p.b_k_major : p.a_k_major, true);
  config.flag("kBKMajor", c.swapped ? p.a_k_major : p.b_k_major, true);
  config.flag("kConstantA", c.swapped ? p.constant_b : p.constant_a);
  config.flag("kConstantB", c.swapped ? p.constant_a : p.constant_b);
  config.flag("kStreamA", streams(p, c, true)).flag("kStreamB", streams(p, c, false));
  config.flag("kWholeColumns", !c.swapped && p.n % c.tile_n == 0).flag("kResidual", loads_residual(p, c));
  return config.store(c.store, GemmStore::kTma).text();
}

// Whether the first result comes back from the epilogue.
bool returns(GemmStore store) {
  return store == GemmStore::kTma || store == GemmStore::kRows;
}

std::string parts_config_text(const CudaGemmProblem& p, const CudaGemmConfig& c) {
  ConfigText config("PartsDefaults");
  config.types({{"In", multiplied_type(p)}});
  config.sizes({{"kTileM", c.tile_m},
                {"kTileN", c.tile_n},
                {"kStages", c.stages},
                {"kConsumers", c.consumers},
                {"kParts", c.parts}});
  if (c.classed) config.size("kClasses", schedule::classes_of(p, c.swapped), 1);
  config.flag("kSwapped", c.swapped).flag("kViews", p.views);
  config.flag("kAKMajor", c.swapped ? p.b_k_major : p.a_k_major, true);
  config.flag("kBKMajor", c.swapped ? p.a_k_major : p.b_k_major, true);
  config.flag("kStreamA", streams(p, c, true)).flag("kStreamB", streams(p, c, false));
  config.flag("kConstantA", c.classed || (c.swapped ? p.constant_b : p.constant_a));
  config.flag("kConstantB", c.swapped ? p.constant_a : p.constant_b);
  const GemmStore store = c.store == GemmStore::kPartial ? GemmStore::kPartial : GemmStore::kEpilogue;
  return config.store(store, GemmStore::kEpilogue).text();
}

// The kernel of tile/kernel/cuda/gemm/sm90_cluster_splitk.h.
std::string parts_text(const CudaGemmProblem& p, const CudaGemmConfig& c, const std::string& symbol) {
  const bool partial = c.store == GemmStore::kPartial;
  std::string maps, a = "a";
  if (c.classed) {
    std::string names;
    for (int i = 0; i < schedule::classes_of(p, c.swapped); ++i) {
      maps += fmt::format("const __grid_constant__ tile::sm90::TensorMap a{}, ", i);
      names += fmt::format("{}a{}", i == 0 ? "" : ", ", i);
    }
    a = fmt::format("tile::sm90::map_of_class<{}_parts::Config>({})", symbol, names);
  } else {
    maps = "const __grid_constant__ tile::sm90::TensorMap a, ";
  }
  maps += "const __grid_constant__ tile::sm90::TensorMap b, ";
  const std::string views =
      fmt::format(", const __grid_constant__ {0}_parts::A a, const __grid_constant__ {0}_parts::B b", symbol);
  return fmt::format(
      "extern \"C\" __global__ void {0}__launch_bounds__(tile::sm90::PartsTraits<{1}_parts::Config>::kThreads, "
      "tile::sm90::PartsTraits<{1}_parts::Config>::kResident)\n"
      "    {1}({2}const __grid_constant__ tile::GemmPartsArgs args{3}{4}) {{\n"
      "  tile::sm90::gemm_parts{5}<{1}_parts::Config>({6}, {7});\n"
      "}}\n",
      c.parts > 1 ? fmt::format("__cluster_dims__({}, 1, 1) ", c.parts) : "", symbol, p.views ? "" : maps,
      p.views ? views : "", partial ? "" : fmt::format(", const __grid_constant__ {}_parts::Epilogue epilogue", symbol),
      p.views ? "_views" : "", p.views ? "args, a, b" : a + ", b, args",
      partial ? "tile::sm90::NoEpilogue{}" : "epilogue");
}

std::string multiply_text(const CudaGemmProblem& p, const CudaGemmConfig& c, const std::string& symbol) {
  const int cluster = c.cluster_m * c.cluster_n;
  const bool partial = c.store == GemmStore::kPartial, residual = loads_residual(p, c);
  return fmt::format(
      "extern \"C\" __global__ void {0}__launch_bounds__(tile::sm90::GemmTraits<{1}_parts::Config>::kThreads, 1)\n"
      "    {1}(const __grid_constant__ tile::sm90::TensorMap a, const __grid_constant__ tile::sm90::TensorMap b, "
      "const __grid_constant__ tile::sm90::TensorMap d,{5} const __grid_constant__ tile::GemmArgs args{2}) {{\n"
      "  tile::sm90::{4}<{1}_parts::Config>(a, b, d, args, {3}{6});\n"
      "}}\n",
      cluster > 1 ? fmt::format("__cluster_dims__({}, 1, 1) ", cluster) : "", symbol,
      (p.windows ? ", const __grid_constant__ tile::GemmWindowsArgs windows" : "") +
          (partial ? "" : fmt::format(", const __grid_constant__ {}_parts::Epilogue epilogue", symbol)),
      std::string(p.windows ? "windows, " : "") + (partial ? "tile::sm90::NoEpilogue{}" : "epilogue"),
      p.windows ? "gemm_windows" : "gemm", residual ? " const __grid_constant__ tile::sm90::TensorMap residual," : "",
      residual ? ", &residual" : "");
}

std::string in_namespace(const std::string& symbol, const std::string& text) {
  return fmt::format("namespace {0}_parts {{\n{1}}}  // namespace {0}_parts\n", symbol, text);
}

// A kernel without a functor.
KernelText plain_kernel(const std::string& symbol, std::string_view function, std::string_view args,
                        std::string_view header) {
  return {symbol,
          {std::string(header)},
          fmt::format("extern \"C\" __global__ void __launch_bounds__(tile::kGemmRepackThreads)\n"
                      "    {}(const __grid_constant__ tile::{} args) {{\n"
                      "  tile::{}(args);\n"
                      "}}\n",
                      symbol, args, function)};
}

// The sums that the kernels of sm_90a leave.
std::string_view sum_type(const CudaGemmProblem& p) {
  return schedule::cuda_storage(is_int(p.in) ? DType::kI32 : DType::kF32);
}

std::string multiply_views_text(const CudaGemmConfig& c, const std::string& symbol) {
  const bool partial = c.store == GemmStore::kPartial, copied = c.store == GemmStore::kTma;
  return fmt::format(
      "extern \"C\" __global__ void __launch_bounds__(tile::sm90::GemmTraits<{0}_parts::Config>::kThreads, 1)\n"
      "    {0}({1}const __grid_constant__ tile::GemmArgs args, const __grid_constant__ {0}_parts::A a, "
      "const __grid_constant__ {0}_parts::B b{2}) {{\n"
      "  tile::sm90::gemm_views<{0}_parts::Config>({3}, args, a, b, {4});\n"
      "}}\n",
      symbol, copied ? "const __grid_constant__ tile::sm90::TensorMap d, " : "",
      partial ? "" : fmt::format(", const __grid_constant__ {}_parts::Epilogue epilogue", symbol),
      copied ? "d" : "tile::sm90::TensorMap{}", partial ? "tile::sm90::NoEpilogue{}" : "epilogue");
}

}  // namespace

std::string CudaGemmUnit::source() const {
  std::vector<const KernelText*> texts;
  for (const KernelText& kernel : kernels) texts.push_back(&kernel);
  return join_texts(texts);
}

KernelText reduce_kernel(std::string_view sum_type, const CudaFunctor& epilogue, const std::string& symbol) {
  KernelText kernel{symbol + "_reduce", {}, in_namespace(symbol + "_reduce", epilogue.text)};
  kernel.includes = {"tile/kernel/cuda/gemm/splitk_reduce.h", "tile/kernel/cuda/row.h", "tile/op/cuda/stitch.h"};
  kernel.text += fmt::format(
      "extern \"C\" __global__ void __launch_bounds__(128)\n"
      "    {0}(const __grid_constant__ tile::GemmReduceArgs args, "
      "const __grid_constant__ {0}_parts::Epilogue epilogue) {{\n"
      "  tile::cuda::gemm_reduce<{1}>(args, epilogue);\n"
      "}}\n",
      kernel.symbol, sum_type);
  return kernel;
}

CudaGemmUnit gemm_unit(const CudaGemmProblem& p, const CudaGemmConfig& c, const schedule::Epilogue& epilogue,
                       const std::vector<schedule::Operand>& operands, const std::string& symbol) {
  const bool partial = c.store == GemmStore::kPartial;
  const bool repack = schedule::needs_repack(p) && !c.classed;
  CudaGemmUnit unit;
  unit.epilogue = cuda_epilogue(epilogue, operands, returns(c.store) ? std::optional<size_t>(0) : std::nullopt);
  HEDDLE_CHECK(!loads_residual(p, c) || unit.epilogue.residual == p.residual->operand,
               "the matrix beside D is another");
  if (p.k > 0) {
    KernelText& kernel = unit.kernels.emplace_back();
    kernel.symbol = symbol;
    kernel.includes = {c.parts > 0 ? "tile/kernel/cuda/gemm/sm90_cluster_splitk.h" : "tile/kernel/cuda/gemm/sm90.h",
                       "tile/kernel/cuda/row.h", "tile/op/cuda/stitch.h"};
    if (p.windows) kernel.includes.emplace_back("tile/kernel/cuda/gemm/sm90_im2col.h");
    const std::string config = c.parts > 0 ? parts_config_text(p, c) : config_text(p, c);
    kernel.text = in_namespace(symbol, (partial ? "" : unit.epilogue.text) + config) +
                  (c.parts > 0 ? parts_text(p, c, symbol) : multiply_text(p, c, symbol));
  }
  if (partial) unit.kernels.push_back(reduce_kernel(sum_type(p), unit.epilogue, symbol));
  if (c.classed) {
    unit.kernels.push_back(plain_kernel(symbol + "_copies", "gemm_misaligned_copies", "GemmClassCopiesArgs",
                                        "tile/kernel/cuda/operand/misaligned_copies.h"));
  }
  if (repack) {
    unit.kernels.push_back(
        plain_kernel(symbol + "_repack", "gemm_repack", "GemmRepackArgs", "tile/kernel/cuda/operand/repack.h"));
  }
  return unit;
}

CudaGemmUnit gemm_views_unit(const CudaGemmProblem& p, const CudaGemmConfig& c, const schedule::CudaTileProblem& views,
                             const schedule::Epilogue& epilogue, const std::vector<schedule::Operand>& operands,
                             const std::string& symbol) {
  const bool partial = c.store == GemmStore::kPartial;
  CudaGemmUnit unit;
  unit.epilogue = cuda_epilogue(epilogue, operands, returns(c.store) ? std::optional<size_t>(0) : std::nullopt);
  if (p.k > 0) {
    KernelText& kernel = unit.kernels.emplace_back();
    kernel.symbol = symbol;
    kernel.includes = {
        c.parts > 0 ? "tile/kernel/cuda/gemm/sm90_cluster_splitk.h" : "tile/kernel/cuda/gemm/sm90_gather.h",
        "tile/kernel/cuda/operand/operand.h", "tile/kernel/cuda/row.h", "tile/op/cuda/stitch.h"};
    const auto& a = c.swapped ? views.b : views.a;
    const auto& b = c.swapped ? views.a : views.b;
    const std::string types = fmt::format("using A = {};\nusing B = {};\n", a.type, b.type);
    const std::string config = c.parts > 0 ? parts_config_text(p, c) : config_text(p, c);
    kernel.text =
        in_namespace(symbol, (partial ? "" : unit.epilogue.text) + views.a.text + views.b.text + types + config) +
        (c.parts > 0 ? parts_text(p, c, symbol) : multiply_views_text(c, symbol));
  }
  if (partial) unit.kernels.push_back(reduce_kernel(sum_type(p), unit.epilogue, symbol));
  return unit;
}

}  // namespace heddle::codegen
