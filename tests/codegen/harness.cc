#include "harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>

#include "ir/reference/eval.h"
#include "ir/text/text.h"
#include "jit/compiler.h"
#include "tests/instances.h"

namespace heddle::testing {

ir::Group whole_graph(const ir::Graph& graph, ir::GroupKind kind) {
  ir::Group group{kind, {}, 0, {}, {}};
  const auto append_new = [](std::vector<ir::ValueId>& list, ir::ValueId value) {
    if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
  };
  const auto is_source = [](ir::Op op) { return op == ir::Op::kParameter || op == ir::Op::kConstant; };
  for (ir::NodeId id = 0; id < graph.nodes().size(); ++id) {
    const ir::Node& node = graph.node(id);
    if (is_source(node.op)) continue;
    group.nodes.push_back(id);
    const ir::OpClass op_class = ir::class_of(node.op);
    const bool is_anchor = op_class == ir::OpClass::kContraction || op_class == ir::OpClass::kWindow;
    if (kind != ir::GroupKind::kStitch && is_anchor) group.anchor = id;
    for (ir::ValueId input : node.inputs) {
      if (is_source(graph.producer(input).op)) append_new(group.inputs, input);
    }
  }
  for (const auto& port : graph.outputs()) append_new(group.outputs, port.value);
  return group;
}

Machine& machine() {
  static Machine one = {[](int threads) {
                          Target target = Target::host_cpu(threads);
                          target.cpu.barrier_us = 1.5;
                          return target;
                        },
                        compile_for_cpu};
  return one;
}

ir::ValueId input(ir::Builder& b, const std::string& name, DType dtype, Shape shape) {
  return b.graph().parameter(name, {dtype, std::move(shape)});
}

Target test_target(int threads) {
  return machine().target(threads);
}

constexpr size_t kGuard = 256;
constexpr unsigned char kSentinel = 0xa5;

Guarded::Guarded(int64_t bytes, size_t alignment)
    : bytes_(static_cast<size_t>(bytes) + 2 * kGuard + alignment, kSentinel), size_(bytes) {
  const auto start = reinterpret_cast<uintptr_t>(bytes_.data());
  begin_ = ((start + kGuard + alignment - 1) & ~(alignment - 1)) - start;
}

bool Guarded::intact() const {
  const auto is_sentinel = [](unsigned char byte) { return byte == kSentinel; };
  return std::all_of(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(begin_), is_sentinel) &&
         std::all_of(bytes_.begin() + static_cast<ptrdiff_t>(begin_) + size_, bytes_.end(), is_sentinel);
}

void Batch::add(std::string name, const std::function<void(ir::Builder&)>& build, double tolerance,
                int64_t index_limit) {
  ir::Graph graph;
  ir::Builder builder(graph);
  build(builder);
  cases_.push_back({std::move(name), std::move(graph), tolerance, index_limit});
}

void Batch::add_text(std::string name, const std::string& text, double tolerance, int64_t index_limit) {
  cases_.push_back({std::move(name), ir::parse(text), tolerance, index_limit});
}

namespace {

ir::Array random_array(const ir::TensorType& type, std::mt19937& random, int64_t index_limit) {
  ir::Array a(type.dtype, type.shape);
  if (a.real()) {
    std::uniform_real_distribution<double> value(-2, 2);
    for (double& x : a.f()) x = round_to(type.dtype, value(random));
  } else {
    const bool is_unsigned = is_unsigned_int(type.dtype);
    int64_t lo = is_unsigned ? 0 : -4, hi = 4;
    if (index_limit > 0) lo = is_unsigned ? 0 : -index_limit, hi = index_limit - 1;
    if (bits_of(type.dtype) == 2) lo = std::max<int64_t>(lo, -2), hi = 1;
    if (type.dtype == DType::kBool) lo = 0, hi = 1;
    std::uniform_int_distribution<int64_t> value(lo, hi);
    for (int64_t& x : a.i()) x = value(random);
  }
  return a;
}

double default_tolerance(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 1e-12;
    case DType::kF32:
      return 2e-5;
    case DType::kF16:
      return 2e-3;
    case DType::kBF16:
      return 2e-2;
    default:
      return is_float(dtype) ? 0.26 : 0;
  }
}

struct Prepared {
  const Batch::Case* test;
  schedule::ScheduledGroup group;
  std::vector<codegen::KernelSource> sources;
};

std::string texts(const Prepared& p) {
  std::string all = ir::print(p.test->graph);
  for (const std::string& note : p.group.notes) all += note + "\n";
  for (size_t i = 0; i < p.sources.size(); ++i) {
    all += p.group.kernels[i].label + ": " + p.group.kernels[i].config.reason + "\n" + p.sources[i].text;
  }
  return all;
}

void compare(const Prepared& p, const std::string& name, const ir::Array& want, const ir::Array& got) {
  double tolerance = p.test->tolerance > 0 ? p.test->tolerance : default_tolerance(want.dtype);
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < want.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    bool good = false;
    if (want.real()) {
      const double a = round_to(want.dtype, want.f()[at]), b = got.f()[at];
      good = (std::isnan(a) && std::isnan(b)) || a == b || std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(a));
    } else {
      good = want.i()[at] == got.i()[at];
    }
    if (good) continue;
    if (first < 0) first = i;
    ++wrong;
  }
  if (wrong == 0) return;
  const auto show = [&](const ir::Array& a) {
    return a.real() ? std::to_string(a.f()[static_cast<size_t>(first)])
                    : std::to_string(a.i()[static_cast<size_t>(first)]);
  };
  ADD_FAILURE() << p.test->name << " " << name << ": " << wrong << " of " << want.size()
                << " elements differ, first at " << first << ": " << show(got) << " instead of " << show(want) << "\n"
                << texts(p);
}

void run_case(const Prepared& p, const RunKernels& run) {
  const ir::Graph& graph = p.test->graph;
  std::mt19937 random(static_cast<unsigned>(std::hash<std::string>{}(p.test->name)));
  Memory memory;
  std::vector<ir::Array> inputs;
  const auto place = [&](ir::ValueId v, const Tensor& tensor) {
    memory.values[v] = std::make_unique<Guarded>(static_cast<int64_t>(tensor.bytes()));
    if (tensor.bytes() > 0) std::memcpy(memory.values[v]->data(), tensor.data(), tensor.bytes());
  };
  for (const auto& port : graph.inputs()) {
    inputs.push_back(random_array(graph.type(port.value), random, p.test->index_limit));
    place(port.value, ir::to_tensor(inputs.back()));
  }
  for (const ir::Node& node : graph.nodes()) {
    if (node.op == ir::Op::kConstant) place(node.outputs[0], node.attrs.tensor("value"));
  }
  for (const auto& port : graph.outputs()) {
    const Tensor shape(graph.dtype(port.value), graph.shape(port.value));
    if (memory.values.count(port.value) == 0)
      memory.values[port.value] = std::make_unique<Guarded>(static_cast<int64_t>(shape.bytes()));
  }
  for (const auto& w : p.group.workspaces) memory.workspaces.push_back(std::make_unique<Guarded>(w.bytes));
  try {
    run(p.group, p.sources, p.test->name, memory);
  } catch (const std::exception& error) {
    ADD_FAILURE() << p.test->name << ": " << error.what() << "\n" << texts(p);
    return;
  }
  for (auto& [id, values] : memory.values)
    EXPECT_TRUE(values->intact()) << p.test->name << " overran a buffer\n" << texts(p);
  for (auto& w : memory.workspaces) EXPECT_TRUE(w->intact()) << p.test->name << " overran a workspace\n" << texts(p);
  const std::vector<ir::Array> want = ir::evaluate(graph, inputs);
  for (size_t i = 0; i < want.size(); ++i) {
    const auto& port = graph.outputs()[i];
    Tensor tensor(graph.dtype(port.value), graph.shape(port.value));
    if (tensor.bytes() > 0) std::memcpy(tensor.mutable_data(), memory.values.at(port.value)->data(), tensor.bytes());
    compare(p, port.name, want[i], ir::to_array(tensor));
  }
}

}  // namespace

// Micro-kernels that all libraries may have are units of their own, as in a model: most cases find their objects in the
// cache.
std::shared_ptr<const jit::Library> compile_library(const std::vector<const codegen::KernelSource*>& kernels,
                                                    const Target& target) {
  std::map<std::string, std::string> shared;  // by symbol
  std::vector<const codegen::KernelText*> own;
  for (const codegen::KernelSource* kernel : kernels) {
    own.push_back(kernel);
    for (const codegen::KernelText& other : kernel->others) {
      if (other.declaration.empty()) {
        own.push_back(&other);
      } else {
        shared.emplace(other.symbol, codegen::join_texts({&other}));
      }
    }
  }
  jit::Recipe recipe{jit::compile_flags(target.cpu)};
  recipe.shared = shared.size();
  std::vector<std::string> units;
  for (auto& [symbol, text] : shared) units.push_back(std::move(text));
  units.push_back(codegen::join_texts(own));
  return jit::Library::load(jit::compile(units, std::move(recipe), 1, true).bytes);
}

RunKernels compile_for_cpu(const std::vector<const codegen::KernelSource*>& kernels, const Target& target) {
  const std::shared_ptr<const jit::Library> library = compile_library(kernels, target);
  const int threads = target.cpu.threads;
  return [library, threads](const schedule::ScheduledGroup& group, const std::vector<codegen::KernelSource>& sources,
                            const std::string& name, Memory& memory) {
    for (size_t k = 0; k < group.kernels.size(); ++k) {
      const codegen::KernelSource& source = sources[k];
      std::vector<void*> operands;
      for (const auto& b : group.kernels[k].bindings) {
        const bool is_value = b.kind == schedule::Binding::Kind::kValue;
        operands.push_back(is_value ? memory.values.at(b.value)->data() : memory.workspaces[b.workspace]->data());
      }
      Guarded scratch(source.scratch_bytes, 64);
      const jit::Kernel entry = library->find(source.symbol);
      const int64_t middle = threads > 1 ? source.tasks / 2 : 0;
      if (middle > 0) entry(operands.data(), scratch.data(), 0, middle);
      entry(operands.data(), scratch.data(), middle, source.tasks);
      EXPECT_TRUE(scratch.intact()) << name << " overran its scratch\n" << source.text;
    }
  };
}

void Batch::run() {
  const ::testing::ScopedTrace seed = test::trace_seed();
  std::vector<Prepared> prepared;
  std::vector<const codegen::KernelSource*> all;
  for (const Case& one : cases_) {
    Prepared p{&one, {}, {}};
    try {
      p.group = schedule::schedule(one.graph, whole_graph(one.graph), target_, nullptr, options_);
      for (const auto& kernel : p.group.kernels)
        p.sources.push_back(codegen::emit(schedule::plan_kernel(kernel, target_), target_));
    } catch (const std::exception& error) {
      ADD_FAILURE() << one.name << ": " << error.what() << "\n" << ir::print(one.graph);
      continue;
    }
    const bool is_first = &one == cases_.data();
    if (is_first || test::draws_instance(one.name, machine().one_of)) prepared.push_back(std::move(p));
  }
  for (const Prepared& p : prepared) {
    for (const auto& source : p.sources) all.push_back(&source);
  }
  if (all.empty()) return;
  RunKernels run;
  try {
    run = machine().compile(all, target_);
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
    return;
  }
  for (const Prepared& p : prepared) run_case(p, run);
}

}  // namespace heddle::testing
