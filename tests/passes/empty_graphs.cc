#include "empty_graphs.h"

#include <fmt/format.h>

#include <functional>

#include "ir/text/text.h"

namespace heddle::passes {
namespace {

// dot, relu, dot
std::string two_products(int64_t rows, int64_t in, int64_t middle, int64_t out) {
  return fmt::format(R"(graph(%x: f32[{0},{1}], %w: f32[{1},{2}], %v: f32[{2},{3}], %b: f32[{3}]) {{
    %z = constant {{value = f32[]{{0}}}}
    %zs = broadcast(%z) {{shape = [{0},{2}], dims = []}}
    %p = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}}
    %r = max(%p, %zs)
    %q = dot(%r, %v) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}}
    %bs = broadcast(%b) {{shape = [{0},{3}], dims = [1]}}
    %y = add(%q, %bs)
    return "y" = %y
  }})",
                     rows, in, middle, out);
}

std::string batched(int64_t batch, int64_t m, int64_t n, int64_t k) {
  return fmt::format(R"(graph(%x: f32[{0},{1},{3}], %w: f32[{0},{3},{2}]) {{
    %p = dot(%x, %w) {{lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}}
    %y = tanh(%p)
    return "y" = %y
  }})",
                     batch, m, n, k);
}

// conv, relu, conv
std::string two_convs(int64_t batch, int64_t in, int64_t middle, int64_t out, int64_t side) {
  return fmt::format(R"(graph(%x: f32[{0},{1},{4},{4}], %w: f32[{2},{1},3,3], %v: f32[{3},{2},1,1]) {{
    %z = constant {{value = f32[]{{0}}}}
    %zs = broadcast(%z) {{shape = [{0},{2},{4},{4}], dims = []}}
    %p = conv(%x, %w) {{strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nchw"}}
    %r = max(%p, %zs)
    %q = conv(%r, %v) {{strides = [1,1], low = [0,0], high = [0,0], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nchw"}}
    return "y" = %q
  }})",
                     batch, in, middle, out, side);
}

std::string attention(int64_t batch, int64_t heads, int64_t m, int64_t n, int64_t depth) {
  return fmt::format(R"(graph(%q: f32[{0},{1},{2},{4}], %k: f32[{0},{1},{3},{4}], %v: f32[{0},{1},{3},{4}]) {{
    %s = dot(%q, %k) {{lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [3]}}
    %m = reduce(%s) {{kind = "max", dims = [3]}}
    %ms = broadcast(%m) {{shape = [{0},{1},{2},{3}], dims = [0,1,2]}}
    %d = sub(%s, %ms)
    %e = exp(%d)
    %t = reduce(%e) {{kind = "sum", dims = [3]}}
    %ts = broadcast(%t) {{shape = [{0},{1},{2},{3}], dims = [0,1,2]}}
    %p = div(%e, %ts)
    %y = dot(%p, %v) {{lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [2]}}
    return "y" = %y, "greatest" = %m
  }})",
                     batch, heads, m, n, depth);
}

// state = tanh(x[i] + state W), with every state as a result.
std::string recurrence(int64_t steps, int64_t batch, int64_t units) {
  return fmt::format(R"(graph(%x: f32[{0},{1},{2}], %h: f32[{1},{2}], %w: f32[{2},{2}]) {{
    %n = constant {{value = i64[]{{{0}}}}}
    %c = constant {{value = bool[]{{1}}}}
    %last, %all = loop(%n, %c, %h, %x, %w) {{states = 1, scans = 1, trip = {0}, body = graph(%i: i64[], %c: bool[], %h: f32[{1},{2}], %x: f32[{0},{1},{2}], %w: f32[{2},{2}]) {{
      %r = gather(%x, %i) {{dim = 0}}
      %p = dot(%h, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}}
      %a = add(%p, %r)
      %s = tanh(%a)
      return "c" = %c, "h" = %s, "y" = %s
    }}}}
    return "last" = %last, "all" = %all
  }})",
                     steps, batch, units);
}

std::string pool(int64_t batch, int64_t channels, int64_t side, const std::string& kind) {
  return fmt::format(R"(graph(%x: f32[{0},{1},{2},{2}]) {{
    %y = window_reduce(%x) {{kind = "{3}", window = [1,1,3,3], strides = [1,1,2,2], low = [0,0,2,2], high = [0,0,2,2], dilations = [1,1,1,1]}}
    return "y" = %y
  }})",
                     batch, channels, side, kind);
}

std::string reduction(const std::string& kind, const std::string& type) {
  return fmt::format(R"(graph(%x: {1}[3,0,2]) {{
    %r = reduce(%x) {{kind = "{0}", dims = [1]}}
    %e = reduce(%x) {{kind = "{0}", dims = [0]}}
    return "y" = %r, "empty" = %e
  }})",
                     kind, type);
}

using Add = std::function<void(std::string name, std::string text)>;

void add_contractions(const Add& add) {
  add("products of no rows", two_products(0, 32, 16, 8));
  add("products over no elements", two_products(4, 0, 16, 8));
  add("products without a middle", two_products(4, 32, 0, 8));
  add("products of no columns", two_products(4, 32, 16, 0));
  add("batches of no product", batched(0, 3, 4, 5));
  add("products of nothing by batch", batched(2, 3, 4, 0));
  add("batches of no columns", batched(2, 3, 0, 5));
  add("convolutions of no image", two_convs(0, 3, 4, 5, 6));
  add("convolutions of no channel", two_convs(2, 0, 4, 5, 6));
  add("convolutions without a middle", two_convs(2, 3, 0, 5, 6));
  add("convolutions to no channel", two_convs(2, 3, 4, 0, 6));
  add("convolutions of padding", R"(graph(%x: f32[1,2,0,4], %w: f32[3,2,3,3]) {
    %y = conv(%x, %w) {strides = [1,1], low = [2,1], high = [2,1], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nchw"}
    return "y" = %y
  })");
  add("attention of no query", attention(2, 3, 0, 5, 8));
  add("attention without keys", attention(2, 3, 4, 0, 8));
  add("attention of no head", attention(2, 0, 4, 5, 8));
  add("attention of no batch", attention(0, 3, 4, 5, 8));
  add("attention of empty heads", attention(2, 3, 4, 5, 0));
  add("recurrence of no step", recurrence(0, 2, 8));
  add("recurrence of no row", recurrence(5, 0, 8));
  add("recurrence of no unit", recurrence(5, 2, 0));
}

void add_reductions(const Add& add) {
  for (const char* kind : {"sum", "max"}) {
    add(fmt::format("{} pool of no image", kind), pool(0, 4, 7, kind));
    add(fmt::format("{} pool of no channel", kind), pool(2, 0, 7, kind));
    add(fmt::format("{} pool of padding", kind), pool(2, 4, 0, kind));
  }
  for (const char* kind : {"sum", "prod", "max", "min"}) {
    for (const char* type : {"f32", "f16", "i64", "u8"})
      add(fmt::format("{} of {}", kind, type), reduction(kind, type));
  }
  for (const char* kind : {"any", "all"}) add(kind, reduction(kind, "bool"));
}

void add_others(const Add& add) {
  add("elementwise, scans and sorts", R"(graph(%x: f32[0,4], %y: f32[3,0]) {
    %a = exp(%x)
    %b = mul(%a, %x)
    %s = scan(%b) {kind = "sum", dim = 1, exclusive = 0, reverse = 0}
    %v, %i = topk(%s) {k = 2, dim = 1, largest = 1, sorted = 1}
    %w, %j = topk(%y) {k = 0, dim = 1, largest = 0, sorted = 1}
    %r = arg_reduce(%x) {kind = "max", dim = 1, last = 0}
    return "v" = %v, "i" = %i, "w" = %w, "j" = %j, "r" = %r
  })");
  add("none of the largest", R"(graph(%x: f32[3,7]) {
    %v, %i = topk(%x) {k = 0, dim = 1, largest = 1, sorted = 1}
    return "v" = %v, "i" = %i
  })");
  add("pads and concatenations", R"(graph(%x: f32[2,0], %y: f32[2,3], %v: f32[]) {
    %p = pad(%x, %v) {low = [1,2], high = [0,1], mode = "constant"}
    %c = concat(%x, %y, %x) {dim = 1}
    %d = concat(%y, %x, %y) {dim = 1}
    %e = concat(%x, %x) {dim = 1}
    %n = neg(%d)
    return "p" = %p, "c" = %c, "n" = %n, "e" = %e
  })");
  add("gathers and scatters", R"(graph(%x: f32[4,3], %none: i64[0], %nones: i64[0,3], %places: i64[0,1], %u: f32[0,3]) {
    %g = gather(%x, %none) {dim = 0}
    %e = gather_elements(%x, %nones) {dim = 0}
    %n = gather_nd(%x, %places) {batch_dims = 0}
    %s = scatter_elements(%x, %nones, %u) {dim = 0, reduction = "add"}
    %t = scatter_nd(%x, %places, %u) {reduction = "none"}
    %a = abs(%s)
    return "g" = %g, "e" = %e, "n" = %n, "a" = %a, "t" = %t
  })");
  add("layout and sources", R"(graph(%x: f32[2,0,3]) {
    %t = transpose(%x) {perm = [2,0,1]}
    %r = reshape(%t) {shape = [0,5]}
    %v = reverse(%r) {dims = [1]}
    %i = iota() {dtype = i64, shape = [3,0], dim = 0}
    %n = random() {kind = "normal", dtype = f32, shape = [0,3], seed = 1}
    %s = slice(%x) {starts = [0,0,1], limits = [2,0,3], strides = [1,1,1]}
    return "v" = %v, "i" = %i, "n" = %n, "s" = %s, "x" = %x
  })");
  add("a row norm of no rows before a product", R"(graph(%x: f32[0,8], %w: f32[8,4]) {
    %m = reduce(%x) {kind = "sum", dims = [1]}
    %ms = broadcast(%m) {shape = [0,8], dims = [0]}
    %d = sub(%x, %ms)
    %p = dot(%d, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
    %y = reduce(%p) {kind = "sum", dims = [0]}
    return "y" = %y
  })");
}

}  // namespace

std::vector<EmptyGraph> empty_graphs() {
  std::vector<EmptyGraph> all;
  const Add add = [&](std::string name, std::string text) { all.push_back({std::move(name), std::move(text)}); };
  add_contractions(add);
  add_reductions(add);
  add_others(add);
  return all;
}

ir::Graph empty_graphs_in_one() {
  ir::Graph all;
  size_t number = 0;
  for (const EmptyGraph& c : empty_graphs()) {
    const ir::Graph graph = ir::parse(c.text);
    const std::string prefix = fmt::format("g{}_", number++);
    std::vector<ir::ValueId> map(graph.value_count());
    for (const ir::Node& node : graph.nodes()) {
      if (node.op == ir::Op::kParameter) {
        const ir::ValueId v = node.outputs[0];
        map[v] = all.parameter(prefix + node.attrs.text("name"), graph.type(v));
        continue;
      }
      std::vector<ir::ValueId> inputs;
      for (const ir::ValueId v : node.inputs) inputs.push_back(map[v]);
      const ir::NodeId id = all.add(node.op, inputs, node.attrs);
      for (size_t i = 0; i < node.outputs.size(); ++i) map[node.outputs[i]] = all.node(id).outputs[i];
    }
    for (const ir::Graph::Port& port : graph.outputs()) all.output(prefix + port.name, map[port.value]);
  }
  return all;
}

}  // namespace heddle::passes
