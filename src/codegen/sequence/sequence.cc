#include "codegen/sequence/sequence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"
#include "codegen/attention/cuda.h"
#include "codegen/cuda_phase.h"
#include "codegen/product/cuda/contraction.h"
#include "codegen/region/cuda/stitch.h"
#include "codegen/text/kernel_name.h"
#include "codegen/text/writer.h"
#include "schedule/attention/attention.h"
#include "schedule/product/contraction.h"
#include "schedule/sequence/phase.h"

namespace heddle::codegen {
namespace {

using schedule::SequenceDesc;

std::string replaced(std::string text, std::string_view from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// The pointers of a stitch kernel are one argument, and pass a function that hides from the compiler that they are
// parameters: it must not load through them by ld.global.nc, since earlier phases write that memory.
CudaPhase stitch_phase(const schedule::KernelPlan& plan, const schedule::CudaStitchDesc& body, int threads) {
  const CudaPart part = emit_cuda_part(plan.desc, body, threads, false);
  CudaPhase phase;
  phase.includes = part.includes;
  std::string arguments;
  CudaLaunch& launch = phase.launch;
  launch.arguments.emplace_back(part.types.size() * sizeof(uint64_t), uint8_t{0});
  for (size_t i = 0; i < part.types.size(); ++i) {
    arguments += fmt::format("tile::sm90::launder_after_wait(static_cast<{}>(pointers.at[{}])), ", part.types[i], i);
    launch.pointers.push_back({0, static_cast<int>(i * sizeof(uint64_t)), static_cast<int>(i)});
  }
  launch.grid[0] = static_cast<uint32_t>(body.blocks);
  phase.types = {fmt::format("{}_parts::Pointers", kStandIn)};
  phase.definitions = fmt::format(
      "namespace {0}_parts {{\n"
      "struct Pointers {{ void* at[{1}]; }};\n"
      "__device__ __forceinline__ void part({2}) {{\n{3}}}\n"
      "__device__ __forceinline__ void run(const Pointers& pointers, uint8_t* raw_shared, const unsigned block) {{\n"
      "  part({4}raw_shared, block, {5});\n"
      "}}\n"
      "}}  // namespace {0}_parts\n",
      kStandIn, part.types.size(), part.parameters, part.body, arguments, body.blocks);
  return phase;
}

CudaPhase phase_of(const SequenceDesc::Phase& phase, int threads, const GpuTarget& target) {
  const schedule::KernelPlan plan = schedule::plan_phase(phase, target);
  CudaPhase result =
      plan.desc.visit([&](const schedule::CudaStitchDesc& body) { return stitch_phase(plan, body, threads); },
                      [&](const schedule::AttentionDesc& attention) { return attention_phase(plan, attention); },
                      [&](const schedule::ContractionDesc& contraction) { return product_phase(plan, contraction); },
                      [&](const auto&) {
                        HEDDLE_CHECK(false, "{} is no phase", phase.label);
                        return CudaPhase{};
                      });
  return result;
}

// Writes a sequence from its phases. Phases with equal definitions share them.
class SequenceWriter {
 public:
  SequenceWriter(const SequenceDesc& sequence, const GpuTarget& target) : sequence_(sequence) {
    std::map<std::string, size_t> known;
    for (const SequenceDesc::Phase& phase : sequence.phases) {
      phases_.push_back(phase_of(phase, sequence.threads, target));
      const size_t number = phases_.size() - 1;
      definition_of_.push_back(known.try_emplace(phases_.back().definitions, number).first->second);
    }
  }

  const std::vector<CudaPhase>& phases() const { return phases_; }

  std::string run(const KernelHead& head) {
    Writer out;
    for (size_t p = 0; p < phases_.size(); ++p) {
      if (definition_of_[p] == p) out.raw(of(head, p, phases_[p].definitions));
    }
    const auto tasks = static_cast<size_t>(total());
    std::vector<std::string> parameters = {"const __grid_constant__ tile::sequence_counters counters"};
    for (size_t p = 0; p < phases_.size(); ++p) {
      for (size_t i = 0; i < phases_[p].types.size(); ++i) {
        parameters.push_back(fmt::format("const __grid_constant__ {} p{}_{}", of(head, p, phases_[p].types[i]), p, i));
      }
    }
    out.open(fmt::format("extern \"C\" __global__ void __launch_bounds__({}, {})\n    {}({}) {{", sequence_.threads,
                         sequence_.resident, head.symbol, fmt::join(parameters, ",\n        ")));
    out.raw("extern __shared__ __align__(128) uint8_t raw_shared[];");
    if (head.waits) out.raw("tile::sm90::launch_dependents();");
    write_start(out, head);
    if (head.waits) out.raw("tile::sm90::grid_dependency_wait();");
    out.line("const tile::sequence_queue<{}> queue(counters, raw_shared + {});", phases_.size(),
             sequence_.shared_bytes - schedule::kQueueSharedBytes);
    out.open(fmt::format("for (unsigned task = queue.take(); task < {}; task = queue.take()) {{", tasks));
    int64_t first = 0;
    for (size_t p = 0; p < phases_.size(); ++p) {
      const int64_t end = first + tasks_of(p);
      if (p == 0) {
        out.open(fmt::format("if (task < {}) {{", end));
      } else {
        out.middle(p + 1 < phases_.size() ? fmt::format("}} else if (task < {}) {{", end) : "} else {");
      }
      write_phase(out, head, p, first);
      first = end;
    }
    out.close();
    out.close();
    out.raw("queue.leave();");
    out.close();
    return out.text();
  }

 private:
  // A text of phase `p` with its name.
  std::string of(const KernelHead& head, size_t p, const std::string& text) const {
    return replaced(text, kStandIn, fmt::format("{}_{}", head.symbol, definition_of_[p]));
  }

  int64_t tasks_of(size_t p) const { return int64_t{phases_[p].launch.grid[0]}; }
  int64_t total() const {
    int64_t tasks = 0;
    for (size_t p = 0; p < phases_.size(); ++p) tasks += tasks_of(p);
    return tasks;
  }

  // What the launch requests at its start.
  void write_start(Writer& out, const KernelHead& head) const {
    for (size_t p = 0; p < phases_.size(); ++p) {
      if (sequence_.phases[p].ahead != SequenceDesc::Ahead::kAtStart) continue;
      out.line("if (blockIdx.x < {}) {}::ahead({}blockIdx.x);", tasks_of(p), space_of(head, p), arguments_of(p));
    }
  }

  std::string space_of(const KernelHead& head, size_t p) const {
    return fmt::format("{}_{}_parts", head.symbol, definition_of_[p]);
  }
  std::string arguments_of(size_t p) const {
    std::string arguments;
    for (size_t i = 0; i < phases_[p].types.size(); ++i) arguments += fmt::format("p{}_{}, ", p, i);
    return arguments;
  }

  void write_phase(Writer& out, const KernelHead& head, size_t p, int64_t first) const {
    const SequenceDesc::Phase& phase = sequence_.phases[p];
    const std::string space = space_of(head, p), arguments = arguments_of(p);
    const std::string block = first == 0 ? "task" : fmt::format("task - {}", first);
    out.comment(phase.label);
    if (phase.ahead == SequenceDesc::Ahead::kWithTask) out.line("{}::ahead({}{});", space, arguments, block);
    for (size_t i = 0; i < phase.after.size(); ++i) {
      const size_t q = phase.after[i], warps = static_cast<size_t>(sequence_.threads) / 32;
      out.line("queue.wait({}, {}, {});", q, tasks_of(q), i % warps * 32);
    }
    if (!phase.after.empty()) out.raw("queue.settle();");
    out.line("{}::run({}raw_shared, {});", space, arguments, block);
    const bool is_awaited = std::any_of(sequence_.phases.begin(), sequence_.phases.end(), [&](const auto& other) {
      return std::find(other.after.begin(), other.after.end(), p) != other.after.end();
    });
    out.raw(is_awaited ? fmt::format("queue.finish({});", p) : "queue.settle();");
  }

  const SequenceDesc& sequence_;
  std::vector<CudaPhase> phases_;
  std::vector<size_t> definition_of_;  // by phase: the first with the same definitions
};

// Appends the arguments of a phase to the launch. They refer to the operands of the sequence.
void add_arguments(CudaLaunch& launch, const SequenceDesc::Phase& phase, const CudaPhase& code, size_t operands) {
  const auto own = static_cast<int>(phase.desc.operands.size());
  const int behind = static_cast<int>(launch.arguments.size());
  for (PointerPatch patch : code.launch.pointers) {
    patch.argument += behind;
    if (patch.operand < own) {
      patch.operand += static_cast<int>(phase.first);
    } else if (patch.operand == own) {
      patch.operand = static_cast<int>(phase.workspace.value());
    } else {
      patch.operand = static_cast<int>(operands) + 1;
      patch.begin += phase.counters;
    }
    launch.pointers.push_back(patch);
  }
  launch.arguments.insert(launch.arguments.end(), code.launch.arguments.begin(), code.launch.arguments.end());
}

}  // namespace

KernelSource emit_cuda_sequence(const schedule::KernelPlan& plan, const SequenceDesc& sequence,
                                const GpuTarget& target) {
  SequenceWriter writer(sequence, target);
  KernelSource source;
  source.launches = plan.launches;
  source.counter_bytes = plan.counter_bytes;
  CudaLaunch& launch = source.launches.front();
  std::set<std::string> includes = {"tile/op/cuda/sequence.h", kWaitHeader};
  for (size_t p = 0; p < sequence.phases.size(); ++p) {
    const CudaPhase& phase = writer.phases()[p];
    includes.insert(phase.includes.begin(), phase.includes.end());
    add_arguments(launch, sequence.phases[p], phase, plan.desc.operands.size());
  }
  source.includes.assign(includes.begin(), includes.end());
  name_kernel(
      source, "sequence", [&](const KernelHead& head) { return writer.run(head); }, plan.waits);
  source.tasks = launch.grid[0];
  launch.symbol = source.symbol;
  return source;
}

}  // namespace heddle::codegen
