#include "testing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "base/check.h"
#include "ir/reference/eval.h"
#include "ir/text/text.h"
#include "jit/cuda/nvrtc.h"
#include "runtime/cuda/launch.h"
#include "schedule/config/config_source.h"
#include "schedule/product/contraction.h"
#include "schedule/product/packing.h"
#include "tests/codegen/harness.h"
#include "tests/contraction/testing.h"
#include "tests/instances.h"
#include "tests/machine_code.h"

namespace heddle::testing {
namespace {

constexpr size_t kGuard = 256;
constexpr uint8_t kSentinel = 0xA5;

class Wanted : public schedule::ConfigSource {
 public:
  explicit Wanted(const CudaBatch::Options& options) : options_(options) {}
  std::optional<schedule::Config> choose(const schedule::Problem& problem, const Candidates& candidates) override {
    if (options_.family.empty() && !options_.split && options_.named.empty()) return std::nullopt;
    std::vector<schedule::Config> fitting;
    for (const schedule::Config& c : candidates()) {
      if (!options_.family.empty() && family_of(c) != options_.family) continue;
      const std::string name = name_of(c);
      const auto has = [&](std::string_view text) { return name.find(text) != std::string::npos; };
      if ((!options_.split || has(" splits=")) && has(options_.named)) fitting.push_back(c);
    }
    if (!fitting.empty()) return fitting[options_.skip % fitting.size()];
    ADD_FAILURE() << "no configuration of " << options_.family << (options_.split ? " split " : " ") << options_.named
                  << " for " << problem.text;
    return std::nullopt;
  }

 private:
  const CudaBatch::Options& options_;
};

Target target_of(const CudaBatch::Options& options) {
  Target target = Target::cuda_h200(1);
  target.cuda.sm = options.sm;
  if (options.only_wgmma) target.cuda.model.mma.tile_us = 1e3;
  if (options.sm == 80) target.cuda.shared_bytes_per_block = 163 << 10, target.cuda.sms = 108;
  return target;
}

void scale(Tensor& t, float factor) {
  auto* values = static_cast<float*>(t.mutable_data());
  std::for_each(values, values + element_count(t.shape()), [&](float& x) { x *= factor; });
}

size_t bytes_of(const Tensor& t) {
  return static_cast<size_t>(t.size()) * size_of(t.dtype());
}

void compare(const Tensor& got, const ir::Array& want, double tolerance, const std::string& name) {
  const ir::Array values = ir::to_array(got);
  if (!values.real()) {
    const auto [at, other] = std::mismatch(values.i().begin(), values.i().end(), want.i().begin(), want.i().end());
    EXPECT_TRUE(at == values.i().end() && other == want.i().end())
        << name << ": element " << at - values.i().begin() << " is " << *at << " instead of " << *other;
    return;
  }
  double magnitude = 1e-40;
  for (double x : want.f()) magnitude = std::isfinite(x) ? std::max(magnitude, std::fabs(x)) : magnitude;
  for (size_t i = 0; i < want.f().size(); ++i) {
    if (std::isnan(want.f()[i])) {
      ASSERT_TRUE(std::isnan(values.f()[i])) << name << ": element " << i << " is " << values.f()[i];
      continue;
    }
    if (std::isinf(want.f()[i])) {
      ASSERT_EQ(values.f()[i], want.f()[i]) << name;
      continue;
    }
    ASSERT_NEAR(values.f()[i], want.f()[i], tolerance * magnitude)
        << name << ": element " << i << " of " << want.f().size();
  }
}

// "contraction sm_90 wgmma f16": what sort of kernel it is, for which device and type.
std::string kind_of(const schedule::ScheduledGroup& group, const CudaBatch::Options& options) {
  const schedule::ScheduledKernel& first = group.kernels.at(0);
  const auto& operands = first.desc.operands;
  return fmt::format("{} sm_{} {} {}", ir::to_string(options.kind), options.sm, family_of(first.config),
                     operands.empty() ? "" : to_string(operands[0].dtype));
}

// "+ k_sum f32 f16 > f32 form 5f0c...": further kernels, all types, and the arguments of the templates but for numbers
// (the text, where it has no list of them).
std::string form_of(const schedule::ScheduledGroup& group, const std::vector<codegen::KernelSource>& sources) {
  std::string types, forms;
  for (size_t k = 0; k < sources.size(); ++k) {
    if (k > 0) types += fmt::format(" + {}", family_of(group.kernels[k].config));
    std::set<std::string> seen;
    for (const schedule::Operand& operand : group.kernels[k].desc.operands) {
      const bool is_result = operand.role == schedule::Operand::Role::kOutput;
      const std::string type = fmt::format(" {}{}", is_result ? "> " : "", to_string(operand.dtype));
      if (seen.insert(type).second) types += type;
    }
    std::string_view text = sources[k].text;
    if (const size_t begin = text.find("struct Config"); begin != std::string_view::npos) {
      text = text.substr(begin, text.find("};", begin) - begin);
    }
    forms += test::without_numbers(text, sources[k].symbol);
  }
  return fmt::format("{} form {:016x}", types, std::hash<std::string>()(forms));
}

std::string text_of(const std::vector<codegen::KernelSource>& sources) {
  std::string text;
  for (const codegen::KernelSource& source : sources) text += source.text;
  return text;
}

}  // namespace

// What one run needs of the device.
class CudaRun {
 public:
  const runtime::CudaContext& context;
  const runtime::CudaModule& module;
};

void CudaBatch::add(std::string name, const std::string& text, const Options& options) {
  add_graph(std::move(name), parse_with_random_weights(text, 5), options);
}

void CudaBatch::add_graph(std::string name, ir::Graph graph, const Options& options) {
  Case c{std::move(name), std::move(graph), options, {}, {}, "", "", true};
  const Target target = target_of(options);
  const ir::Group group = whole_graph(c.graph, options.kind);
  Wanted wanted(options);
  try {
    c.scheduled = schedule::schedule(c.graph, group, target, &wanted);
    for (const auto& kernel : c.scheduled.kernels) {
      c.sources.push_back(codegen::emit(schedule::plan_kernel(kernel, target), target));
      EXPECT_EQ(c.sources.back().text, codegen::emit(schedule::plan_kernel(kernel, target), target).text);
    }
  } catch (const Error& error) {
    ADD_FAILURE() << c.name << ": " << error.what();
    return;
  }
  c.kind = kind_of(c.scheduled, options);
  c.form = form_of(c.scheduled, c.sources);
  const bool is_first = kinds_.is_new(c.kind);
  const bool has_new_form = kinds_.is_new(c.kind + c.form);
  c.taken = is_first ||
            ((has_new_form || test::takes_instance(text_of(c.sources))) && test::draws_instance(text_of(c.sources)));
  cases_.push_back(std::move(c));
}

std::string CudaBatch::unit_of(const std::function<bool(const Case&)>& has) const {
  std::vector<const codegen::KernelSource*> kernels;
  for (const Case& c : cases_) {
    for (size_t k = 0; k < c.sources.size() && has(c); ++k) kernels.push_back(&c.sources[k]);
  }
  return codegen::translation_unit(kernels);
}

std::string CudaBatch::unit(int sm) const {
  return unit_of([&](const Case& c) { return sm == 0 || c.options.sm == sm; });
}

std::vector<std::string> CudaBatch::decisions() const {
  std::vector<std::string> result;
  for (const Case& c : cases_) {
    for (const auto& kernel : c.scheduled.kernels)
      result.push_back(std::string(family_of(kernel.config)) + ": " + kernel.label);
  }
  return result;
}

void CudaBatch::compile(Compiled which) const {
  const ::testing::ScopedTrace seed = test::trace_seed();
  try {
    jit::find_nvrtc();
  } catch (const Error&) {
    return;
  }
  test::Kinds kinds;
  for (const auto& [sm, architecture] : {std::pair{80, "sm_80"}, {90, "sm_90a"}}) {
    std::set<const Case*> compiled;
    for (const Case& c : cases_) {
      if (c.options.sm != sm) continue;
      const bool is_new = which == Compiled::kKinds && kinds.is_new(c.kind) && test::draws_instance(text_of(c.sources));
      if (is_new || test::takes_instance(text_of(c.sources), test::kOneOfNvrtc)) compiled.insert(&c);
    }
    if (compiled.empty()) continue;
    for (const Case* c : compiled) test::note_kind("nvrtc " + c->kind + c->form);
    try {
      const std::string unit = unit_of([&](const Case& c) { return compiled.count(&c) > 0; });
      EXPECT_EQ(test::find_wrong_loads(jit::compile_cubin(unit, architecture, false).bytes), "");
    } catch (const Error& error) {
      ADD_FAILURE() << architecture << ": " << error.what();
    }
  }
}

void CudaBatch::run() {
  const ::testing::ScopedTrace seed = test::trace_seed();
  ::setenv("HEDDLE_CUDA_DRIVER", HEDDLE_EMULATOR, 0);
  const runtime::CudaContext context(0);
  std::string cubin;
  try {
    cubin = jit::compile_cubin(unit_of([](const Case& c) { return c.taken; }), context.device().target.architecture(),
                               false)
                .bytes;
  } catch (const Error& error) {
    FAIL() << error.what();
  }
  const runtime::CudaModule module(context, cubin);
  const CudaRun device{context, module};
  for (const Case& c : cases_) {
    if (!c.taken) continue;
    test::note_kind("emulated " + c.kind + c.form);
    SCOPED_TRACE(c.name + " " + (c.scheduled.notes.empty() ? "" : c.scheduled.notes[0]));
    try {
      run(c, device);
    } catch (const Error& error) {
      ADD_FAILURE() << error.what() << (c.sources.empty() ? "" : c.sources[0].text);
    }
  }
}

void CudaBatch::run(const Case& c, const CudaRun& device) const {
  const ir::Graph& graph = c.graph;
  const ir::Group group = whole_graph(graph, c.options.kind);
  std::mt19937 random(17);
  std::map<ir::ValueId, Tensor> values;
  std::vector<ir::Array> inputs;
  for (const auto& port : graph.inputs()) {
    values[port.value] = random_tensor(graph.type(port.value), random);
    if (inputs.size() < c.options.factors.size()) scale(values[port.value], c.options.factors[inputs.size()]);
    inputs.push_back(ir::to_array(values[port.value]));
  }
  std::map<ir::ValueId, std::unique_ptr<runtime::CudaBuffer>> results;
  for (ir::ValueId v : group.outputs) {
    const size_t bytes = static_cast<size_t>(element_count(graph.shape(v))) * size_of(graph.dtype(v));
    results[v] = std::make_unique<runtime::CudaBuffer>(device.context, bytes + 2 * kGuard);
    const std::vector<uint8_t> fill(bytes + 2 * kGuard, kSentinel);
    results[v]->write(fill.data(), fill.size());
  }
  std::vector<std::unique_ptr<runtime::CudaBuffer>> workspaces;
  for (const auto& w : c.scheduled.workspaces) {
    workspaces.push_back(std::make_unique<runtime::CudaBuffer>(device.context, static_cast<size_t>(w.bytes)));
  }
  for (size_t k = 0; k < c.scheduled.kernels.size(); ++k) {
    const auto& kernel = c.scheduled.kernels[k];
    std::vector<std::unique_ptr<runtime::CudaBuffer>> buffers;
    std::vector<uint64_t> operands;
    for (size_t i = 0; i < kernel.bindings.size(); ++i) {
      const auto& binding = kernel.bindings[i];
      if (binding.kind == schedule::Binding::Kind::kWorkspace) {
        operands.push_back(workspaces[binding.workspace]->address());
      } else if (results.count(binding.value)) {
        operands.push_back(results[binding.value]->address() + kGuard);
      } else {
        const Tensor* constant = graph.constant_of(binding.value);
        const Tensor tensor =
            constant ? schedule::pack_constant(*constant, kernel.desc.operands[i].packing) : values[binding.value];
        // memcheck and initcheck take a cp.async of fewer bytes for one of 16.
        const size_t bytes = bytes_of(tensor), whole = device.context.device().target.emulated ? 1 : 16;
        std::vector<uint8_t> padded((std::max<size_t>(bytes, 1) + whole - 1) / whole * whole);
        std::copy_n(static_cast<const uint8_t*>(tensor.data()), bytes, padded.begin());
        buffers.push_back(std::make_unique<runtime::CudaBuffer>(device.context, padded.size()));
        buffers.back()->write(padded.data(), padded.size());
        operands.push_back(buffers.back()->address());
      }
    }
    const codegen::KernelSource& source = c.sources[k];
    const auto extra = [&](int64_t bytes) {
      buffers.push_back(
          std::make_unique<runtime::CudaBuffer>(device.context, static_cast<size_t>(std::max<int64_t>(bytes, 16))));
      operands.push_back(buffers.back()->address());
    };
    extra(source.workspace_bytes);
    extra(source.counter_bytes);
    const std::vector<uint8_t> zeros(buffers.back()->size());
    buffers.back()->write(zeros.data(), zeros.size());
    const runtime::CudaSequence sequence(device.context, device.module, source.launches, operands);
    sequence.enqueue();
    device.context.synchronize();
  }
  const std::vector<ir::Array> wanted = ir::evaluate(graph, std::move(inputs));
  for (size_t i = 0; i < wanted.size(); ++i) {
    const ir::ValueId v = graph.outputs()[i].value;
    std::vector<uint8_t> bytes(results[v]->size());
    results[v]->read(bytes.data(), bytes.size());
    const auto intact = [](uint8_t byte) { return byte == kSentinel; };
    EXPECT_TRUE(std::all_of(bytes.begin(), bytes.begin() + kGuard, intact)) << "before the result";
    EXPECT_TRUE(std::all_of(bytes.end() - kGuard, bytes.end(), intact)) << "behind the result";
    if (bytes.size() == 2 * kGuard) continue;
    compare(Tensor::borrow(graph.dtype(v), graph.shape(v), bytes.data() + kGuard, nullptr), wanted[i],
            c.options.tolerance, c.name);
  }
}

std::string matmul_text(const std::string& type, int64_t m, int64_t n, int64_t k, const std::string& out,
                        bool a_along_k, bool b_along_k, bool constant) {
  const std::string result = fmt::format("{}[{},{}]", out.empty() ? type : out, m, n);
  const std::string a = a_along_k ? fmt::format("{}[{},{}]", type, m, k) : fmt::format("{}[{},{}]", type, k, m);
  const std::string b = b_along_k ? fmt::format("{}[{},{}]", type, n, k) : fmt::format("{}[{},{}]", type, k, n);
  return fmt::format(
      "graph g(%x: {}{}) {{\n{}  %0 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [{}], "
      "rhs_contract = [{}]{}}} : {}\n  return \"y\" = %0\n}}",
      a, constant ? "" : ", %w: " + b, constant ? fmt::format("  %w = constant {{value = {}{{1}}}}\n", b) : "",
      a_along_k ? 1 : 0, b_along_k ? 1 : 0, out.empty() || out == "i32" ? "" : ", out = " + out, result);
}

std::string conv_text(const std::string& x, const std::string& w, const std::string& attrs, const std::string& y) {
  return "graph g(%x: " + x + ") {\n  %w = constant {value = " + w + "{1}}\n  %0 = conv(%x, %w) {" + attrs +
         ", layout = \"nhwc\"} : " + y + "\n  %1 = abs(%0) : " + y + "\n  return \"y\" = %1\n}";
}

}  // namespace heddle::testing
