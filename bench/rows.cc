// Sweeps memory-bound kernels as the compiler makes them over the lengths of rows, on one thread, in CPU time of that
// thread: GB/s of compulsory traffic (every input and output once) as a share of what memcpy moves (read + written)
// with as many bytes, measured in turns with the kernel.
//   rows_bench [FILTER] [ELEMENTS...]     only the lines that contain FILTER; totals of elements, by default 2^14, 2^18
//                                         (in the caches) and 2^25 (in memory)
//   rows_bench --text NAME                the generated text of one line
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "codegen/codegen.h"
#include "ir/builder.h"
#include "ir/group.h"
#include "jit/compiler.h"
#include "jit/library.h"
#include "schedule/region/stitch.h"

namespace heddle {
namespace {

struct Case {
  std::string name;
  ir::Graph graph;
};

// `rows` rows of `length` elements.
Case make_case(const std::string& kind, DType dtype, int64_t rows, int64_t length) {
  Case c{fmt::format("{} {} {}x{}", kind, to_string(dtype), rows, length), {}};
  ir::Builder b(c.graph);
  const ir::ValueId x = c.graph.parameter("x", {dtype, {rows, length}});
  const ir::ValueId wide = b.cast(x, DType::kF32);
  ir::ValueId y = 0;
  if (kind == "softmax") {
    y = b.cast(b.softmax(wide, {1}), dtype);
  } else if (kind == "layer_norm") {
    const ir::ValueId scale = c.graph.parameter("scale", {DType::kF32, {length}});
    const ir::ValueId centred = b.sub(wide, b.mean(wide, {1}, true));
    const ir::ValueId variance = b.mean(b.mul(centred, centred), {1}, true);
    const ir::ValueId normal = b.mul(centred, b.unary(ir::Op::kRsqrt, b.binary(ir::Op::kAdd, variance, 1e-5)));
    y = b.cast(b.mul(normal, scale), dtype);
  } else if (kind == "row_sum") {
    y = b.cast(b.reduce("sum", wide, {1}), dtype);
  } else if (kind == "column_sum") {
    y = b.cast(b.reduce("sum", wide, {0}), dtype);
  } else if (kind == "transpose") {
    y = b.transpose(x, {1, 0});
  } else {
    y = b.binary(ir::Op::kAdd, x, 1.0);
  }
  c.graph.output("y", y);
  return c;
}

ir::Group whole_graph(const ir::Graph& graph) {
  ir::Group group{ir::GroupKind::kStitch, {}, 0, {}, {}};
  for (ir::NodeId id = 0; id < graph.nodes().size(); ++id) {
    const ir::Node& node = graph.node(id);
    const bool source = node.op == ir::Op::kParameter || node.op == ir::Op::kConstant;
    if (source) group.inputs.push_back(node.outputs[0]);
    if (!source) group.nodes.push_back(id);
  }
  for (const auto& port : graph.outputs()) group.outputs.push_back(port.value);
  return group;
}

void fill(Tensor& tensor, uint32_t seed) {
  std::mt19937 random(seed);
  auto* bytes = static_cast<unsigned char*>(tensor.mutable_data());
  if (tensor.dtype() == DType::kF32) {
    auto values = tensor.mutable_values<float>();
    for (float& v : values) v = static_cast<float>(random() >> 8) * 0x1p-22f - 2;
  } else if (tensor.dtype() == DType::kF16) {  // 1 to 2 with either sign
    for (size_t i = 0; i + 1 < tensor.bytes(); i += 2) {
      const auto bits = static_cast<uint16_t>((random() & 0x83ffu) | 0x3c00u);
      std::memcpy(bytes + i, &bits, 2);
    }
  } else {
    for (size_t i = 0; i < tensor.bytes(); ++i) bytes[i] = static_cast<unsigned char>(random() & 1u);
  }
}

// A buffer as the runtime gives it: aligned to a line.
struct Buffer {
  explicit Buffer(int64_t bytes) : memory(DType::kU8, {bytes + 64}) {
    std::memset(data(), 0, static_cast<size_t>(bytes));
  }
  unsigned char* data() {
    const auto at = reinterpret_cast<uintptr_t>(memory.mutable_data());
    return reinterpret_cast<unsigned char*>((at + 63) & ~uintptr_t{63});
  }
  Tensor memory;
};

struct Prepared {
  const Case* test;
  schedule::ScheduledGroup group;
  std::vector<codegen::KernelSource> sources;
};

void measure(const Prepared& p, const jit::Library& library) {
  const ir::Graph& graph = p.test->graph;
  std::map<ir::ValueId, Buffer> values;
  double bytes = 0;
  const auto place = [&](ir::ValueId v, bool random) {
    Tensor tensor(graph.dtype(v), graph.shape(v));
    auto [at, is_new] = values.try_emplace(v, static_cast<int64_t>(tensor.bytes()));
    if (!is_new) return;
    bytes += static_cast<double>(tensor.bytes());
    if (!random) return;
    fill(tensor, 1);
    std::memcpy(at->second.data(), tensor.data(), tensor.bytes());
  };
  for (const auto& port : graph.inputs()) place(port.value, true);
  for (const auto& port : graph.outputs()) place(port.value, false);
  std::vector<Buffer> workspaces;
  for (const auto& w : p.group.workspaces) workspaces.emplace_back(w.bytes);
  struct Call {
    jit::Kernel kernel;
    std::vector<void*> operands;
    Buffer scratch;
    int64_t tasks;
  };
  std::vector<Call> calls;
  for (size_t k = 0; k < p.sources.size(); ++k) {
    Call call{library.find(p.sources[k].symbol), {}, Buffer(p.sources[k].scratch_bytes), p.sources[k].tasks};
    for (const auto& b : p.group.kernels[k].bindings) {
      const bool is_value = b.kind == schedule::Binding::Kind::kValue;
      call.operands.push_back(is_value ? values.at(b.value).data() : workspaces[b.workspace].data());
    }
    calls.push_back(std::move(call));
  }
  const auto half = static_cast<int64_t>(bytes / 2) + 1;
  Buffer from(half), to(half);
  double best = 1e30, copy = 1e30, total = 0;
  const int repeat = static_cast<int>(std::clamp(2e6 / bytes, 1.0, 1000.0));  // a burst of some 0.1 ms
  for (int round = 0; round < 60 && (round < 5 || total < 0.08); ++round) {
    const double t0 = thread_seconds();
    for (int i = 0; i < repeat; ++i) {
      for (Call& c : calls) c.kernel(c.operands.data(), c.scratch.data(), 0, c.tasks);
    }
    const double t1 = thread_seconds();
    for (int i = 0; i < repeat; ++i) {
      std::memcpy(to.data(), from.data(), static_cast<size_t>(half));
      asm volatile("" : : "r"(to.data()) : "memory");
    }
    const double t2 = thread_seconds();
    best = std::min(best, (t1 - t0) / repeat), copy = std::min(copy, (t2 - t1) / repeat);
    total += t2 - t0;
  }
  std::printf("%-36s %7.1f MB %10.2f us %7.2f GB/s   copy %7.2f GB/s   %5.2f\n", p.test->name.c_str(), bytes * 1e-6,
              best * 1e6, bytes / best * 1e-9, bytes / copy * 1e-9, copy / best);
  std::fflush(stdout);
}

int run(const std::string& filter, std::vector<int64_t> totals, bool text_only) {
  if (totals.empty()) totals = {1 << 14, 1 << 18, 1 << 25};
  const Target target = Target::host_cpu(1);
  std::vector<Case> cases;
  for (const char* kind : {"softmax", "layer_norm", "row_sum", "column_sum", "transpose", "add"}) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kU8}) {
      const std::string name = kind;
      if (dtype == DType::kU8 && name != "transpose") continue;
      for (const int64_t total : totals) {
        for (const int64_t length :
             {1, 2, 3, 4, 5, 8, 13, 16, 24, 32, 50, 64, 100, 200, 512, 1000, 4096, 30000, 262144, 1000000, 4000000}) {
          const int64_t rows = total / length;
          if (rows < 1 || (name == "add" && length != 1)) continue;
          Case c = make_case(name, dtype, rows, length);
          if (c.name.find(filter) != std::string::npos) cases.push_back(std::move(c));
        }
      }
    }
  }
  std::vector<Prepared> prepared;
  for (const Case& c : cases) {
    Prepared p{&c, schedule::schedule_stitch(c.graph, whole_graph(c.graph), target), {}};
    for (const auto& k : p.group.kernels) {
      p.sources.push_back(codegen::emit(schedule::plan_kernel(k, target), target));
      if (text_only) std::printf("%s\n%s\n", k.config.reason.c_str(), p.sources.back().text.c_str());
    }
    prepared.push_back(std::move(p));
  }
  if (text_only) return 0;
  constexpr size_t kUnit = 24;  // kernels per library
  for (size_t first = 0; first < prepared.size(); first += kUnit) {
    const size_t last = std::min(prepared.size(), first + kUnit);
    std::vector<const codegen::KernelSource*> all;
    for (size_t i = first; i < last; ++i) {
      for (const auto& source : prepared[i].sources) all.push_back(&source);
    }
    const auto library = jit::Library::load(jit::compile({codegen::translation_unit(all)}, target.cpu, 1, true).bytes);
    for (size_t i = first; i < last; ++i) measure(prepared[i], *library);
  }
  return 0;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool text_only = !words.empty() && words[0] == "--text";
  if (text_only) words.erase(words.begin());
  std::string filter;
  std::vector<int64_t> totals;
  for (const std::string& word : words) {
    if (word.find_first_not_of("0123456789") == std::string::npos) {
      totals.push_back(std::stoll(word));
    } else {
      filter = word;
    }
  }
  return heddle::run(filter, totals, text_only);
}
