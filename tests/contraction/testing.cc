#include "testing.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>

#include "base/check.h"
#include "codegen/codegen.h"
#include "ir/reference/eval.h"
#include "ir/rewrite.h"
#include "ir/text/text.h"
#include "jit/library.h"
#include "schedule/config/config_source.h"
#include "schedule/product/packing.h"
#include "tests/codegen/harness.h"
#include "tests/instances.h"

namespace heddle::testing {
Tensor random_tensor(const ir::TensorType& type, std::mt19937& random) {
  ir::Array array(type.dtype, type.shape);
  if (array.real()) {
    for (double& x : array.f()) x = static_cast<double>(random()) / 2147483648.0 - 1.0;
  } else {
    const bool flags = type.dtype == DType::kBool;
    for (int64_t& x : array.i()) {
      x = flags ? static_cast<int64_t>(random() % 2) : ir::wrap(type.dtype, static_cast<int64_t>(random() % 200) - 100);
    }
  }
  return ir::to_tensor(array);
}

Tensor random_numbers(DType dtype, Shape shape, double low, double high, std::mt19937& random) {
  ir::Array array(dtype, std::move(shape));
  std::uniform_real_distribution<double> next(low, high);
  if (array.real()) {
    for (double& x : array.f()) x = next(random);
  } else {
    for (int64_t& x : array.i()) x = static_cast<int64_t>(next(random));
  }
  return ir::to_tensor(array);
}

namespace {

// The n-th of the candidates.
class Chooser : public schedule::ConfigSource {
 public:
  explicit Chooser(unsigned n) : n_(n) {}
  std::optional<schedule::Config> choose(const schedule::Problem&, const Candidates& candidates) override {
    if (n_ == 0) return std::nullopt;
    const std::vector<schedule::Config> all = candidates();
    return all[n_ % all.size()];
  }

 private:
  const unsigned n_;
};

std::vector<const codegen::KernelSource*> pointers_to(const std::vector<codegen::KernelSource>& sources) {
  std::vector<const codegen::KernelSource*> kernels;
  for (const auto& source : sources) kernels.push_back(&source);
  return kernels;
}

// Compiling takes most of the time of a test: of the graphs that a test checks, the first of each instruction set and
// type runs, and some of the others, which each run draws.
bool is_taken(const schedule::ScheduledGroup& group, const std::vector<codegen::KernelSource>& sources,
              const Target& target, const RunOptions& options) {
  static test::Kinds kinds;
  std::string kind = fmt::format("{} {} {}", ::testing::UnitTest::GetInstance()->current_test_info()->name(),
                                 static_cast<int>(target.cpu.isa), options.matrices);
  for (const auto& kernel : group.kernels) {
    if (!kernel.desc.operands.empty()) kind += fmt::format(" {}", to_string(kernel.desc.operands[0].dtype));
  }
  std::string text = kind;
  for (const codegen::KernelSource& source : sources) text += source.text;
  return kinds.is_new(kind) || test::draws_instance(text);
}

void compare(const Tensor& got, const ir::Array& want, double tolerance) {
  const ir::Array values = ir::to_array(got);
  if (!values.real()) {
    EXPECT_EQ(values.i(), want.i());
    return;
  }
  double magnitude = 1e-30;
  for (double x : want.f()) magnitude = std::isfinite(x) ? std::max(magnitude, std::fabs(x)) : magnitude;
  for (size_t i = 0; i < want.f().size(); ++i) {
    if (std::isnan(want.f()[i])) {
      ASSERT_TRUE(std::isnan(values.f()[i])) << "element " << i << " is " << values.f()[i];
      continue;
    }
    if (std::isinf(want.f()[i])) {
      ASSERT_EQ(values.f()[i], want.f()[i]);
      continue;
    }
    ASSERT_NEAR(values.f()[i], want.f()[i], tolerance * magnitude) << "element " << i << " of " << want.f().size();
  }
}

}  // namespace

ir::Graph parse_with_random_weights(const std::string& text, unsigned seed) {
  const ir::Graph parsed = ir::parse(text);
  std::mt19937 random(seed);
  ir::Graph graph;
  std::vector<ir::ValueId> map(parsed.value_count());
  for (const ir::Node& node : parsed.nodes()) {
    std::vector<ir::ValueId> inputs;
    for (ir::ValueId v : node.inputs) inputs.push_back(map[v]);
    ir::Attrs attrs = node.attrs;
    if (node.op == ir::Op::kConstant && node.attrs.tensor("value").size() > 1) {
      attrs.set("value", random_tensor(parsed.type(node.outputs[0]), random));
    }
    const ir::NodeId id = node.op == ir::Op::kParameter
                              ? graph.value(graph.parameter(attrs.text("name"), parsed.type(node.outputs[0]))).producer
                              : graph.add(node.op, inputs, attrs);
    for (size_t i = 0; i < node.outputs.size(); ++i) map[node.outputs[i]] = graph.node(id).outputs[i];
  }
  for (const auto& port : parsed.outputs()) graph.output(port.name, map[port.value]);
  return graph;
}

void check_graph(const ir::Graph& graph, double tolerance, const RunOptions& options) {
  Target target = Target::host_cpu(options.threads);
  if (target.cpu.isa > options.isa) target.cpu.isa = options.isa;
  // Below AVX-512, kernels are compiled without the instructions for words and matrices.
  target.cpu.amx = target.cpu.isa == CpuIsa::kAvx512 ? target.cpu.amx : options.matrices;
  if (options.matrices) target.cpu.avx512_bf16 = target.cpu.avx512_vnni = true;
  const ir::Group group = whole_graph(graph, options.kind);
  Chooser chooser(options.choice);
  const schedule::ScheduledGroup scheduled = schedule::schedule(graph, group, target, &chooser);
  std::vector<codegen::KernelSource> sources;
  for (const auto& kernel : scheduled.kernels) {
    const schedule::KernelPlan plan = schedule::plan_kernel(kernel, target);
    sources.push_back(codegen::emit(plan, target));
    ASSERT_EQ(sources.back().text, codegen::emit(plan, target).text);
    ASSERT_EQ(sources.back().tasks, kernel.config.tasks) << sources.back().text;
  }
  if (!is_taken(scheduled, sources, target, options)) return;
  const ::testing::ScopedTrace seed = test::trace_seed();
  SCOPED_TRACE(codegen::translation_unit(pointers_to(sources)));
  std::shared_ptr<const jit::Library> library;
  if (!sources.empty()) library = compile_library(pointers_to(sources), target);

  std::mt19937 random(17);
  std::map<ir::ValueId, Tensor> values;
  std::vector<ir::Array> inputs;
  for (const auto& port : graph.inputs()) {
    values[port.value] = random_tensor(graph.type(port.value), random);
    inputs.push_back(ir::to_array(values[port.value]));
  }
  std::map<ir::ValueId, std::unique_ptr<Guarded>> results;
  for (ir::ValueId v : group.outputs) {
    results[v] =
        std::make_unique<Guarded>(element_count(graph.shape(v)) * static_cast<int64_t>(size_of(graph.dtype(v))), 64);
  }
  std::vector<std::unique_ptr<Guarded>> workspaces;
  for (const auto& w : scheduled.workspaces) {
    workspaces.push_back(std::make_unique<Guarded>(w.bytes, 64));
  }
  for (size_t k = 0; k < scheduled.kernels.size(); ++k) {
    const auto& kernel = scheduled.kernels[k];
    std::vector<Tensor> packed(kernel.bindings.size());
    std::vector<void*> operands;
    for (size_t i = 0; i < kernel.bindings.size(); ++i) {
      const auto& binding = kernel.bindings[i];
      if (binding.kind == schedule::Binding::Kind::kWorkspace) {
        operands.push_back(workspaces[binding.workspace]->data());
      } else if (results.count(binding.value)) {
        operands.push_back(results[binding.value]->data());
      } else {
        const Tensor* constant = graph.constant_of(binding.value);
        packed[i] =
            constant ? schedule::pack_constant(*constant, kernel.desc.operands[i].packing) : values[binding.value];
        operands.push_back(packed[i].mutable_data());
      }
    }
    const jit::Kernel run = library->find(sources[k].symbol);
    for (int piece = 0; piece < options.pieces; ++piece) {
      Guarded scratch(sources[k].scratch_bytes, 64);
      run(operands.data(), scratch.data(), sources[k].tasks * piece / options.pieces,
          sources[k].tasks * (piece + 1) / options.pieces);
      EXPECT_TRUE(scratch.intact());
    }
  }
  const std::vector<ir::Array> wanted = ir::evaluate(graph, std::move(inputs));
  for (size_t i = 0; i < wanted.size(); ++i) {
    const ir::ValueId v = graph.outputs()[i].value;
    EXPECT_TRUE(results[v]->intact());
    if (results[v]->size() == 0) continue;
    const Tensor got = Tensor::borrow(graph.dtype(v), graph.shape(v), results[v]->data(), nullptr);
    compare(got, wanted[i], tolerance);
  }
}

std::vector<std::string> decisions(const ir::Graph& graph, const Target& target) {
  std::vector<std::string> result;
  for (const auto& kernel :
       schedule::schedule(graph, whole_graph(graph, ir::GroupKind::kContraction), target).kernels) {
    result.push_back(std::string(schedule::family_of(kernel.config)) + ": " + kernel.label);
  }
  return result;
}

int setting(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

}  // namespace heddle::testing
