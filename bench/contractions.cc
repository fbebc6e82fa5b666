// Times contraction kernels as the compiler makes them (bias and ReLU in the epilogue) on one thread, in CPU time of
// that thread: GFLOP/s and the share of the machine's measured FMA peak.
//   contraction_bench [FILTER]     only the lines that contain FILTER
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/clock.h"
#include "codegen/product/cpu/contraction.h"
#include "ir/text/text.h"
#include "jit/compiler.h"
#include "jit/library.h"
#include "schedule/product/packing.h"

namespace heddle {
namespace {

struct Case {
  std::string name;
  std::string text;
  double flops;
};

Case dense(int64_t m, int64_t n, int64_t k) {
  return {
      fmt::format("gemm {}x{}x{}", m, n, k),
      fmt::format("graph g(%x: f32[{0},{2}]) {{\n%w = constant {{value = f32[{2},{1}]{{0.5}}}}\n%b = constant {{value "
                  "= f32[{1}]{{0.5}}}}\n%0 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], "
                  "rhs_contract = [0]}} : f32[{0},{1}]\n%1 = broadcast(%b) {{shape = [{0},{1}], dims = [1]}} : "
                  "f32[{0},{1}]\n%2 = add(%0, %1) : f32[{0},{1}]\nreturn \"y\" = %2\n}}",
                  m, n, k),
      2.0 * static_cast<double>(m * n * k)};
}

// Attention: [batch][m][k] times [batch][n][k] (transposed) or [batch][k][n].
Case batched(int64_t b, int64_t m, int64_t n, int64_t k, bool transposed) {
  return {fmt::format("batched {}x{}x{}x{}{}", b, m, n, k, transposed ? " (B transposed)" : ""),
          fmt::format("graph g(%x: f32[{0},{1},{3}], %y: f32[{0},{4},{5}]) {{\n%0 = dot(%x, %y) {{lhs_batch = [0], "
                      "rhs_batch = [0], lhs_contract = [2], rhs_contract = [{6}]}} : f32[{0},{1},{2}]\nreturn \"y\" = "
                      "%0\n}}",
                      b, m, n, k, transposed ? n : k, transposed ? k : n, transposed ? 2 : 1),
          2.0 * static_cast<double>(b * m * n * k)};
}

Case conv(int64_t size, int64_t c, int64_t o, int64_t kernel, int64_t stride, int64_t groups = 1) {
  const int64_t pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
  const std::string y = fmt::format("f32[1,{0},{0},{1}]", out, o), shape = fmt::format("[1,{0},{0},{1}]", out, o);
  return {
      fmt::format("conv {0}x{0} {1}->{2} k{3} s{4} g{5}", size, c, o, kernel, stride, groups),
      fmt::format("graph g(%x: f32[1,{0},{0},{1}]) {{\n%w = constant {{value = f32[{2},{3},{4},{4}]{{0.5}}}}\n%b = "
                  "constant {{value = f32[{2}]{{0.5}}}}\n%z = constant {{value = f32[]{{0}}}}\n%0 = conv(%x, %w) "
                  "{{strides = [{5},{5}], low = [{6},{6}], high = [{6},{6}], dilations = [1,1], lhs_dilations = "
                  "[1,1], groups = {7}, layout = \"nhwc\"}} : {8}\n%1 = broadcast(%b) {{shape = {9}, dims = [3]}} : "
                  "{8}\n%2 = add(%0, %1) : {8}\n%3 = broadcast(%z) {{shape = {9}, dims = []}} : {8}\n%4 = max(%2, "
                  "%3) : {8}\nreturn \"y\" = %4\n}}",
                  size, c, o, c / groups, kernel, stride, pad, groups, y, shape),
      2.0 * static_cast<double>(out * out * o * (c / groups) * kernel * kernel)};
}

std::vector<Case> cases() {
  std::vector<Case> all = {dense(128, 768, 768),
                           dense(128, 3072, 768),
                           dense(128, 768, 3072),
                           dense(197, 768, 768),
                           dense(1, 1000, 2048),
                           dense(1, 4096, 4096),
                           batched(12, 128, 128, 64, true),
                           batched(12, 128, 64, 128, false),
                           batched(12, 197, 197, 64, true),
                           batched(12, 197, 64, 197, false)};
  const int64_t dense_convs[][5] = {
      {224, 3, 64, 7, 2},    {56, 64, 64, 1, 1},    {56, 64, 64, 3, 1},   {56, 64, 256, 1, 1},  {56, 256, 64, 1, 1},
      {56, 128, 128, 3, 2},  {28, 128, 128, 3, 1},  {28, 128, 512, 1, 1}, {28, 512, 128, 1, 1}, {14, 256, 256, 3, 1},
      {14, 1024, 256, 1, 1}, {14, 256, 1024, 1, 1}, {7, 512, 512, 3, 1},  {7, 2048, 512, 1, 1}, {7, 512, 2048, 1, 1},
      {56, 256, 512, 1, 2},  {224, 3, 64, 3, 1},    {224, 64, 64, 3, 1},  {112, 64, 128, 3, 1}, {112, 128, 128, 3, 1},
      {56, 128, 256, 3, 1},  {56, 256, 256, 3, 1},  {28, 256, 512, 3, 1}, {28, 512, 512, 3, 1}, {14, 512, 512, 3, 1}};
  for (const auto& [size, c, o, kernel, stride] : dense_convs) all.push_back(conv(size, c, o, kernel, stride));
  const int64_t mobile[][6] = {{224, 3, 32, 3, 2, 1},     {112, 32, 32, 3, 1, 32},   {112, 96, 96, 3, 2, 96},
                               {56, 144, 144, 3, 1, 144}, {56, 144, 144, 3, 2, 144}, {28, 192, 192, 3, 1, 192},
                               {14, 384, 384, 3, 1, 384}, {14, 576, 576, 3, 1, 576}, {7, 960, 960, 3, 1, 960},
                               {112, 32, 16, 1, 1, 1},    {112, 16, 96, 1, 1, 1},    {56, 24, 144, 1, 1, 1},
                               {56, 144, 24, 1, 1, 1},    {28, 32, 192, 1, 1, 1},    {28, 192, 32, 1, 1, 1},
                               {14, 64, 384, 1, 1, 1},    {14, 384, 64, 1, 1, 1},    {14, 96, 576, 1, 1, 1},
                               {7, 160, 960, 1, 1, 1},    {7, 960, 320, 1, 1, 1},    {7, 320, 1280, 1, 1, 1}};
  for (const auto& [size, c, o, kernel, stride, groups] : mobile) {
    all.push_back(conv(size, c, o, kernel, stride, groups));
  }
  return all;
}

ir::Group group_of(const ir::Graph& graph) {
  ir::Group group{ir::GroupKind::kContraction, {}, 0, {}, {}};
  for (ir::NodeId id = 0; id < graph.nodes().size(); ++id) {
    const ir::Node& node = graph.node(id);
    if (node.op == ir::Op::kParameter || node.op == ir::Op::kConstant) {
      group.inputs.push_back(node.outputs[0]);
      continue;
    }
    group.nodes.push_back(id);
    if (ir::class_of(node.op) == ir::OpClass::kContraction) group.anchor = id;
  }
  group.outputs.push_back(graph.outputs()[0].value);
  return group;
}

// Constants of one repeated value would be folded into the text; make them differ.
void roughen(const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes()) {
    if (node.op != ir::Op::kConstant) continue;
    Tensor t = node.attrs.tensor("value");
    if (t.size() < 2) continue;
    auto values = t.mutable_values<float>();
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 19) / 16 - 0.5f;
  }
}

void run(const Case& c, const Target& target) {
  const ir::Graph graph = ir::parse(c.text);
  roughen(graph);
  const ir::Group group = group_of(graph);
  const schedule::ScheduledGroup scheduled = schedule::schedule_contraction(graph, group, target);
  std::vector<codegen::KernelSource> sources;
  for (const auto& kernel : scheduled.kernels) {
    const auto& body = std::get<std::shared_ptr<const schedule::ContractionDesc>>(kernel.desc.body);
    sources.push_back(codegen::emit_cpu_contraction(kernel.desc, *body, kernel.config, target));
  }
  std::vector<const codegen::KernelSource*> texts;
  for (const auto& source : sources) texts.push_back(&source);
  const std::string unit = codegen::translation_unit(texts);
  const auto library = jit::Library::load(jit::compile({unit}, target.cpu, 1, true).bytes);

  std::vector<Tensor> keep, workspaces;
  std::vector<std::vector<void*>> operands;
  for (const auto& w : scheduled.workspaces) workspaces.emplace_back(DType::kU8, Shape{w.bytes});
  for (const auto& kernel : scheduled.kernels) {
    auto& list = operands.emplace_back();
    for (size_t i = 0; i < kernel.bindings.size(); ++i) {
      const auto& binding = kernel.bindings[i];
      if (binding.kind == schedule::Binding::Kind::kWorkspace) {
        list.push_back(workspaces[binding.workspace].mutable_data());
        continue;
      }
      const Tensor* constant = graph.constant_of(binding.value);
      keep.push_back(constant ? schedule::pack_constant(*constant, kernel.desc.operands[i].packing)
                              : Tensor(graph.dtype(binding.value), graph.shape(binding.value)));
      list.push_back(keep.back().mutable_data());
    }
  }
  std::vector<jit::Kernel> kernels;
  for (const auto& source : sources) kernels.push_back(library->find(source.symbol));
  std::vector<Tensor> scratch;
  for (const auto& source : sources) scratch.emplace_back(DType::kU8, Shape{source.scratch_bytes + 64});
  double best = 1e30, total = 0;
  for (int round = 0; round < 200 && (round < 5 || total < 0.15); ++round) {
    const double start = thread_seconds();
    for (size_t k = 0; k < kernels.size(); ++k) {
      kernels[k](operands[k].data(), scratch[k].mutable_data(), 0, sources[k].tasks);
    }
    const double seconds = thread_seconds() - start;
    best = std::min(best, seconds), total += seconds;
  }
  fmt::print("{:40} {:10} {:9.1f} us {:7.1f} GFLOP/s\n", c.name, family_of(scheduled.kernels.back().config), best * 1e6,
             c.flops / best * 1e-9);
  std::fflush(stdout);
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  const heddle::Target target = heddle::Target::host_cpu(1);
  for (const auto& c : heddle::cases()) {
    if (argc < 2 || c.name.find(argv[1]) != std::string::npos) heddle::run(c, target);
  }
}
