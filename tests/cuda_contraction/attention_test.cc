// Attention as one kernel on the emulated GPU: sizes that fill no tile, layouts, masks.
#include "schedule/attention/attention.h"

#include <fmt/format.h>

#include <cstdlib>
#include <random>
#include <span>

#include "ir/text/text.h"
#include "testing.h"
#include "tests/codegen/harness.h"
#include "tests/contraction/testing.h"
#include "tests/instances.h"
#include "tests/schedule/attention_chains.h"

namespace heddle {
namespace {

using testing::CudaBatch;

struct Problem {
  std::string type = "f16";
  int64_t batch = 1, heads = 2, m = 64, n = 64, depth = 64, width = 64;
  std::string scores = "scaled";  // "plain", "scaled", "mask", "rows", "causal", "finite" (causal by -3e38),
                                  // "window" (causal, 40 keys), "triangle" (causal by a constant), "biased" (causal),
                                  // "length" (keys of a batch, as many as memory says), "past" (causal behind them)
  std::string layout = "heads";   // "heads", "dense", "sliced" (m = n, depth = width), "keys": K and V along keys,
                                  // "shared": all heads have the same K and V
  bool quotient = false;          // exp / sum in place of exp * (1 / sum)
};

class Writer {
 public:
  explicit Writer(const Problem& problem) : p_(problem) {}

  std::string text() {
    operands();
    s_ = fmt::format("[{},{},{},{}]", p_.batch, p_.heads, p_.m, p_.n);
    line("s", "dot(%q, %k)",
         fmt::format("lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [{}], out = f32",
                     p_.layout == "keys" ? 2 : 3),
         "f32" + s_);
    scores();
    softmax();
    const bool keys = p_.layout == "keys";
    line("o", "dot(%p, %v)",
         fmt::format("lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [{}]", keys ? 3 : 2),
         type({p_.batch, p_.heads, p_.m, p_.width}));
    line("t", "transpose(%o)", "perm = [0,2,1,3]", type({p_.batch, p_.m, p_.heads, p_.width}));
    line("y", "reshape(%t)", fmt::format("shape = [{},{},{}]", p_.batch, p_.m, p_.heads * p_.width),
         type({p_.batch, p_.m, p_.heads * p_.width}));
    return "graph g(" + parameters_ + ") {\n" + text_ + "  return \"y\" = %y\n}";
  }

 private:
  std::string type(const Shape& shape) const { return fmt::format("{}[{}]", p_.type, fmt::join(shape, ",")); }
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
      if (p_.layout == "dense" || p_.layout == "shared") {
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
    if (p_.scores == "triangle") {
      std::string values;
      for (int64_t i = 0; i < p_.m * p_.n; ++i) {
        values += fmt::format("{}{}", i == 0 ? "" : ",", i % p_.n <= i / p_.n + p_.n - p_.m ? "0" : "-inf");
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
    plain("p", fmt::format("cast(%p32) {{to = {}}}", p_.type), p_.type + s_);
  }

  const Problem& p_;
  std::string s_, parameters_, text_;
};

void add(CudaBatch& batch, const Problem& p, CudaBatch::Options options = {}) {
  options.kind = ir::GroupKind::kAttention;
  options.tolerance = p.type == "f16" ? 2e-3 : 1.5e-2;
  batch.add_graph(fmt::format("{} {}x{}x{}x{}x{}x{} {} {}", p.type, p.batch, p.heads, p.m, p.n, p.depth, p.width,
                              p.scores, p.layout),
                  ir::parse(Writer(p).text()), options);
}

void run(CudaBatch& batch) {
  batch.compile();
  batch.run();
}

TEST(CudaAttention, Sizes) {
  CudaBatch batch;
  for (const int64_t m : {1, 7, 77, 197}) {
    for (const int64_t n : {1, 7, 64, 200}) {
      if (m == 197 && n == 7) continue;
      add(batch, {.heads = m + n < 20 ? 3 : 1, .m = m, .n = n, .depth = 8 * (1 + m % 9), .width = 8 * (1 + n % 8)});
    }
  }
  run(batch);
}

TEST(CudaAttention, HeadSizes) {
  CudaBatch batch;
  for (const int64_t depth : {8, 40, 80, 128, 160, 256}) {
    add(batch, {.type = depth % 16 == 0 ? "bf16" : "f16", .m = 70, .n = 150, .depth = depth, .width = depth});
  }
  add(batch, {.m = 33, .n = 77, .depth = 128, .width = 40, .layout = "dense"});
  run(batch);
}

TEST(CudaAttention, Scores) {
  CudaBatch batch;
  for (const char* scores : {"plain", "mask", "rows"}) {
    add(batch, {.batch = 2, .m = 77, .n = 77, .depth = 40, .width = 40, .scores = scores});
    add(batch, {.type = "bf16", .m = 20, .n = 300, .scores = scores, .quotient = true});
  }
  run(batch);
}

TEST(CudaAttention, Masks) {
  CudaBatch batch;
  for (const char* scores : {"causal", "finite", "window", "triangle", "biased"}) {
    add(batch, {.m = 20, .n = 301, .scores = scores, .layout = "dense"});
    add(batch, {.m = 200, .n = 333, .depth = 32, .width = 32, .scores = scores, .layout = "dense"});
    // More tiles than SMs.
    if (std::string(scores) != "causal" && std::string(scores) != "window") continue;
    add(batch, {.type = "bf16",
                .batch = 6,
                .heads = 16,
                .m = 300,
                .n = 300,
                .depth = 16,
                .width = 16,
                .scores = scores,
                .layout = "dense"});
  }
  run(batch);
}

// What masks leave of the keys, by 64 rows.
TEST(CudaAttention, Ranges) {
  const Target target = Target::cuda_h200(1);
  const auto ranges = [&](const Problem& p) {
    const ir::Graph graph = ir::parse(Writer(p).text());
    const auto group = testing::whole_graph(graph, ir::GroupKind::kAttention);
    const schedule::KernelDesc desc = schedule::schedule_attention(graph, group, target).kernels.at(0).desc;
    return std::get<std::shared_ptr<const schedule::AttentionDesc>>(desc.body)->ranges;
  };
  using Ranges = std::vector<schedule::KeyRange>;
  const Ranges causal = {{0, 0, 0, 64}, {0, 0, 64, 128}, {0, 0, 128, 192}, {0, 0, 192, 200}};
  EXPECT_EQ(ranges({.m = 200, .n = 200, .scores = "causal"}), causal);
  EXPECT_EQ(ranges({.m = 200, .n = 200, .scores = "triangle"}), causal);
  EXPECT_EQ(ranges({.m = 200, .n = 200, .scores = "finite"}), causal);
  EXPECT_EQ(ranges({.type = "bf16", .m = 200, .n = 200, .scores = "finite"}), causal);
  EXPECT_EQ(ranges({.type = "bf16", .m = 200, .n = 200, .scores = "triangle"}), causal);
  EXPECT_EQ(ranges({.m = 100, .n = 200, .scores = "window"}), (Ranges{{48, 48, 48, 176}, {112, 112, 112, 200}}));
  EXPECT_EQ(ranges({.m = 100, .n = 200, .scores = "biased"}), (Ranges{{0, 0, 0, 176}, {0, 0, 0, 200}}));
  EXPECT_EQ(ranges({.m = 64, .n = 200, .scores = "mask"}), (Ranges{{0, 0, 0, 200}}));
  EXPECT_EQ(ranges({.m = 64, .n = 200}), Ranges{});
}

// Which keys a batch has is known when the kernel runs.
TEST(CudaAttention, Lengths) {
  CudaBatch batch;
  for (const char* scores : {"length", "past"}) {
    for (unsigned skip = 0; skip < 2; ++skip) {
      CudaBatch::Options options;
      options.family = "attention", options.skip = skip;
      add(batch,
          {.batch = 7, .heads = 1, .m = 130, .n = 301, .depth = 32, .width = 32, .scores = scores, .layout = "dense"},
          options);
      add(batch, {.type = "bf16", .batch = 7, .heads = 4, .m = 1, .n = 900, .scores = scores, .layout = "shared"},
          options);
      options.split = true;
      add(batch,
          {.batch = 7, .heads = 1, .m = 5, .n = 700, .depth = 16, .width = 16, .scores = scores, .layout = "dense"},
          options);
    }
    add(batch,
        {.batch = 12, .heads = 8, .m = 66, .n = 100, .depth = 16, .width = 16, .scores = scores, .layout = "dense"});
  }
  run(batch);
}

// What a length leaves of the keys, by 64 rows.
TEST(CudaAttention, RangesOfLengths) {
  const Target target = Target::cuda_h200(1);
  const auto length_of = [&](const Problem& p) {
    const ir::Graph graph = ir::parse(Writer(p).text());
    const auto group = testing::whole_graph(graph, ir::GroupKind::kAttention);
    const schedule::KernelDesc desc = schedule::schedule_attention(graph, group, target).kernels.at(0).desc;
    return std::get<std::shared_ptr<const schedule::AttentionDesc>>(desc.body)->length;
  };
  const auto boxes = length_of({.batch = 3, .m = 1, .n = 100, .scores = "length"}).value().boxes;
  ASSERT_EQ(boxes.size(), 8u);  // none, 1 to 15, 16 to 31 ... 96 to 100
  EXPECT_EQ(boxes[1].first, 1);
  EXPECT_EQ(boxes[1].last, 15);
  EXPECT_EQ(boxes[1].ranges, (std::vector<schedule::KeyRange>{{0, 0, 0, 16}}));
  EXPECT_EQ(boxes[3].ranges, (std::vector<schedule::KeyRange>{{0, 0, 32, 48}}));
  EXPECT_EQ(boxes[7].last, 100);
  EXPECT_EQ(boxes[7].ranges, (std::vector<schedule::KeyRange>{{0, 0, 96, 100}}));
  const auto past = length_of({.batch = 3, .m = 100, .n = 200, .scores = "past"}).value().boxes;
  ASSERT_EQ(past.at(2).first, 16);
  EXPECT_EQ(past[2].ranges, (std::vector<schedule::KeyRange>{{0, 0, 16, 96}, {0, 0, 80, 144}}));
  EXPECT_FALSE(length_of({.m = 100, .n = 200, .scores = "causal"}).has_value());
  EXPECT_FALSE(length_of({.m = 100, .n = 200, .scores = "mask"}).has_value());
}

// Tiles, blocks of an SM, parts of the keys, turns.
TEST(CudaAttention, Candidates) {
  CudaBatch batch;
  const auto count = static_cast<unsigned>(test::instances(12));
  for (unsigned i = 0; i < count; ++i) {
    CudaBatch::Options options;
    options.family = "attention", options.skip = i * 12 / count;
    add(batch, {.heads = 4, .m = 150, .n = 520, .depth = 64, .scores = "causal", .layout = "dense"}, options);
    add(batch, {.type = "bf16", .m = 1, .n = 1111, .depth = 128, .width = 72, .layout = "dense"}, options);
    options.split = true;
    add(batch, {.m = 70, .n = 600, .depth = 32, .width = 48, .scores = "mask", .layout = "dense"}, options);
  }
  run(batch);
}

TEST(CudaAttention, HeadsThatShareKeys) {
  CudaBatch batch;
  add(batch, {.batch = 2, .heads = 6, .m = 77, .n = 130, .layout = "shared"});
  add(batch, {.batch = 3, .heads = 4, .m = 1, .n = 700, .depth = 128, .width = 128, .layout = "shared"});
  add(batch, {.batch = 2, .heads = 8, .m = 5, .n = 300, .scores = "causal", .layout = "shared"});
  add(batch,
      {.batch = 40, .heads = 8, .m = 200, .n = 200, .depth = 16, .width = 16, .scores = "causal", .layout = "shared"});
  run(batch);
}

TEST(CudaAttention, Layouts) {
  CudaBatch batch;
  for (const char* type : {"f16", "bf16"}) {
    add(batch, {.type = type, .batch = 3, .m = 77, .n = 77, .layout = "sliced"});
    add(batch, {.type = type, .batch = 3, .m = 130, .n = 130, .depth = 40, .width = 40, .layout = "sliced"});
    add(batch, {.type = type, .batch = 2, .m = 9, .n = 136, .depth = 40, .width = 80, .layout = "keys"});
    add(batch, {.type = type, .batch = 2, .m = 9, .n = 24, .layout = "keys"});
    add(batch, {.type = type, .batch = 2, .m = 100, .n = 264, .depth = 72, .width = 72, .layout = "dense"});
  }
  run(batch);
}

// The attention of a model as its passes leave it.
void add(CudaBatch& batch, const testing::AttentionChain& chain, CudaBatch::Options options = {}) {
  const bool wide = chain.type == DType::kF32;
  const ir::Graph graph = testing::optimized(chain.graph(), wide ? passes::Precision::kF16 : passes::Precision::kF32);
  options.kind = ir::GroupKind::kAttention;
  options.tolerance = chain.type == DType::kBF16 ? 2e-2 : 4e-3;
  int count = 0;
  for (const ir::Group& group : testing::grouped(graph, Target::cuda_h200(1)).groups) {
    if (group.kind != ir::GroupKind::kAttention) continue;
    batch.add_graph(chain.text(), testing::graph_of(graph, group), options);
    ++count;
  }
  EXPECT_EQ(count, 1) << chain.text();
}

TEST(CudaAttention, AsModelsWriteIt) {
  using Chain = testing::AttentionChain;
  CudaBatch batch;
  add(batch, {.scale = Chain::Scale::kBoth, .mask = Chain::Mask::kSelectInf, .softmax = Chain::Softmax::kIsNan});
  add(batch, {.m = 16, .n = 2, .mask = Chain::Mask::kSelectInf, .softmax = Chain::Softmax::kAllHidden});
  add(batch, {.m = 16, .n = 2, .mask = Chain::Mask::kSelectInf});
  add(batch, {.m = 16, .n = 3, .mask = Chain::Mask::kSelectMin});
  add(batch, {.type = DType::kF32, .m = 70, .n = 70, .mask = Chain::Mask::kRows, .softmax = Chain::Softmax::kLog});
  add(batch, {.heads = 8, .groups = 2, .shared = Chain::Groups::kExpand, .mask = Chain::Mask::kCausalMin});
  add(batch, {.type = DType::kBF16, .heads = 8, .groups = 2, .shared = Chain::Groups::kFreeDims, .cap = true});
  add(batch, {.heads = 8, .groups = 1, .m = 1, .n = 80, .mask = Chain::Mask::kAddPadding});
  add(batch, {.softmax = Chain::Softmax::kBehind, .slopes = true});
  add(batch, {.type = DType::kBF16, .softmax = Chain::Softmax::kBehindFactor, .bias = true, .windows = true});
  add(batch, {.n = 12, .mask = Chain::Mask::kTriangle, .packed = true, .norm = true});
  add(batch, {.swapped = true});
  run(batch);
}

// The score that is no key's comes last, when the sums of all parts are there.
TEST(CudaAttention, Sinks) {
  using Chain = testing::AttentionChain;
  CudaBatch batch;
  for (unsigned skip = 0; skip < test::instances(12); ++skip) {
    CudaBatch::Options options;
    options.family = "attention", options.skip = skip;
    add(batch, {.m = 70, .n = 300, .sink = true}, options);
    add(batch,
        {.type = DType::kBF16, .heads = 8, .groups = 2, .m = 1, .n = 900, .depth = 64, .width = 64, .sink = true},
        options);
    options.split = true;
    add(batch, {.m = 70, .n = 600, .mask = Chain::Mask::kCausal, .sink = true}, options);
    add(batch, {.m = 3, .n = 500, .mask = Chain::Mask::kAddPadding, .sink = true}, options);
  }
  // Rows with no key: all is the sink's.
  add(batch, {.m = 16, .n = 2, .mask = Chain::Mask::kSelectInf, .sink = true});
  add(batch, {.m = 16, .n = 2, .mask = Chain::Mask::kSelectInf, .softmax = Chain::Softmax::kIsNan, .sink = true});
  run(batch);
}

// HEDDLE_CHAINS: how many, from HEDDLE_SEED on.
TEST(CudaAttention, RandomChains) {
  const auto setting = [](const char* name, int otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::atoi(text);
  };
  CudaBatch batch;
  const int first = setting("HEDDLE_SEED", 1), count = setting("HEDDLE_CHAINS", 4);
  for (int seed = first; seed < first + count; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    add(batch, testing::random_chain(random));
  }
  run(batch);
}

TEST(CudaAttention, LargeOnesDoNotSpill) {
  CudaBatch batch;
  const int64_t depths[] = {256, 128, 64, 40, 96, 192};
  for (const int64_t depth : std::span(depths).first(test::instances(std::size(depths)))) {
    add(batch, {.batch = 8, .heads = 16, .m = 2048, .n = 2048, .depth = depth, .width = depth, .layout = "dense"});
    add(batch, {.batch = 8, .heads = 16, .m = 384, .n = 384, .depth = depth, .width = depth, .scores = "mask"});
    add(batch, {.batch = 8, .heads = 16, .m = 1024, .n = 1024, .depth = depth, .width = depth, .scores = "causal"});
    add(batch, {.batch = 4, .m = 1, .n = 8192, .depth = depth, .width = depth, .layout = "dense"});
  }
  batch.compile();
}

TEST(CudaAttention, RefusesWhatItCannotRead) {
  const Target target = Target::cuda_h200(1);
  std::string reason;
  const auto in_attention = [&](const Problem& p) {
    const ir::Graph graph = testing::parse_with_random_weights(Writer(p).text(), 5);
    return schedule::can_attend(graph, testing::whole_graph(graph, ir::GroupKind::kAttention), target, &reason);
  };
  EXPECT_TRUE(in_attention({.batch = 32, .heads = 12, .m = 128, .n = 128})) << reason;
  EXPECT_FALSE(in_attention({.m = 64, .n = 64, .depth = 20, .width = 20}));
  EXPECT_NE(reason.find("multiples of 16 bytes"), std::string::npos) << reason;
  EXPECT_FALSE(in_attention({.m = 64, .n = 77, .layout = "keys"}));
  EXPECT_FALSE(in_attention({.m = 64, .n = 64, .depth = 264, .width = 64}));
  EXPECT_FALSE(in_attention({.type = "f32"}));
}

}  // namespace
}  // namespace heddle
