#include "attention_graphs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "ir/text/text.h"

namespace heddle::testing {
namespace {

class GraphWriter {
 public:
  explicit GraphWriter(const AttentionProblem& problem)
      : p_(problem), element_(p_.type == "tf32" ? "f32" : p_.type), may_round_(p_.type == "tf32" ? ", tf32 = 1" : "") {}

  std::string text() {
    operands();
    s_ = fmt::format("[{},{},{},{}]", p_.batch, p_.heads, p_.m, p_.n);
    line("s", "dot(%q, %k)",
         fmt::format("lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [{}], out = f32{}",
                     p_.layout == "keys" ? 2 : 3, may_round_),
         "f32" + s_);
    scores();
    softmax();
    const bool keys = p_.layout == "keys";
    line("o", "dot(%p, %v)",
         fmt::format("lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [{}]{}", keys ? 3 : 2,
                     may_round_),
         type({p_.batch, p_.heads, p_.m, p_.width}));
    line("t", "transpose(%o)", "perm = [0,2,1,3]", type({p_.batch, p_.m, p_.heads, p_.width}));
    line("y", "reshape(%t)", fmt::format("shape = [{},{},{}]", p_.batch, p_.m, p_.heads * p_.width),
         type({p_.batch, p_.m, p_.heads * p_.width}));
    return "graph g(" + parameters_ + ") {\n" + text_ + "  return \"y\" = %y\n}";
  }

 private:
  std::string type(const Shape& shape) const { return fmt::format("{}[{}]", element_, fmt::join(shape, ",")); }
  void line(const std::string& name, const std::string& op, const std::string& attrs, const std::string& type) {
    text_ += fmt::format("  %{} = {} {{{}}} : {}\n", name, op, attrs, type);
  }
  void plain(const std::string& name, const std::string& op, const std::string& type) {
    text_ += fmt::format("  %{} = {} : {}\n", name, op, type);
  }
  void parameter(const std::string& name, const std::string& type) {
    parameters_ += fmt::format("{}%{}: {}", parameters_.empty() ? "" : ", ", name, type);
  }
  void constant(const std::string& name, const std::string& value) {
    text_ += fmt::format("  %{} = constant {{value = f32[]{{{}}}}}\n", name, value);
    spread(name + "s", name, "");
  }
  void spread(const std::string& name, const std::string& from, const std::string& dims) {
    line(name, "broadcast(%" + from + ")", fmt::format("shape = {}, dims = [{}]", s_, dims), "f32" + s_);
  }

  void operands() {
    const int64_t lines[] = {p_.m, p_.n, p_.n}, depths[] = {p_.depth, p_.depth, p_.width};
    const std::string names[] = {"q", "k", "v"};
    if (p_.layout == "sliced") parameter("qkv", type({p_.batch, p_.m, 3 * p_.heads * p_.depth}));
    for (size_t i = 0; i < 3; ++i) {
      const int64_t columns = p_.heads * depths[i];
      const Shape matrix{p_.batch, lines[i], columns}, split{p_.batch, lines[i], p_.heads, depths[i]};
      const Shape heads{p_.batch, p_.heads, lines[i], depths[i]};
      if (p_.layout == "shared" && i > 0) {
        parameter(names[i] + "0", type({p_.batch, lines[i], depths[i]}));
        line(names[i], "broadcast(%" + names[i] + "0)",
             fmt::format("shape = [{}], dims = [0,2,3]", fmt::join(heads, ",")), type(heads));
        continue;
      }
      if (p_.layout == "pages" && i > 0) {
        pages(names[i], depths[i]);
        continue;
      }
      if (p_.layout == "dense" || p_.layout == "shared" || p_.layout == "pages") {
        parameter(names[i], type(heads));
        continue;
      }
      if (p_.layout == "keys" && i > 0) {
        parameter(names[i], type({p_.batch, p_.heads, depths[i], lines[i]}));
        continue;
      }
      const std::string flat = names[i] + "0", apart = names[i] + "1";
      if (p_.layout == "sliced") {
        const auto first = static_cast<int64_t>(i) * columns;
        line(flat, "slice(%qkv)",
             fmt::format("starts = [0,0,{}], limits = [{},{},{}], strides = [1,1,1]", first, p_.batch, p_.m,
                         first + columns),
             type(matrix));
      } else {
        parameter(flat, type(matrix));
      }
      line(apart, "reshape(%" + flat + ")", fmt::format("shape = [{}]", fmt::join(split, ",")), type(split));
      line(names[i], "transpose(%" + apart + ")", "perm = [0,2,1,3]", type(heads));
    }
  }

  // Pages of a pool in an order of no kind, one of them twice, one counted from the end; some of the pool are nobody's.
  void pages(const std::string& name, int64_t depth) {
    const int64_t entries = (p_.n + p_.page - 1) / p_.page, used = p_.batch * entries, pool = used + 3;
    const int64_t heads = p_.kv_heads == 0 ? p_.heads : p_.kv_heads, all = entries * p_.page;
    if (name == "k") {
      std::vector<int64_t> table;
      int64_t step = 7;  // has no divisor in common with the pool
      while (std::gcd(step, pool) != 1) ++step;
      for (int64_t i = 0; i < used; ++i) table.push_back((i * step + 2) % pool);
      table.back() -= pool;
      table[table.size() / 2] = table.front();
      text_ +=
          fmt::format("  %table = constant {{value = i64[{},{}]{{{}}}}}\n", p_.batch, entries, fmt::join(table, ","));
    }
    parameter(name + "0", type({pool, p_.page, heads, depth}));
    const std::string places[] = {name + "1", name + "2", name + "3", name + "4"};
    line(places[0], "gather(%" + name + "0, %table)", "dim = 0", type({p_.batch, entries, p_.page, heads, depth}));
    line(places[1], "reshape(%" + places[0] + ")", fmt::format("shape = [{},{},{},{}]", p_.batch, all, heads, depth),
         type({p_.batch, all, heads, depth}));
    line(places[2], "slice(%" + places[1] + ")",
         fmt::format("starts = [0,0,0,0], limits = [{},{},{},{}], strides = [1,1,1,1]", p_.batch, p_.n, heads, depth),
         type({p_.batch, p_.n, heads, depth}));
    const bool shared = heads != p_.heads;
    line(shared ? places[3] : name, "transpose(%" + places[2] + ")", "perm = [0,2,1,3]",
         type({p_.batch, heads, p_.n, depth}));
    if (!shared) return;
    const Shape apart{p_.batch, heads, p_.heads / heads, p_.n, depth}, wanted{p_.batch, p_.heads, p_.n, depth};
    line(name + "5", "broadcast(%" + places[3] + ")",
         fmt::format("shape = [{}], dims = [0,1,3,4]", fmt::join(apart, ",")), type(apart));
    line(name, "reshape(%" + name + "5)", fmt::format("shape = [{}]", fmt::join(wanted, ",")), type(wanted));
  }

  void scores() {
    const std::string f32 = "f32" + s_, mask = "bool" + s_;
    if (p_.scores == "plain") return plain("x", "mul(%s, %s)", f32);
    constant("scale", "0.375");
    plain("x0", "mul(%s, %scales)", f32);
    if (p_.scores == "scaled") return plain("x", "cast(%x0) {to = f32}", f32);
    if (p_.scores == "mask") {
      parameter("mask", fmt::format("f32[{},1,1,{}]", p_.batch, p_.n));
      spread("masks", "mask", "0,1,2,3");
      return plain("x", "add(%x0, %masks)", f32);
    }
    if (p_.scores == "few") {
      std::string values;
      for (int64_t i = 0; i < p_.batch * p_.n; ++i) {
        values += fmt::format("{}{}", i == 0 ? "" : ",", i % p_.n < 40 + 30 * (i / p_.n) ? "0" : "-inf");
      }
      text_ += fmt::format("  %few = constant {{value = f32[{},{}]{{{}}}}}\n", p_.batch, p_.n, values);
      spread("fews", "few", "0,3");
      return plain("x", "add(%x0, %fews)", f32);
    }
    if (p_.scores == "triangle" || p_.scores == "own") {
      // "own": the last 40 rows see one key each.
      const auto is_seen = [&](int64_t row, int64_t key) {
        if (p_.scores == "own") return row < p_.m - 40 || key == row;
        return key <= row + p_.n - p_.m;
      };
      std::string values;
      for (int64_t i = 0; i < p_.m * p_.n; ++i) {
        values += fmt::format("{}{}", i == 0 ? "" : ",", is_seen(i / p_.n, i % p_.n) ? "0" : "-inf");
      }
      text_ += fmt::format("  %lower = constant {{value = f32[{},{}]{{{}}}}}\n", p_.m, p_.n, values);
      spread("lowers", "lower", "2,3");
      return plain("x", "add(%x0, %lowers)", f32);
    }
    constant("far", p_.scores == "rows" || p_.scores == "finite" || p_.scores == "past" ? "-3e38" : "-inf");
    if (p_.scores == "length" || p_.scores == "past") {
      lengths();
    } else if (p_.scores == "rows") {
      parameter("row", fmt::format("f32[{}]", p_.m));
      constant("zero", "0");
      spread("rows", "row", "2");
      plain("seen", "gt(%rows, %zeros)", mask);
    } else {
      const std::string i32 = "i32" + s_;
      line("rows0", "iota()", fmt::format("shape = {}, dim = 2, dtype = i32", s_), i32);
      text_ += fmt::format("  %later = constant {{value = i32[]{{{}}}}}\n", p_.n - p_.m);
      line("laters", "broadcast(%later)", fmt::format("shape = {}, dims = []", s_), i32);
      plain("rows", "add(%rows0, %laters)", i32);
      line("columns", "iota()", fmt::format("shape = {}, dim = 3, dtype = i32", s_), i32);
      plain(p_.scores == "window" ? "past" : "seen", "ge(%rows, %columns)", mask);
    }
    if (p_.scores == "window") {
      text_ += "  %reach = constant {value = i32[]{40}}\n";
      line("reaches", "broadcast(%reach)", fmt::format("shape = {}, dims = []", s_), "i32" + s_);
      plain("distance", "sub(%rows, %columns)", "i32" + s_);
      plain("near", "lt(%distance, %reaches)", mask);
      plain("seen", "and(%past, %near)", mask);
    }
    if (p_.scores == "biased") {
      parameter("bias", fmt::format("f32[{},{}]", p_.heads, p_.n));
      spread("biases", "bias", "1,3");
      plain("x1", "add(%x0, %biases)", f32);
      return plain("x", "select(%seen, %x1, %fars)", f32);
    }
    plain("x", "select(%seen, %x0, %fars)", f32);
  }

  // Of some batches all keys, none of them, more than there are, fewer than none.
  void lengths() {
    const std::string i32 = "i32" + s_, of_batch = fmt::format("i32[{}]", p_.batch);
    std::vector<int64_t> lengths = {p_.n / 3, p_.n, 1, 0, p_.n - 3, p_.n + 40, -5};
    parameter("more", of_batch);
    for (int64_t i = 7; i < p_.batch; ++i) lengths.push_back(i * 13 % p_.n);
    lengths.resize(static_cast<size_t>(p_.batch));
    text_ += fmt::format("  %few = constant {{value = {}{{{}}}}}\n", of_batch, fmt::join(lengths, ","));
    text_ += "  %four = constant {value = i32[]{4}}\n";
    line("fours", "broadcast(%four)", fmt::format("shape = [{}], dims = []", p_.batch), of_batch);
    plain("little", "mod(%more, %fours)", of_batch);
    plain("length", "add(%few, %little)", of_batch);
    line("lengths", "broadcast(%length)", fmt::format("shape = {}, dims = [0]", s_), i32);
    line("columns", "iota()", fmt::format("shape = {}, dim = 3, dtype = i32", s_), i32);
    if (p_.scores == "length") return plain("seen", "lt(%columns, %lengths)", "bool" + s_);
    line("rows0", "iota()", fmt::format("shape = {}, dim = 2, dtype = i32", s_), i32);
    plain("rows", "add(%rows0, %lengths)", i32);
    plain("seen", "ge(%rows, %columns)", "bool" + s_);
  }

  void softmax() {
    const std::string f32 = "f32" + s_, row = fmt::format("f32[{},{},{}]", p_.batch, p_.heads, p_.m);
    line("top", "reduce(%x)", "kind = \"max\", dims = [3]", row);
    spread("tops", "top", "0,1,2");
    plain("difference", "sub(%x, %tops)", f32);
    plain("e", "exp(%difference)", f32);
    line("sum", "reduce(%e)", "kind = \"sum\", dims = [3]", row);
    if (p_.quotient) {
      spread("sums", "sum", "0,1,2");
      plain("p32", "div(%e, %sums)", f32);
    } else {
      text_ += "  %one = constant {value = f32[]{1}}\n";
      line("ones", "broadcast(%one)", fmt::format("shape = [{},{},{}], dims = []", p_.batch, p_.heads, p_.m), row);
      plain("inverse", "div(%ones, %sum)", row);
      spread("inverses", "inverse", "0,1,2");
      plain("p32", "mul(%e, %inverses)", f32);
    }
    plain("p", fmt::format("cast(%p32) {{to = {}}}", element_), element_ + s_);
  }

  const AttentionProblem& p_;
  const std::string element_, may_round_;  // attributes of products
  std::string s_, parameters_, text_;
};

}  // namespace

std::string attention_text(const AttentionProblem& problem) {
  return GraphWriter(problem).text();
}

std::vector<AttentionProblem> attention_sizes() {
  std::vector<AttentionProblem> sizes;
  for (const int64_t m : {1, 7, 77, 197}) {
    for (const int64_t n : {1, 7, 64, 200}) {
      if (m == 197 && n == 7) continue;
      sizes.push_back(
          {.heads = m + n < 20 ? 3 : 1, .m = m, .n = n, .depth = 8 * (1 + m % 9), .width = 8 * (1 + n % 8)});
    }
  }
  return sizes;
}

void add_attention(CudaBatch& batch, const AttentionProblem& p, CudaBatch::Options options) {
  options.kind = ir::GroupKind::kAttention;
  options.tolerance = p.type == "f32" ? 1e-5 : p.type == "tf32" ? 8e-3 : p.type == "f16" ? 2e-3 : 1.5e-2;
  batch.add_graph(fmt::format("{} {}x{}x{}x{}x{}x{} {} {}", p.type, p.batch, p.heads, p.m, p.n, p.depth, p.width,
                              p.scores, p.layout),
                  ir::parse(attention_text(p)), options);
}

}  // namespace heddle::testing
