#include "codegen/product/cuda/gemm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace heddle::codegen {
namespace {

using schedule::CudaInstance;
using Parameter = CudaInstance::Parameter;

// Kernels of TMA inherit what most of their configurations have.
bool is_wgmma(const CudaInstance& i) {
  return !i.defaults.empty();
}

std::string type_text(const CudaInstance& i, const CudaInstance::Type& t) {
  if (!t.operand) return std::string(cuda_storage(t.type));
  if (is_wgmma(i) && !i.split_f32) return wgmma_type(t.type);
  if (t.type != DType::kF32) return std::string(cuda_storage(t.type));
  return fmt::format("tile::{}::{}", is_wgmma(i) ? "sm90" : "cuda", i.split_f32 ? "tf32x2" : "tf32");
}

template <typename List>
std::string values(const char* type, const List& list) {
  if (list.empty()) return "";
  std::vector<std::string> texts;
  for (const auto& [name, value] : list) texts.push_back(fmt::format("{} = {}", name, value));
  return fmt::format("  static constexpr {} {};\n", type, fmt::join(texts, ", "));
}

// A member of Config that is one of several named values.
template <typename Enum>
std::string choice(const char* member, std::optional<Enum> value, std::initializer_list<const char*> names) {
  if (!value) return "";
  return fmt::format("  static constexpr auto {}::{};\n", member, names.begin()[static_cast<int>(*value)]);
}

std::string config_text(const CudaInstance& i) {
  std::string text =
      fmt::format("struct Config{} {{\n", i.defaults.empty() ? "" : fmt::format(" : tile::{}", i.defaults));
  std::vector<std::string> types;
  for (const CudaInstance::Type& type : i.types) {
    types.push_back(fmt::format("using {} = {};", type.name, type_text(i, type)));
  }
  text += fmt::format("  {}\n", fmt::join(types, " "));
  for (const auto& line : i.sizes) text += values("int", line);
  text += choice("kSchedule = tile::GemmSchedule", i.schedule, {"kCooperative", "kPingPong", "kStreamK"});
  text += choice("kForm = tile::GemmForm", i.form, {"kPlain", "kSwapped", "kGated", "kResidual"});
  text += choice("kStore = tile::GemmStore", i.store, {"kTma", "kRows", "kEpilogue", "kPartial"});
  return text + values("bool", i.flags) + "};\n";
}

std::string launch_bounds(const CudaInstance& i, const std::string& symbol) {
  const std::string traits = fmt::format("tile::{}<{}_parts::Config>", i.traits, symbol);
  return fmt::format("{}, {}", i.traits.empty() ? std::to_string(i.threads) : traits + "::kThreads",
                     i.resident > 0 ? std::to_string(i.resident) : traits + "::kResident");
}

// The parameters of a kernel, and what it hands to its template.
struct Signature {
  std::vector<std::pair<std::string, std::string>> parameters;  // types and names
  std::vector<std::string> call;

  std::string text(const char* format) const {
    std::vector<std::string> texts;
    for (const auto& [type, name] : parameters) texts.push_back(fmt::format(fmt::runtime(format), type, name));
    return fmt::format("{}", fmt::join(texts, ", "));
  }
};

// Products side by side have tensor maps and an epilogue each. A kernel's tensor maps come before its other parameters.
Signature side_by_side(const CudaInstance& i, const std::string& symbol, int copies) {
  Signature s;
  const auto parameter = [&](const std::string& type, const std::string& name) {
    s.parameters.emplace_back(type, name);
  };
  const auto own = [&](std::string_view name) {
    std::vector<std::string> names;
    for (int copy = 0; copy < copies; ++copy) names.push_back(fmt::format("{}{}", name, copy));
    return fmt::format("tile::sm90::of_block_z({})", fmt::join(names, ", "));
  };
  for (int copy = 0; copy < copies; ++copy) {
    for (const CudaInstance::Argument& a : i.arguments) {
      if (a.kind == Parameter::kMap) parameter("tile::sm90::TensorMap", fmt::format("{}{}", a.name, copy));
    }
  }
  for (const CudaInstance::Argument& a : i.arguments) {
    if (a.kind == Parameter::kBlock) parameter(fmt::format("tile::{}", a.type), std::string(a.name));
    s.call.push_back(a.kind == Parameter::kMap     ? own(a.name)
                     : a.kind == Parameter::kNoMap ? "tile::sm90::TensorMap{}"
                                                   : std::string(a.name));
  }
  for (int copy = 0; copy < copies; ++copy) {
    parameter(symbol + "_parts::Epilogue", fmt::format("epilogue{}", copy));
  }
  s.call.push_back(own("epilogue"));
  return s;
}

Signature signature_of(const CudaInstance& i, const std::string& symbol) {
  Signature s;
  std::vector<std::string> behind;  // the epilogue
  const auto parameter = [&](const std::string& type, std::string_view name) { s.parameters.emplace_back(type, name); };
  const std::string map = "tile::sm90::TensorMap", config = symbol + "_parts::Config";
  for (const CudaInstance::Argument& a : i.arguments) {
    std::string passed(a.name);
    if (a.kind == Parameter::kMapOfClasses) {
      std::vector<std::string> names;
      for (int at = 0; at < a.count; ++at) names.push_back(fmt::format("{}{}", a.name, at));
      for (const std::string& name : names) parameter(map, name);
      passed = fmt::format("tile::sm90::map_of_class<{}>({})", config, fmt::join(names, ", "));
    } else if (a.kind == Parameter::kNoMap) {
      passed = map + "{}";
    } else if (a.kind == Parameter::kBlock) {
      parameter(fmt::format("tile::{}", a.type), a.name);
    } else if (a.kind == Parameter::kOperand) {
      parameter(fmt::format("{}_parts::{}", symbol, a.name == "a" ? "A" : "B"), a.name);
    } else {
      parameter(map, a.name);
    }
    (a.kind == Parameter::kMapBehind ? behind : s.call)
        .push_back((a.kind == Parameter::kMapBehind ? "&" : "") + passed);
  }
  if (i.partial) {
    s.call.push_back(fmt::format("tile::{}::NoEpilogue{{}}", is_wgmma(i) ? "sm90" : "cuda"));
  } else {
    parameter(symbol + "_parts::Epilogue", "epilogue");
    s.call.emplace_back("epilogue");
  }
  s.call.insert(s.call.end(), behind.begin(), behind.end());
  return s;
}

std::string kernel_text(const CudaInstance& i, const KernelHead& head, int copies) {
  const std::string& symbol = head.symbol;
  const Signature s = copies > 1 ? side_by_side(i, symbol, copies) : signature_of(i, symbol);
  return fmt::format(
      "extern \"C\" __global__ void {}__launch_bounds__({})\n"
      "    {}({}) {{\n"
      "{}  tile::{}<{}_parts::Config>({});\n"
      "}}\n",
      i.cluster > 1 ? fmt::format("__cluster_dims__({}, 1, 1) ", i.cluster) : "", launch_bounds(i, symbol), symbol,
      s.text("const __grid_constant__ {} {}"), first_lines(head), i.kernel, symbol, fmt::join(s.call, ", "));
}

std::string in_namespace(const std::string& symbol, const std::string& text) {
  return fmt::format("namespace {0}_parts {{\n{1}}}  // namespace {0}_parts\n", symbol, text);
}

bool takes_operands(const CudaInstance& i) {
  return std::any_of(i.arguments.begin(), i.arguments.end(),
                     [](const CudaInstance::Argument& a) { return a.kind == Parameter::kOperand; });
}

// The definitions of A and B as the kernel sees them.
std::string operands_text(const CudaInstance& i, const OperandTexts& of) {
  const OperandText &first = i.swapped ? of.b : of.a, &second = i.swapped ? of.a : of.b;
  std::string text = of.a.text + of.b.text + fmt::format("using A = {};\n", first.type);
  return text + (i.b_passes_once
                     ? fmt::format("struct B : {} {{\n  static constexpr bool kStream = true;\n}};\n", second.type)
                     : fmt::format("using B = {};\n", second.type));
}

// A kernel without a functor.
CudaGemmUnit::Kernel helper_kernel(const CudaInstance::Helper& helper) {
  const auto text = [helper](const KernelHead& head) {
    return fmt::format(
        "extern \"C\" __global__ void __launch_bounds__(tile::kGemmRepackThreads)\n"
        "    {}(const __grid_constant__ tile::{} args) {{\n"
        "{}  tile::{}(args);\n"
        "}}\n",
        head.symbol, helper.arguments, first_lines(head), helper.function);
  };
  return {std::string(helper.suffix), {fmt::format("tile/kernel/{}", helper.header)}, text, helper.waits};
}

CudaGemmUnit::Kernel reduce_kernel(std::string_view sum_type, const CudaFunctor& epilogue) {
  CudaGemmUnit::Kernel kernel{"_reduce", epilogue.includes, {}};
  kernel.includes.insert(kernel.includes.end(),
                         {"tile/kernel/cuda/gemm/splitk_reduce.h", "tile/kernel/cuda/row.h", "tile/op/cuda/stitch.h"});
  kernel.text = [sum_type, functor = epilogue.text](const KernelHead& head) {
    const std::string text = fmt::format(
        "extern \"C\" __global__ void __launch_bounds__(128)\n"
        "    {0}(const __grid_constant__ tile::GemmReduceArgs args, "
        "const __grid_constant__ {0}_parts::Epilogue epilogue) {{\n"
        "{1}  tile::cuda::gemm_reduce<{2}>(args, epilogue);\n"
        "}}\n",
        head.symbol, first_lines(head), sum_type);
    return in_namespace(head.symbol, functor) + text;
  };
  return kernel;
}

// What the kernel that multiplies needs in the namespace of its parts. Appends the headers to `includes`.
std::string parts_text(const CudaInstance& i, const OperandTexts& of, const CudaFunctor& epilogue,
                       std::vector<std::string>& includes) {
  const auto include = [&](const std::vector<std::string>& headers) {
    includes.insert(includes.end(), headers.begin(), headers.end());
  };
  include({"tile/kernel/cuda/row.h", "tile/op/cuda/stitch.h"});
  for (const std::string_view header : i.headers) includes.push_back(fmt::format("tile/kernel/{}", header));
  std::string parts;
  if (!i.partial) {
    include(epilogue.includes);
    parts = epilogue.text;
  }
  if (takes_operands(i)) {
    include({"tile/kernel/cuda/operand/operand.h"});
    include(of.a.includes);
    include(of.b.includes);
    parts += operands_text(i, of);
  }
  return parts + config_text(i);
}

// The kernel that multiplies.
CudaGemmUnit::Kernel product_kernel(const CudaInstance& i, const OperandTexts& of, const CudaFunctor& epilogue,
                                    int copies) {
  CudaGemmUnit::Kernel kernel{"", {}, {}, is_wgmma(i) || i.waits};
  const std::string parts = parts_text(i, of, epilogue, kernel.includes);
  kernel.text = [i, parts, copies](const KernelHead& head) {
    return in_namespace(head.symbol, parts) + kernel_text(i, head, copies);
  };
  return kernel;
}

}  // namespace

std::string wgmma_type(DType type) {
  switch (type) {
    case DType::kF32:
      return "tile::sm90::tf32";
    case DType::kF8E4M3:
      return "tile::sm90::e4m3";
    case DType::kF8E5M2:
      return "tile::sm90::e5m2";
    default:
      return std::string(cuda_storage(type));
  }
}

std::string CudaGemmUnit::source() const {
  std::vector<KernelText> texts;
  for (const Kernel& kernel : kernels) {
    const std::string name = "gemm" + kernel.suffix;
    texts.push_back({name, kernel.includes, kernel.text({name})});
  }
  std::vector<const KernelText*> list;
  for (const KernelText& text : texts) list.push_back(&text);
  return join_texts(list);
}

CudaPhase gemm_phase(const CudaInstance& i, const OperandTexts& of, const schedule::Epilogue& epilogue,
                     const std::vector<schedule::Operand>& operands, bool ahead) {
  CudaPhase phase;
  const std::string parts = parts_text(i, of, cuda_epilogue(epilogue, operands), phase.includes);
  const Signature s = signature_of(i, kStandIn);
  for (const auto& [type, name] : s.parameters) phase.types.push_back(type);
  const std::string parameters = s.text("const {}& {}"), wide = s.call.at(2);
  if (ahead) HEDDLE_CHECK(wide == "b", "the operand that is loaded ahead is {}", wide);
  phase.definitions = fmt::format(
      "namespace {0}_parts {{\n{1}{2}"
      "__device__ __forceinline__ void run({3}, uint8_t*, const unsigned block) {{\n"
      "  tile::{4}_block<Config>({5}, block);\n"
      "}}\n"
      "}}  // namespace {0}_parts\n",
      kStandIn, parts,
      ahead ? fmt::format("__device__ __forceinline__ void ahead({}, const unsigned block) {{\n"
                          "  tile::{}_ahead<Config, A>(args, b, block);\n"
                          "}}\n",
                          parameters, i.kernel)
            : "",
      parameters, i.kernel, fmt::join(s.call, ", "));
  return phase;
}

void add_argument(CudaLaunch& launch, const std::vector<uint8_t>& block, const std::vector<PointerPatch>& pointers) {
  for (PointerPatch patch : pointers) {
    patch.argument = static_cast<int>(launch.arguments.size());
    launch.pointers.push_back(patch);
  }
  launch.arguments.push_back(block);
}

void add_operands(std::vector<CudaLaunch>& launches, const CudaInstance& i, const OperandTexts& of) {
  if (!i.multiplies || launches.empty() || !takes_operands(i)) return;
  for (const OperandText* o : {i.swapped ? &of.b : &of.a, i.swapped ? &of.a : &of.b}) {
    add_argument(launches.front(), o->block, o->pointers);
  }
}

CudaGemmUnit gemm_unit(const CudaInstance& i, const OperandTexts& of, const schedule::Epilogue& epilogue,
                       const std::vector<schedule::Operand>& operands, int copies) {
  CudaGemmUnit unit;
  unit.epilogue = cuda_epilogue(epilogue, operands, i.returned ? std::optional<size_t>(0) : std::nullopt);
  HEDDLE_CHECK(!i.residual || unit.epilogue.residual == i.residual, "the matrix beside D is another");
  if (i.multiplies) unit.kernels.push_back(product_kernel(i, of, unit.epilogue, copies));
  if (i.partial) unit.kernels.push_back(reduce_kernel(cuda_storage(i.sum), unit.epilogue));
  for (const CudaInstance::Helper& helper : i.helpers) unit.kernels.push_back(helper_kernel(helper));
  return unit;
}

}  // namespace heddle::codegen
