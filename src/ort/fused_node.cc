#include "ort/fused_node.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace heddle::ort {

FusedNode::FusedNode(const Runtime& runtime, Place place, const std::string& path,
                     std::shared_ptr<const ModelFolder> file, const Options& options)
    : runtime_(runtime), place_(std::move(place)), path_(path), file_(std::move(file)) {
  OrtNodeComputeInfo::create_state = create_state;
  OrtNodeComputeInfo::compute = compute_node;
  OrtNodeComputeInfo::release_state = release_state;
  try {
    model_ = std::make_unique<const Model::Impl>(path_, options.compile, place_.pool);
    inputs_ = places_of(model_->inputs(), place_.inputs);
    outputs_ = places_of(model_->outputs(), place_.outputs);
    if (place_.gpu != nullptr) prepare();
  } catch (const Error& error) {
    rethrow(error);
  }
}

// Compiles what enqueue() needs now rather than at the first run.
void FusedNode::prepare() {
  std::vector<Shape> shapes;
  for (const PortInfo& port : model_->inputs()) shapes.push_back(port.shape);
  try {
    model_->prepare(shapes);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupportedOperator) throw;
    needs_host_ = true;
  }
}

std::vector<size_t> FusedNode::places_of(const std::vector<PortInfo>& ports,
                                         const std::vector<std::string>& names) const {
  std::vector<size_t> places;
  for (const PortInfo& port : ports) {
    const auto found = std::find(names.begin(), names.end(), port.name);
    if (found == names.end()) {
      fail(ErrorCode::kDamagedArtefact, path_, fmt::format("the node has no value {}", port.name),
           "Make the model with plans again");
    }
    places.push_back(static_cast<size_t>(found - names.begin()));
  }
  return places;
}

// The user knows the session's model, not the file that is compiled.
void FusedNode::rethrow(const Error& error) const {
  std::string where = error.where();
  if (const size_t at = where.find(path_); at != std::string::npos) where.replace(at, path_.size(), place_.model);
  if (where.find(place_.model) == std::string::npos) where = place_.model + ": " + where;
  throw Error(error.code(), where, error.why(), error.remedy());
}

OrtStatus* FusedNode::create_state(OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) {
  *state = self;
  return nullptr;
}

OrtStatus* FusedNode::compute_node(OrtNodeComputeInfo* self, void*, OrtKernelContext* context) {
  const auto* const node = static_cast<const FusedNode*>(self);
  return node->runtime_.guarded([&] {
    try {
      if (node->place_.gpu == nullptr) {
        node->run(context);
      } else {
        node->needs_host_ ? node->run_through_host(context) : node->run_on_gpu(context);
      }
    } catch (const Error& error) {
      node->rethrow(error);
    }
  });
}

FusedNode::Operand FusedNode::input(OrtKernelContext* context, size_t port) const {
  const auto* const value = runtime_.get<const OrtValue*>(api::kKernelContextGetInput, context, inputs_[port]);
  int element = 0;
  const int64_t* extents = nullptr;
  size_t rank = 0;
  runtime_.check(runtime_.api()(api::kGetTensorElementTypeAndShapeDataReference, value, &element, &extents, &rank));
  const bool is_on_gpu = place_.gpu != nullptr && place_.gpu->has(value);
  return {runtime_.get<const void*>(api::kGetTensorData, value), Shape(extents, extents + rank),
          runtime_.get<size_t>(api::kGetTensorSizeInBytes, value), is_on_gpu};
}

void* FusedNode::output(OrtKernelContext* context, size_t port, const Shape& shape) const {
  OrtValue* value = nullptr;
  runtime_.check(
      runtime_.api()(api::kKernelContextGetOutput, context, outputs_[port], shape.data(), shape.size(), &value));
  return runtime_.get<void*>(api::kGetTensorMutableData, value);
}

void FusedNode::run(OrtKernelContext* context) const {
  std::vector<Tensor> inputs;
  inputs.reserve(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Operand operand = input(context, i);
    inputs.push_back(Tensor::borrow(model_->inputs()[i].dtype, std::move(operand.shape), operand.data, nullptr));
  }
  Trace& trace = *place_.trace;
  if (!trace.is_on())
    return model_->run_in_memory(inputs, [&](size_t port, const Shape& shape) { return output(context, port, shape); });
  // Outputs are asked for when the plan has been found, right before its first step.
  Trace::Clock::time_point last;
  const auto memory = [&](size_t port, const Shape& shape) {
    void* const data = output(context, port, shape);
    last = Trace::Clock::now();
    return data;
  };
  model_->run_in_memory(inputs, memory, [&](const runtime::Step& step) {
    trace.add_step(place_.name, step, last, Trace::Clock::now());
    last = Trace::Clock::now();
  });
}

// On the session's stream. The workspace serves later work on that stream once this run is enqueued. ONNX Runtime
// leaves results of If, Loop and Scan on the host, even for readers on the GPU.
void FusedNode::run_on_gpu(OrtKernelContext* context) const {
  auto* const stream = runtime_.get<void*>(api::kKernelContextGetGpuComputeStream, context);
  GpuMemory& memory = place_.gpu->memory();
  const auto take = [&](size_t bytes) {
    return std::shared_ptr<void>(memory.take(bytes, stream), [&](void* data) { memory.give(data); });
  };
  std::vector<DeviceTensor> inputs, outputs;
  std::vector<Shape> shapes;
  std::vector<std::shared_ptr<void>> copies;  // of inputs on the host
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Operand operand = input(context, i);
    shapes.push_back(operand.shape);
    auto* data = const_cast<void*>(operand.data);
    if (operand.bytes > 0 && !operand.is_on_gpu) {
      data = copies.emplace_back(take(operand.bytes)).get();
      memory.copy_in(data, operand.data, operand.bytes, stream);
    }
    inputs.push_back({data, model_->inputs()[i].dtype, std::move(operand.shape)});
  }
  const EnqueueNeeds needs = model_->prepare(shapes);
  for (const PortInfo& port : needs.outputs) {
    outputs.push_back({output(context, outputs.size(), port.shape), port.dtype, port.shape});
  }
  const std::shared_ptr<void> workspace = take(needs.workspace_bytes);
  const Trace::Stopwatch stopwatch = place_.trace->is_on() ? place_.trace->add_run(place_.name) : nullptr;
  if (stopwatch != nullptr) stopwatch->start(stream);
  model_->enqueue(inputs, outputs, workspace.get(), stream);
  if (stopwatch != nullptr) stopwatch->stop(stream);
  if (place_.replays == nullptr || !copies.empty()) return;  // a graph would not copy from the host again
  std::vector<void*> held = {workspace.get()};
  for (const auto* const tensors : {&inputs, &outputs}) {
    for (const DeviceTensor& tensor : *tensors) held.push_back(tensor.data);
  }
  place_.replays->add([this, inputs = std::move(inputs), outputs = std::move(outputs),
                       space = workspace.get()](void* on) { model_->enqueue(inputs, outputs, space, on); },
                      held);
}

// The model copies its inputs and outputs itself. It does not know the session's stream, which is waited for.
void FusedNode::run_through_host(OrtKernelContext* context) const {
  const runtime::CudaContext& gpu = place_.gpu->memory().context();
  const CudaDriver& driver = gpu.driver();
  gpu.make_current();
  gpu.check(driver.stream_synchronize(runtime_.get<void*>(api::kKernelContextGetGpuComputeStream, context)),
            "cuStreamSynchronize");
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Operand operand = input(context, i);
    Tensor& copy = inputs.emplace_back(model_->inputs()[i].dtype, std::move(operand.shape));
    if (copy.bytes() == 0) continue;
    if (operand.is_on_gpu) {
      gpu.check(driver.copy_out(copy.mutable_data(), reinterpret_cast<uint64_t>(operand.data), copy.bytes()),
                "cuMemcpyDtoH");
    } else {
      std::memcpy(copy.mutable_data(), operand.data, copy.bytes());
    }
  }
  const std::vector<Tensor> outputs = model_->run_in_order(inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto memory = reinterpret_cast<uint64_t>(output(context, i, outputs[i].shape()));
    gpu.make_current();
    if (outputs[i].bytes() > 0)
      gpu.check(driver.copy_in(memory, outputs[i].data(), outputs[i].bytes()), "cuMemcpyHtoD");
  }
}

}  // namespace heddle::ort
