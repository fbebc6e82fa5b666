#include "driver/report/inspect.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/check.h"
#include "base/file/file.h"
#include "driver/compile/compile.h"
#include "driver/shapes/import.h"
#include "driver/shapes/onnx_text.h"
#include "driver/tune/measure.h"
#include "frontend/onnx/op_registry.h"
#include "frontend/onnx/reader/tensor_data.h"
#include "runtime/executor.h"
#include "runtime/plan_io.h"

namespace heddle::driver {
namespace {

// What one tensor of weights adds.
void count_parameter(const onnx::TensorProto& tensor, ModelSummary& summary) {
  int64_t count = 1;
  for (const int64_t extent : tensor.dims) {
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) return;  // refused when it is loaded
  }
  int64_t bits = 0;
  try {
    bits = bits_of(onnx::dtype_of(tensor.data_type, std::string(tensor.name)));
  } catch (const Error&) {  // told where the model is compiled
  }
  int64_t bytes = 0;
  if (__builtin_mul_overflow(count, bits, &bytes)) return;
  bytes = (bytes + 7) / 8;
  summary.parameters += count;
  summary.parameter_bytes += bytes;
  ++summary.parameter_tensors;
  if (tensor.external) summary.external_bytes += bytes;
}

void count_nodes(const std::vector<onnx::NodeProto>& nodes, ModelSummary& summary);

void count_graph(const onnx::GraphProto& graph, ModelSummary& summary) {
  for (const onnx::TensorProto& tensor : graph.initializers) count_parameter(tensor, summary);
  for (const onnx::SparseTensorProto& tensor : graph.sparse_initializers) count_parameter(tensor.values, summary);
  count_nodes(graph.nodes, summary);
}

void count_nodes(const std::vector<onnx::NodeProto>& nodes, ModelSummary& summary) {
  for (const onnx::NodeProto& node : nodes) {
    ++summary.nodes;
    ++summary.operators[operator_name(node)];
    for (const onnx::AttributeProto& attribute : node.attributes) {
      if (attribute.g) count_graph(*attribute.g, summary);
      if (attribute.t && node.op_type == "Constant") count_parameter(*attribute.t, summary);
    }
  }
}

DeclaredPort declared(const onnx::ValueInfoProto& value) {
  DeclaredPort port{std::string(value.name), type_text(value.type), {}};
  if (value.type.kind == onnx::TypeProto::Kind::kTensor && value.type.shape) {
    port.extents.emplace();
    for (const onnx::Dimension& dimension : *value.type.shape) port.extents->push_back(extent_text(dimension));
  }
  return port;
}

// Models of IR version 3 list all of their weights as inputs with a default.
void declare_inputs(const onnx::GraphProto& graph, ModelSummary& summary) {
  std::set<std::string_view> initialised;
  for (const onnx::TensorProto& tensor : graph.initializers) initialised.insert(tensor.name);
  for (const onnx::SparseTensorProto& tensor : graph.sparse_initializers) initialised.insert(tensor.values.name);
  for (const onnx::ValueInfoProto& input : graph.inputs) {
    (initialised.contains(input.name) ? summary.optional_inputs : summary.inputs).push_back(declared(input));
  }
}

// What shows without importing: the versions and the types of inputs. Operators are found by the importer.
void find_unsupported(const onnx::ModelProto& model, ModelSummary& summary) {
  for (const auto& [domain, version] : summary.opsets) {
    if (domain != "ai.onnx" || (version >= onnx::kOldestOpset && version <= onnx::kNewestOpset)) continue;
    summary.unsupported.push_back(fmt::format("operator set {} of ai.onnx; Heddle knows {} to {}", version,
                                              onnx::kOldestOpset, onnx::kNewestOpset));
  }
  for (const onnx::ValueInfoProto& input : model.graph.inputs) {
    using Kind = onnx::TypeProto::Kind;
    const std::string type = type_text(input.type);
    const bool foreign = input.type.kind == Kind::kMap || input.type.kind == Kind::kSparse || type.starts_with("type ");
    if (foreign) summary.unsupported.push_back(fmt::format("the type {} of input {}", type, input.name));
  }
}

void summarise_onnx(const std::string& path, ModelSummary& summary) {
  summary.format = "ONNX";
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  const onnx::ModelProto model = onnx::parse_model(file->text(), file, path);
  summary.ir_version = model.ir_version;
  for (const onnx::OperatorSet& set : model.opset_imports) {
    summary.opsets.emplace_back(set.domain.empty() ? "ai.onnx" : std::string(set.domain), set.version);
  }
  declare_inputs(model.graph, summary);
  for (const onnx::ValueInfoProto& output : model.graph.outputs) summary.outputs.push_back(declared(output));
  count_graph(model.graph, summary);
  for (const onnx::FunctionProto& function : model.functions) count_nodes(function.nodes, summary);
  find_unsupported(model, summary);
}

DeclaredPort fixed_port(const std::string& name, DType dtype, const Shape& shape) {
  DeclaredPort port{name, fmt::format("{}{}", to_string(dtype), to_string(shape)), std::vector<std::string>()};
  for (const int64_t extent : shape) port.extents->push_back(fmt::format("{}", extent));
  return port;
}

void summarise_ir(const std::string& path, const CompileOptions& options, ModelSummary& summary) {
  summary.format = "textual IR";
  const ir::Graph graph = import_file(path, options).graph;
  const auto port = [&](const ir::Graph::Port& p) {
    const ir::TensorType& type = graph.type(p.value);
    return fixed_port(p.name, type.dtype, type.shape);
  };
  for (const ir::Graph::Port& input : graph.inputs()) summary.inputs.push_back(port(input));
  for (const ir::Graph::Port& output : graph.outputs()) summary.outputs.push_back(port(output));
  for (const ir::Node& node : graph.nodes()) {
    if (node.op == ir::Op::kParameter) continue;
    ++summary.nodes;
    ++summary.operators[std::string(to_string(node.op))];
    if (node.op != ir::Op::kConstant) continue;
    const Tensor value = node.attrs.tensor("value");
    ++summary.parameter_tensors;
    summary.parameters += value.size();
    summary.parameter_bytes += static_cast<int64_t>(value.bytes());
  }
}

int64_t bytes_of(const std::vector<PortInfo>& ports) {
  int64_t bytes = 0;
  for (const PortInfo& port : ports) bytes += element_count(port.shape) * static_cast<int64_t>(size_of(port.dtype));
  return bytes;
}

RunEstimate estimate_of(const runtime::Plan& plan, int threads) {
  RunEstimate estimate;
  for (const runtime::Port& port : plan.inputs) estimate.inputs.push_back({port.name, port.dtype, port.shape, ""});
  for (const runtime::Port& port : plan.outputs) estimate.outputs.push_back({port.name, port.dtype, port.shape, ""});
  estimate.constant_bytes = runtime::constant_bytes(plan);
  estimate.arena_bytes = plan.arena_bytes;
  estimate.port_bytes = bytes_of(estimate.inputs) + bytes_of(estimate.outputs);
  estimate.kernels = kernel_count(plan);
  estimate.floor_seconds = floor_seconds(plan) / (runtime::runs_on_gpu(plan) ? 1 : threads);
  estimate.target = plan.target;
  return estimate;
}

void summarise_plan(const std::string& path, int threads, ModelSummary& summary) {
  summary.format = "plan";
  const std::shared_ptr<const runtime::Plan> plan = runtime::read_plan(path, threads);
  summary.estimate = estimate_of(*plan, threads);
  for (const PortInfo& p : summary.estimate->inputs) summary.inputs.push_back(fixed_port(p.name, p.dtype, p.shape));
  for (const PortInfo& p : summary.estimate->outputs) summary.outputs.push_back(fixed_port(p.name, p.dtype, p.shape));
  for (const runtime::Text& text : plan->text_inputs) {
    summary.inputs.push_back(fixed_port(text.name, DType::kString, text.value.shape()));
    summary.remarks.push_back(fmt::format("the plan holds for one text of input {} only", text.name));
  }
  for (const runtime::DefaultInput& input : plan->defaults) {
    const bool given = std::any_of(plan->inputs.begin(), plan->inputs.end(),
                                   [&](const runtime::Port& port) { return port.name == input.name; });
    if (!given) summary.remarks.push_back(fmt::format("the plan holds for the default of input {} only", input.name));
  }
  for (const runtime::FixedInput& fixed : plan->fixed) {
    summary.remarks.push_back(
        fmt::format("the plan holds for one value of input {} only", plan->inputs[fixed.input].name));
  }
}

}  // namespace

ModelSummary inspect_model(const std::string& path, const CompileOptions& options) {
  const Settings settings = resolve(options);
  const int threads = settings.target.cpu.threads;
  ModelSummary summary;
  summary.path = path;
  summary.file_bytes = MappedFile::open(path)->size();
  if (runtime::is_plan_file(path)) {
    summarise_plan(path, threads, summary);
    return summary;
  }
  if (is_ir_file(path)) {
    summarise_ir(path, options, summary);
  } else {
    summarise_onnx(path, summary);
  }
  try {
    const CompiledModel compiled = compile_model(path, options, false, false);
    summary.estimate = estimate_of(*compiled.plan, threads);
    summary.remarks = compiled.report.remarks;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal || error.code() == ErrorCode::kInvalidArgument) throw;
    if (exit_code(error.code()) == exit_code(ErrorCode::kUnsupportedOperator) &&
        error.code() != ErrorCode::kUnknownShape) {
      summary.unsupported.push_back(error.why());
    }
    summary.no_estimate = error.what();
    summary.exit_code = exit_code(error.code());
  }
  return summary;
}

}  // namespace heddle::driver
