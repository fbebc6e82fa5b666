#include "tests/decisions/dump.h"

#include <fmt/format.h>

#include <iterator>
#include <set>

#include "base/hash.h"
#include "driver/plan/plan_builder.h"

namespace heddle::decisions {
namespace {

Target cpu_machine(CpuIsa isa) {
  Target target;
  target.cpu.isa = isa;
  target.cpu.f16c = true;
  target.cpu.threads = 8;
  return target;
}

Target gpu_machine(int sm) {
  Target target = cpu_machine(CpuIsa::kAvx512);
  target.kind = TargetKind::kCuda;
  target.cuda = CudaTarget::pinned(sm);
  return target;
}

Target hip_machine() {
  Target target = Target::of_hip({}, 8);
  target.cpu = cpu_machine(CpuIsa::kAvx512).cpu;
  return target;
}

class Writer {
 public:
  template <typename... Args>
  void line(int depth, fmt::format_string<Args...> format, Args&&... args) {
    text_.append(static_cast<size_t>(2 * depth), ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string hash_of(std::string_view text) {
  return hash_text(text).hex().substr(0, 16);
}

std::string arguments_of(const CudaLaunch& launch) {
  Hasher hasher;
  for (const std::vector<uint8_t>& argument : launch.arguments) {
    hasher.add(hash_bytes(reinterpret_cast<const std::byte*>(argument.data()), argument.size()));
  }
  for (const PointerPatch& patch : launch.pointers) {
    hasher.add(int64_t{patch.argument}).add(int64_t{patch.offset}).add(int64_t{patch.operand});
  }
  return hasher.finish().hex().substr(0, 16);
}

void write_launch(Writer& out, int depth, const CudaLaunch& launch) {
  out.line(depth, "launch {} grid {}x{}x{} block {} shared {} cluster {}{}{} arguments {}", launch.symbol,
           launch.grid[0], launch.grid[1], launch.grid[2], launch.block, launch.shared_bytes, launch.cluster,
           launch.cooperative ? " cooperative" : "", launch.early ? " early" : "", arguments_of(launch));
  for (const TensorMapDesc& map : launch.maps) {
    out.line(depth + 1, "tensor map of operand {} + {}: extents {} strides {} box {} swizzle {} outer {}{}",
             map.operand, map.offset, fmt::join(map.extents, ","), fmt::join(map.strides, ","), fmt::join(map.box, ","),
             map.swizzle_bytes, fmt::join(map.outer, ","), map.windows ? " windows" : "");
  }
}

void write_group(Writer& out, size_t index, const driver::GroupReport& group) {
  out.line(group.depth, "group {} {} of {} nodes: {}{}", index, ir::to_string(group.kind), group.nodes, group.ops,
           group.view ? " (view)" : "");
  const int depth = group.depth + 1;
  out.line(depth, "inside {} compulsory {:.0f} trips {}", group.bytes_inside, group.compulsory_bytes, group.trips);
  if (!group.fallback.empty()) out.line(depth, "fallback: {}", group.fallback);
  for (const std::string& note : group.notes) out.line(depth, "note: {}", note);
  for (const schedule::Boundary& boundary : group.boundaries) {
    out.line(depth, "boundary {} {:.0f} bytes: {}", boundary.value, boundary.bytes, boundary.reason);
  }
  for (const driver::KernelReport& kernel : group.kernels) {
    out.line(depth, "kernel {} [{}] {}: {}", kernel.symbol, kernel.label, kernel.family, kernel.reason);
    out.line(depth + 1, "tasks {} floor {:.4g} predicted {:.4g} on-chip {} barriers {} mapping {}", kernel.tasks,
             kernel.floor_seconds, kernel.stitch.predicted_seconds, kernel.stitch.on_chip_bytes, kernel.stitch.barriers,
             kernel.stitch.mapping);
    for (const schedule::SchemeChoice& choice : kernel.stitch.schemes) {
      out.line(depth + 1, "scheme {} {}{}: {}", static_cast<int>(choice.scheme), choice.value,
               choice.dominant ? " dominant" : "", choice.reason);
    }
    for (const CudaLaunch& launch : kernel.launches) write_launch(out, depth + 1, launch);
  }
}

void write_plan(Writer& out, const runtime::Plan& plan, int depth) {
  out.line(depth, "plan: arena {} buffers {} constants {} steps {}", plan.arena_bytes, plan.buffers.size(),
           plan.constants.size(), plan.steps.size());
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const runtime::Buffer& buffer = plan.buffers[i];
    out.line(depth + 1, "buffer {} place {} index {} offset {} bytes {} {}{}", i, static_cast<int>(buffer.place),
             buffer.index, buffer.offset, buffer.bytes, to_string(buffer.dtype), to_string(buffer.shape));
  }
  for (const runtime::Step& step : plan.steps) {
    if (const auto* kernel = std::get_if<runtime::KernelStep>(&step.action)) {
      out.line(depth + 1, "step {} tasks {} scratch {} operands {}", kernel->symbol, kernel->tasks,
               kernel->scratch_bytes, fmt::join(kernel->operands, ","));
    } else if (const auto* cuda = std::get_if<runtime::CudaStep>(&step.action)) {
      out.line(depth + 1, "step of {} launches counters {} operands {}", cuda->launches.size(), cuda->counter_bytes,
               fmt::join(cuda->operands, ","));
    } else if (const auto* loop = std::get_if<runtime::LoopStep>(&step.action)) {
      out.line(depth + 1, "loop of at most {} trips, workspace {}", loop->trip_bound, loop->workspace);
      write_plan(out, *loop->body, depth + 2);
    } else if (const auto* branch = std::get_if<runtime::BranchStep>(&step.action)) {
      out.line(depth + 1, "branch, workspace {}", branch->workspace);
      write_plan(out, *branch->then_body, depth + 2);
      write_plan(out, *branch->else_body, depth + 2);
    } else if (const auto* reference = std::get_if<runtime::ReferenceStep>(&step.action)) {
      out.line(depth + 1, "reference {}", hash_of(reference->ir));
    } else if (const auto* copy = std::get_if<runtime::CopyStep>(&step.action)) {
      out.line(depth + 1, "copy {} to {}", copy->from, copy->to);
    }
  }
}

}  // namespace

const std::vector<Machine>& machines() {
  static const std::vector<Machine> all = {{"avx512", cpu_machine(CpuIsa::kAvx512)},
                                           {"avx2", cpu_machine(CpuIsa::kAvx2)},
                                           {"sm_90a", gpu_machine(90)},
                                           {"sm_80", gpu_machine(80)},
                                           {"gfx942", hip_machine()}};
  return all;
}

Dump dump(const ir::Graph& imported, const Machine& machine, passes::Precision precision) {
  const ir::Graph optimised = passes::run_pipeline(imported, {machine.target, precision});
  driver::KernelSet kernels;
  driver::CompileReport report;
  driver::BuildContext context{machine.target, passes::FusionPolicy::kStitch, kernels, report};
  const driver::BuiltPlan built = driver::plan_without_constants(optimised, context);

  Writer out;
  Dump result;
  for (const driver::KernelUnit& unit : kernels.units({1})) result.kernels += unit.text;
  out.line(0, "{} nodes, {} after the passes, {} kernels, text {}", imported.nodes().size(), optimised.nodes().size(),
           kernels.size(), hash_of(result.kernels));
  for (const ir::Decision& decision : report.decisions) {
    out.line(0, "{} {}: {}: {}", decision.yes ? "fused" : "refused", decision.rule, decision.what, decision.reason);
  }
  for (size_t i = 0; i < report.groups.size(); ++i) write_group(out, i, report.groups[i]);
  write_plan(out, *built.plan, 0);
  result.decisions = out.take();
  return result;
}

}  // namespace heddle::decisions
