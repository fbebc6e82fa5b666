#include "lang/cuda/unit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "heddle/error.h"
#include "lang/cuda/assign.h"
#include "lang/cuda/emitter.h"
#include "lang/cuda/prepare.h"
#include "lang/cuda/scalar_text.h"
#include "lang/cuda/scaled.h"

namespace heddle::lang::cuda {
namespace {

constexpr int64_t kMostWarps = 32;

int64_t warps_of(const Kernel& kernel) {
  const int64_t warps = kernel.attributes.integer("num_warps", 4);
  if (warps < 1 || warps > kMostWarps || (warps & (warps - 1)) != 0) {
    throw Error(ErrorCode::kInvalidArgument, "kernel " + kernel.name,
                fmt::format("num_warps = {} is no power of two of at most {}", warps, kMostWarps));
  }
  return warps;
}

std::string symbol_of(const std::string& name) {
  std::string symbol;
  for (const char c : name) symbol += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return symbol;
}

// The text of a kernel.
CudaUnit written(Emitter& emitter) {
  const Kernel& kernel = emitter.kernel;
  std::vector<std::string> parameters;
  for (const Kernel::Parameter& p : kernel.parameters) {
    const std::string name = emitter.name(p.value);
    emitter.bind(p.value, name);
    parameters.push_back(fmt::format("{} {}", scalar_type(kernel.type(p.value)), name));
  }
  emitter.emit(kernel.body);

  CudaUnit unit;
  unit.symbol = symbol_of(kernel.name);
  unit.threads = 32 * emitter.warps;
  unit.shared_bytes = std::max(emitter.most_kept_bytes + emitter.shared_bytes, emitter.free_bytes);
  unit.shared_bytes = (unit.shared_bytes + 15) / 16 * 16;
  unit.text = "#include \"tile/block/block.h\"\n" +
              std::string(emitter.uses_groups ? "#include \"tile/block/wgmma.h\"\n" : "") +
              "\nnamespace tile = heddle::tile;\nnamespace block = heddle::tile::block;\n"
              "using tile::dims;\n\n";
  unit.text += fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}({}) {{\n", unit.threads, unit.symbol,
                           fmt::join(parameters, ", "));
  for (const std::string& alias : emitter.aliases) unit.text += "  " + alias + "\n";
  constexpr int kAlignment = 1024;  // of operands that are swizzled
  const std::string rest = emitter.uses_groups ? fmt::format(", true, {}", kAlignment) : "";
  if (emitter.uses_groups) unit.shared_bytes += kAlignment;
  const std::string body = emitter.out.text();
  for (const auto& [name, offset] : {std::pair("kFree", int64_t{0}), std::pair("kShared", emitter.most_kept_bytes)}) {
    if (body.find(name) == std::string::npos) continue;
    unit.text += fmt::format("  constexpr block::scratch<{}{}> {}{{}};\n", offset, rest, name);
  }
  unit.text += "\n" + body + "}\n";
  return unit;
}

}  // namespace

CudaUnit cuda_unit(Kernel kernel, const CudaTarget& target) {
  const int64_t warps = warps_of(kernel);
  expand_scaled_products(kernel);
  clone_indices(kernel);
  const std::vector<AxisFacts> facts = axis_facts(kernel);
  const Assignment layouts = assign_layouts(kernel, facts, {warps, target.has_wgmma()});
  // Fewer loads run ahead where tiles need much shared memory otherwise.
  for (auto stages = static_cast<int>(kernel.attributes.integer("num_stages", 3));; --stages) {
    Emitter emitter(kernel, facts, layouts, {warps, stages, target.shared_bytes_per_block});
    CudaUnit unit = written(emitter);
    if (unit.shared_bytes <= target.shared_bytes_per_block) return unit;
    if (stages > 1) continue;
    throw Error(ErrorCode::kOutOfMemory, "kernel " + kernel.name,
                fmt::format("its tiles go through {} bytes of shared memory, a block has {}", unit.shared_bytes,
                            target.shared_bytes_per_block),
                "Make the tiles smaller");
  }
}

}  // namespace heddle::lang::cuda
