#include "driver/target/cuda_trial.h"

#include <algorithm>

#include "base/check.h"
#include "base/thread/thread.h"
#include "base/thread/thread_pool.h"
#include "codegen/codegen.h"
#include "jit/hip/code_object.h"
#include "schedule/product/packing.h"
#include "tune/random_data.h"

namespace heddle::driver {

struct CudaTrial::Candidate {
  std::vector<codegen::KernelSource> sources;
  std::string cubin, failure;
  std::vector<std::vector<uint64_t>> operands;  // by kernel
  std::unique_ptr<runtime::CudaModule> module;
  std::vector<std::unique_ptr<runtime::CudaSequence>> steps;
  std::unique_ptr<runtime::CudaGraph> graph;
};

namespace {

// All elements, of many an even choice: to look at each takes longer than to time a candidate. The step shares no
// factor with the width of a tile, so every column and row of tiles is met.
std::vector<double> some_elements(const std::vector<uint8_t>& bytes, DType dtype, int64_t count) {
  constexpr int64_t kMost = int64_t{1} << 20;
  const int64_t step = count <= kMost ? 1 : (count / kMost) | 1;
  const auto size = static_cast<int64_t>(size_of(dtype));
  std::vector<double> values;
  values.reserve(static_cast<size_t>(count / step + 1));
  for (int64_t i = 0; i < count; i += step) values.push_back(tune::as_double(bytes.data() + i * size, dtype));
  return values;
}

}  // namespace

CudaTrial::CudaTrial(std::vector<schedule::ScheduledGroup> groups, const Target& target, const tune::GraphValues& graph,
                     std::shared_ptr<const runtime::CudaContext> context)
    : context_(std::move(context)), timer_(*context_) {
  for (const schedule::ScheduledGroup& group : groups) {
    Candidate& candidate = *candidates_.emplace_back(std::make_unique<Candidate>());
    for (const schedule::ScheduledKernel& kernel : group.kernels) {
      candidate.sources.push_back(codegen::emit(schedule::plan_kernel(kernel, target), target));
    }
    place(group, graph, candidate);
  }
  const std::unique_ptr<ThreadPool> pool =
      pool_of_up_to(std::max(1, std::min(static_cast<int>(groups.size()), Target::host_cpu().cpu.threads)));
  pool->run(static_cast<int64_t>(candidates_.size()), [&](int64_t begin, int64_t end, int) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      std::vector<const codegen::KernelSource*> list;
      for (const codegen::KernelSource& source : candidates_[i]->sources) list.push_back(&source);
      try {
        const std::string unit = codegen::translation_unit(list);
        candidates_[i]->cubin = jit::compile_for_gpu(unit, target.gpu().architecture(), false).bytes;
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kCompilerFailed) throw;
        candidates_[i]->failure = error.what();
      }
    }
  });
}

CudaTrial::~CudaTrial() = default;

void CudaTrial::place(const schedule::ScheduledGroup& group, const tune::GraphValues& graph, Candidate& candidate) {
  std::vector<uint64_t> workspaces;
  for (const schedule::Workspace& workspace : group.workspaces) workspaces.push_back(scratch(workspace.bytes));
  for (size_t k = 0; k < group.kernels.size(); ++k) {
    const schedule::ScheduledKernel& kernel = group.kernels[k];
    std::vector<uint64_t>& operands = candidate.operands.emplace_back();
    for (size_t i = 0; i < kernel.bindings.size(); ++i) {
      const schedule::Binding& binding = kernel.bindings[i];
      operands.push_back(binding.kind == schedule::Binding::Kind::kWorkspace
                             ? workspaces.at(binding.workspace)
                             : address_of(kernel.desc.operands[i], binding.value, graph));
    }
    operands.push_back(scratch(candidate.sources[k].workspace_bytes));
    operands.push_back(scratch(candidate.sources[k].counter_bytes));
  }
}

// Zero when it is made, which is what counters have to be; kernels leave them so.
uint64_t CudaTrial::scratch(int64_t bytes) {
  scratch_.push_back(std::make_unique<runtime::CudaBuffer>(*context_, static_cast<size_t>(bytes)));
  const std::vector<uint8_t> zeros(static_cast<size_t>(bytes));
  scratch_.back()->write(zeros.data(), zeros.size());
  return scratch_.back()->address();
}

uint64_t CudaTrial::upload(const Tensor& constant, const schedule::Packing& packing, uint32_t value) {
  std::unique_ptr<runtime::CudaBuffer>& buffer = constants_[{value, packing.kind, packing.params}];
  if (buffer == nullptr) {
    const Tensor tensor = schedule::pack_constant(constant, packing);
    buffer = std::make_unique<runtime::CudaBuffer>(*context_, tensor.bytes());
    buffer->write(tensor.data(), tensor.bytes());
  }
  return buffer->address();
}

uint64_t CudaTrial::address_of(const schedule::Operand& operand, uint32_t value, const tune::GraphValues& graph) {
  const Tensor* constant = graph.constant_of(value);
  HEDDLE_CHECK(constant != nullptr || operand.packing.kind.empty());
  if (constant != nullptr) return upload(*constant, operand.packing, value);
  Buffer& buffer = buffers_[value];
  const bool is_result = operand.role == schedule::Operand::Role::kOutput;
  if (buffer.memory == nullptr) {
    buffer.dtype = graph.dtype_of(value);
    buffer.elements = element_count(operand.shape);
    buffer.is_input = !is_result;
    std::vector<uint8_t> bytes(static_cast<size_t>(buffer.elements) * size_of(operand.dtype));
    tune::fill_random(bytes.data(), buffer.dtype, buffer.elements, 1 + value);
    buffer.memory = std::make_unique<runtime::CudaBuffer>(*context_, bytes.size());
    buffer.memory->write(bytes.data(), bytes.size());
  }
  buffer.is_result = buffer.is_result || is_result;
  return buffer.memory->address();
}

double CudaTrial::run(size_t index) {
  Candidate& candidate = *candidates_[index];
  if (!candidate.failure.empty()) fail(ErrorCode::kCompilerFailed, "candidate", candidate.failure);
  if (candidate.graph == nullptr) {
    candidate.module = std::make_unique<runtime::CudaModule>(*context_, candidate.cubin);
    for (size_t k = 0; k < candidate.sources.size(); ++k) {
      candidate.steps.push_back(std::make_unique<runtime::CudaSequence>(
          *context_, *candidate.module, candidate.sources[k].launches, candidate.operands[k]));
    }
    candidate.graph = std::make_unique<runtime::CudaGraph>(*context_, [&] {
      for (const auto& step : candidate.steps) step->enqueue();
    });
  }
  return timer_.time_us(*candidate.graph) * 1e-6;
}

std::string CudaTrial::check(size_t index) {
  // Results of an earlier candidate must not pass for this one's.
  for (auto& [value, buffer] : buffers_) {
    if (!buffer.is_result || buffer.is_input) continue;
    context_->check(
        context_->driver().set_d8_async(buffer.memory->address(), 0xFF, buffer.memory->size(), context_->stream()),
        "cuMemsetD8Async");
  }
  candidates_[index]->graph->launch();
  const bool first = expected_.empty();
  for (auto& [value, buffer] : buffers_) {
    if (!buffer.is_result) continue;
    std::vector<uint8_t> bytes(buffer.memory->size());
    buffer.memory->read(bytes.data(), bytes.size());
    std::vector<double> got = some_elements(bytes, buffer.dtype, buffer.elements);
    if (first) {
      expected_.emplace(value, std::move(got));
      continue;
    }
    std::string differs = tune::difference(expected_.at(value), got, buffer.dtype);
    if (!differs.empty()) return differs;
  }
  return "";
}

void CudaTrial::repeat(size_t index, int64_t runs) {
  for (int64_t i = 0; i < runs; ++i) candidates_[index]->graph->launch();
  context_->synchronize();
}

std::vector<double> CudaTrial::values(uint32_t value) const {
  const Buffer& buffer = buffers_.at(value);
  std::vector<uint8_t> bytes(buffer.memory->size());
  buffer.memory->read(bytes.data(), bytes.size());
  return tune::as_doubles(bytes.data(), buffer.dtype, buffer.elements);
}

}  // namespace heddle::driver
