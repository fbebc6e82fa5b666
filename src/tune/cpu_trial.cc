#include "tune/cpu_trial.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/clock.h"
#include "base/memory.h"
#include "codegen/codegen.h"
#include "jit/compiler.h"
#include "schedule/product/packing.h"
#include "tune/random_data.h"

namespace heddle::tune {
namespace {

constexpr int64_t kLine = 64;

}  // namespace

CpuTrial::CpuTrial(std::vector<schedule::ScheduledGroup> groups, const Target& target, const GraphValues& graph,
                   int64_t flush_bytes)
    : flush_bytes_(flush_bytes), pool_(target.cpu.threads) {
  load(groups, target);
  for (size_t i = 0; i < groups.size(); ++i) place(groups[i], graph, programs_[i]);
  scratch_ = allocate(static_cast<size_t>(scratch_stride_ * pool_.threads()), "scratch");
  flush_ = allocate(static_cast<size_t>(flush_bytes_), "the memory that makes caches cold");
}

CpuTrial::~CpuTrial() = default;

// One library of all candidates, cut into units that are compiled side by side.
void CpuTrial::load(const std::vector<schedule::ScheduledGroup>& groups, const Target& target) {
  std::vector<std::vector<codegen::KernelSource>> sources(groups.size());
  const int jobs = Target::host_cpu().cpu.threads;
  std::vector<std::vector<const codegen::KernelSource*>> parts(
      std::min<size_t>(groups.size(), static_cast<size_t>(jobs)));
  for (size_t i = 0; i < groups.size(); ++i) {
    for (const schedule::ScheduledKernel& kernel : groups[i].kernels) {
      sources[i].push_back(codegen::emit(schedule::plan_kernel(kernel, target), target));
    }
    for (const codegen::KernelSource& source : sources[i]) parts[i % parts.size()].push_back(&source);
  }
  std::vector<std::string> units;
  std::vector<std::string> symbols;
  for (auto& part : parts) {
    // A kernel that candidates share (the packing of filters) is defined once.
    std::erase_if(part, [&](const codegen::KernelSource* source) {
      const bool known = std::find(symbols.begin(), symbols.end(), source->symbol) != symbols.end();
      if (!known) symbols.push_back(source->symbol);
      return known;
    });
    if (!part.empty()) units.push_back(codegen::translation_unit(part));
  }
  library_ = jit::Library::load(jit::compile(units, target.cpu, jobs, false).bytes);
  for (const auto& list : sources) {
    Program& program = programs_.emplace_back();
    for (const codegen::KernelSource& source : list) {
      program.push_back({library_->find(source.symbol), {}, source.tasks});
      scratch_stride_ = std::max(scratch_stride_, (source.scratch_bytes + kLine - 1) / kLine * kLine);
    }
  }
}

void CpuTrial::place(const schedule::ScheduledGroup& group, const GraphValues& graph, Program& program) {
  const size_t first = workspaces_.size();
  for (const schedule::Workspace& workspace : group.workspaces) {
    workspaces_.push_back(allocate(static_cast<size_t>(workspace.bytes), "workspace"));
  }
  for (size_t k = 0; k < group.kernels.size(); ++k) {
    const schedule::ScheduledKernel& kernel = group.kernels[k];
    for (size_t i = 0; i < kernel.bindings.size(); ++i) {
      const schedule::Binding& binding = kernel.bindings[i];
      program[k].operands.push_back(binding.kind == schedule::Binding::Kind::kWorkspace
                                        ? workspaces_.at(first + binding.workspace).get()
                                        : buffer_of(kernel.desc.operands[i], binding, graph));
    }
  }
}

void* CpuTrial::buffer_of(const schedule::Operand& operand, const schedule::Binding& binding,
                          const GraphValues& graph) {
  const Tensor* constant = graph.constant_of(binding.value);
  if (!operand.packing.kind.empty()) {
    HEDDLE_CHECK(constant != nullptr);
    return packed_of(operand, binding.value, *constant);
  }
  if (constant != nullptr) return const_cast<void*>(constant->data());
  Buffer& buffer = buffers_[binding.value];
  const bool is_result = operand.role == schedule::Operand::Role::kOutput;
  if (buffer.memory == nullptr) {
    buffer.dtype = graph.dtype_of(binding.value);
    buffer.elements = element_count(operand.shape);
    buffer.bytes = buffer.elements * static_cast<int64_t>(size_of(operand.dtype));
    buffer.memory = allocate(static_cast<size_t>(buffer.bytes), "an operand");
    buffer.is_activation = !is_result;
    fill_random(buffer.memory.get(), buffer.dtype, buffer.elements, 1 + binding.value);
  }
  buffer.is_result = buffer.is_result || is_result;
  return buffer.memory.get();
}

void* CpuTrial::packed_of(const schedule::Operand& operand, uint32_t value, const Tensor& constant) {
  const auto [at, is_new] = packed_.try_emplace({value, operand.packing.kind, operand.packing.params});
  if (is_new) at->second = schedule::pack_constant(constant, operand.packing);
  return at->second.mutable_data();
}

void CpuTrial::make_cold() {
  std::byte* const flush = flush_.get();
  pool_.run(flush_bytes_ / 4096, [&](int64_t begin, int64_t end, int) {
    for (int64_t at = begin * 4096; at < end * 4096; at += kLine) {
      flush[at] = static_cast<std::byte>(static_cast<uint8_t>(flush[at]) + 1);
    }
  });
  uint8_t sum = 0;
  for (const auto& [value, buffer] : buffers_) {
    if (!buffer.is_activation) continue;
    for (int64_t at = 0; at < buffer.bytes; at += kLine) sum ^= static_cast<uint8_t>(buffer.memory.get()[at]);
  }
  if (flush_bytes_ > 0) flush[0] = static_cast<std::byte>(sum);
}

void CpuTrial::execute(const Program& program) {
  for (const Step& step : program) {
    pool_.run(step.tasks, [&](int64_t begin, int64_t end, int worker) {
      step.kernel(step.operands.data(), scratch_.get() + worker * scratch_stride_, begin, end);
    });
  }
}

double CpuTrial::run(size_t candidate) {
  make_cold();
  const auto clock = pool_.threads() == 1 ? thread_seconds : wall_seconds;
  const double start = clock();
  execute(programs_[candidate]);
  return clock() - start;
}

std::string CpuTrial::check(size_t candidate) {
  // Results of an earlier candidate must not pass for this one's.
  for (auto& [value, buffer] : buffers_) {
    if (buffer.is_result && !buffer.is_activation) {
      std::memset(buffer.memory.get(), 0xFF, static_cast<size_t>(buffer.bytes));
    }
  }
  execute(programs_[candidate]);
  const bool first = expected_.empty();
  for (auto& [value, buffer] : buffers_) {
    if (!buffer.is_result) continue;
    std::vector<double> got = as_doubles(buffer.memory.get(), buffer.dtype, buffer.elements);
    if (first) {
      expected_.emplace(value, std::move(got));
      continue;
    }
    const std::string differs = difference(expected_.at(value), got, buffer.dtype);
    if (!differs.empty()) return differs;
  }
  return "";
}

void CpuTrial::repeat(size_t candidate, int64_t runs) {
  for (int64_t i = 0; i < runs; ++i) execute(programs_[candidate]);
}

std::vector<double> CpuTrial::values(uint32_t value) const {
  const Buffer& buffer = buffers_.at(value);
  return as_doubles(buffer.memory.get(), buffer.dtype, buffer.elements);
}

}  // namespace heddle::tune
