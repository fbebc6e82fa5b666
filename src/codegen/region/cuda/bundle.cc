#include "codegen/region/cuda/bundle.h"

#include <algorithm>
#include <map>

#include "codegen/region/cuda/stitch.h"
#include "codegen/text/kernel_name.h"
#include "codegen/text/writer.h"
#include "schedule/region/cuda/bundle.h"

namespace heddle::codegen {

using schedule::CudaBundleDesc;

namespace {

// Parts of one text.
struct Kind {
  CudaPart part;
  std::vector<const CudaBundleDesc::Part*> members;
};

// Those of fewest blocks come first.
std::vector<Kind> kinds_of(const CudaBundleDesc& bundle, bool marked) {
  std::vector<Kind> kinds;
  std::map<std::pair<std::string, int64_t>, size_t> known;
  for (const CudaBundleDesc::Part& part : bundle.parts) {
    CudaPart text = emit_cuda_part({part.operands, part.body}, *part.body, marked);
    const auto [at, is_new] = known.try_emplace({text.parameters + text.body, part.body->blocks}, kinds.size());
    if (is_new) kinds.push_back({std::move(text), {}});
    kinds[at->second].members.push_back(&part);
  }
  std::stable_sort(kinds.begin(), kinds.end(), [](const Kind& a, const Kind& b) {
    return a.members[0]->body->blocks < b.members[0]->body->blocks;
  });
  return kinds;
}

}  // namespace

// Parts of one text are one function, whose pointers come from a table: the first part's, then the second's, and so on.
KernelSource emit_cuda_bundle(const schedule::KernelPlan& plan, const CudaBundleDesc& bundle, bool marked) {
  const std::vector<Kind> kinds = kinds_of(bundle, marked);
  KernelSource source;
  const size_t operand_count = plan.desc.operands.size();
  const size_t pointers = operand_count + (marked ? 1 : 0);  // the last one is that of the arguments
  CudaLaunch launch = plan.launches.front();
  launch.arguments.front().resize(pointers * sizeof(uint64_t));
  Writer out;
  out.raw("namespace KERNEL_NAME_parts {");
  out.line("struct Pointers {{ void* at[{}]; }};", pointers);
  for (size_t k = 0; k < kinds.size(); ++k) {
    const CudaPart& part = kinds[k].part;
    out.raw(fmt::format("__device__ __forceinline__ void part{}({}) {{\n{}}}\n", k, part.parameters, part.body));
  }
  out.raw("}");
  out.open(
      fmt::format("extern \"C\" __global__ void __launch_bounds__({}) KERNEL_NAME(const __grid_constant__ "
                  "KERNEL_NAME_parts::Pointers pointers) {{",
                  launch.block));
  if (plan.waits) {
    out.raw(kBeginEarly);
    source.includes.emplace_back(kWaitHeader);
  }
  out.line("unsigned block = blockIdx.x;");
  size_t first = 0;
  for (size_t k = 0; k < kinds.size(); ++k) {
    const Kind& kind = kinds[k];
    const int64_t each = kind.members[0]->body->blocks, all = each * static_cast<int64_t>(kind.members.size());
    const size_t operands = kind.members[0]->operands.size();
    if (k + 1 < kinds.size()) out.open(fmt::format("if (block < {}) {{", all));
    out.line("void* const* at = pointers.at + {} + block / {} * {};", first, each, operands);
    std::string arguments;
    for (size_t i = 0; i < operands; ++i) {
      const std::string pointer = fmt::format("static_cast<{}>(at[{}])", kind.part.types[i], i);
      arguments += plan.waits ? fmt::format("tile::sm90::launder_after_wait({}), ", pointer) : pointer + ", ";
    }
    if (marked) arguments += fmt::format("static_cast<const int64_t*>(pointers.at[{}]), ", pointers - 1);
    out.line("KERNEL_NAME_parts::part{}({}block % {}, {});", k, arguments, each, each);
    if (k + 1 < kinds.size()) {
      out.line("return;");
      out.close();
      out.line("block -= {};", all);
    }
    for (const CudaBundleDesc::Part* member : kind.members) {
      for (size_t i = 0; i < operands; ++i) {
        launch.pointers.push_back(
            {0, static_cast<int>((first + i) * sizeof(uint64_t)), static_cast<int>(member->first + i)});
      }
      first += operands;
    }
    for (const std::string& include : kind.part.includes) {
      if (std::find(source.includes.begin(), source.includes.end(), include) == source.includes.end()) {
        source.includes.push_back(include);
      }
    }
  }
  out.close();
  if (marked) {
    launch.pointers.push_back({0, static_cast<int>(first * sizeof(uint64_t)), static_cast<int>(operand_count)});
  }
  source.text = out.text();
  source.symbol = marked ? "bundle" : name_kernel(source.text, "bundle");
  source.tasks = launch.grid[0];
  launch.symbol = source.symbol;
  source.launches.push_back(std::move(launch));
  return source;
}

}  // namespace heddle::codegen
