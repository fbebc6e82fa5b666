#include "codegen/region/cuda/bundle.h"

#include <algorithm>
#include <map>
#include <set>

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

// Parts of one text are one function, whose pointers come from a table: the first part's, then the second's, and so on.
std::string bundle_text(const std::vector<Kind>& kinds, const CudaLaunch& launch, size_t pointers, bool marked,
                        const std::string& symbol) {
  Writer out;
  out.line("namespace {}_parts {{", symbol);
  out.line("struct Pointers {{ void* at[{}]; }};", pointers);
  for (size_t k = 0; k < kinds.size(); ++k) {
    const CudaPart& part = kinds[k].part;
    out.line("__device__ __forceinline__ void part{}({}) {{\n{}}}\n", k, part.parameters, part.body);
  }
  out.raw("}");
  out.open(
      fmt::format("extern \"C\" __global__ void __launch_bounds__({0}) {1}(const __grid_constant__ "
                  "{1}_parts::Pointers pointers) {{",
                  launch.block, symbol));
  if (launch.early) out.raw(kBeginEarly);
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
      arguments += launch.early ? fmt::format("tile::sm90::launder_after_wait({}), ", pointer) : pointer + ", ";
    }
    if (marked) arguments += fmt::format("static_cast<const int64_t*>(pointers.at[{}]), ", pointers - 1);
    out.line("{}_parts::part{}({}block % {}, {});", symbol, k, arguments, each, each);
    if (k + 1 < kinds.size()) {
      out.line("return;");
      out.close();
      out.line("block -= {};", all);
    }
    first += operands * kind.members.size();
  }
  out.close();
  return out.text();
}

}  // namespace

KernelSource emit_cuda_bundle(const schedule::KernelPlan& plan, const CudaBundleDesc& bundle, bool marked) {
  const std::vector<Kind> kinds = kinds_of(bundle, marked);
  const size_t operands = plan.desc.operands.size();
  const size_t pointers = operands + (marked ? 1 : 0);  // the last one is that of the arguments
  KernelSource source;
  source.launches = plan.launches;
  CudaLaunch& launch = source.launches.front();
  launch.arguments.front().resize(pointers * sizeof(uint64_t));
  const auto point_to = [&](size_t operand) {
    const int at = static_cast<int>(launch.pointers.size() * sizeof(uint64_t));
    launch.pointers.push_back({0, at, static_cast<int>(operand)});
  };
  std::set<std::string> includes;
  for (const Kind& kind : kinds) {
    includes.insert(kind.part.includes.begin(), kind.part.includes.end());
    for (const CudaBundleDesc::Part* member : kind.members) {
      for (size_t i = 0; i < member->operands.size(); ++i) point_to(member->first + i);
    }
  }
  if (marked) point_to(operands);
  source.includes.assign(includes.begin(), includes.end());
  if (plan.waits) source.includes.emplace_back(kWaitHeader);
  const auto text = [&](const KernelHead& head) { return bundle_text(kinds, launch, pointers, marked, head.symbol); };
  if (marked) {
    source.symbol = "bundle";
    source.text = text({kStandIn});
  } else {
    name_kernel(source, "bundle", text, false);
  }
  source.tasks = launch.grid[0];
  launch.symbol = source.symbol;
  return source;
}

}  // namespace heddle::codegen
