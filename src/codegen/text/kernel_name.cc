#include "codegen/text/kernel_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "base/check.h"
#include "base/hash.h"
#include "codegen/text/numbers.h"
#include "schedule/expr/expr_walk.h"

namespace heddle::codegen {

using ir::Op;

namespace {

constexpr size_t kMostOperators = 3;

// Those that say most come first.
constexpr std::array kTelling = {Op::kErf,  Op::kTanh, Op::kSin, Op::kCos, Op::kPow, Op::kLog,    Op::kExp, Op::kRsqrt,
                                 Op::kSqrt, Op::kDiv,  Op::kMul, Op::kAdd, Op::kSub, Op::kSelect, Op::kMax, Op::kMin};

// What a kernel consists of.
struct Content {
  std::set<Op> operators;
  std::vector<Combine> reductions;
  bool squares = false;        // a sum has squared deviations beside it
  std::optional<int64_t> row;  // values that an iteration reduces to one
  std::optional<VarId> along;  // the last variable of such a row
  bool has_weights = false;    // a vector that lies along the row is read
  bool gathers = false, reads = false;

  bool has(Op op) const { return operators.contains(op); }
  int64_t count(Combine combine) const { return std::count(reductions.begin(), reductions.end(), combine); }

  void visit(const ExprPool& pool, ExprId root) {
    schedule::ExprWalk(pool).run(root, [&](ExprId id) {
      const Expr& e = pool[id];
      if (e.kind == Expr::Kind::kOp) operators.insert(e.op);
      if (e.kind == Expr::Kind::kLoad) visit_load(pool, e);
      return true;
    });
  }

 private:
  void visit_load(const ExprPool& pool, const Expr& load) {
    reads = true;
    for (const auto& [id, coefficient] : load.index.terms) {
      const schedule::Atom& atom = pool.indices.atom(id);
      gathers = gathers || atom.kind == schedule::Atom::Kind::kDynamic;
      const bool is_row = along && atom.kind == schedule::Atom::Kind::kVar && atom.id == *along && coefficient == 1;
      has_weights = has_weights || (is_row && load.index.terms.size() == 1);
    }
  }
};

std::vector<std::string> telling(const std::set<Op>& operators) {
  std::vector<std::string> names;
  for (const Op op : kTelling) {
    if (operators.contains(op)) names.emplace_back(to_string(op));
  }
  for (const Op op : operators) {
    if (op != Op::kCast && std::find(kTelling.begin(), kTelling.end(), op) == kTelling.end())
      names.emplace_back(to_string(op));
  }
  return names;
}

std::string recognised(const Content& c) {
  const bool normalises = c.has(Op::kRsqrt) || (c.has(Op::kSqrt) && c.has(Op::kDiv));
  if (c.count(Combine::kMax) > 0 && c.count(Combine::kSum) > 0 && c.has(Op::kExp)) {
    return c.has(Op::kLog) ? "log_softmax" : "softmax";
  }
  if (normalises && (c.squares || c.count(Combine::kSum) > 1) && c.has(Op::kSub)) {
    return c.has_weights ? "layer_norm" : "norm";
  }
  if (normalises && c.count(Combine::kSum) == 1 && !c.has(Op::kSub)) return c.has_weights ? "rms_norm" : "norm";
  if (c.reductions.empty() && c.has(Op::kErf)) return "gelu";
  return "";
}

std::string name_of(const Content& c) {
  std::string name = recognised(c);
  if (name.empty()) {
    std::vector<std::string> words;
    const auto add = [&](std::string word) {
      if (words.size() < kMostOperators && std::find(words.begin(), words.end(), word) == words.end())
        words.push_back(std::move(word));
    };
    for (const Combine combine : c.reductions) add(std::string(to_string(combine)));
    for (std::string& word : telling(c.operators)) add(std::move(word));
    if (words.empty()) words.emplace_back(c.gathers ? "gather" : c.has(Op::kCast) ? "cast" : c.reads ? "copy" : "fill");
    name = fmt::format("{}", fmt::join(words, "_"));
  }
  return c.row ? fmt::format("{}_{}", name, *c.row) : name;
}

}  // namespace

std::string kernel_name(const schedule::CpuStitchDesc& body, bool with_extents) {
  Content content;
  for (const schedule::Stage& stage : body.stages) {
    for (const schedule::Reduction& r : stage.reductions) content.reductions.push_back(r.combine);
    if (stage.reductions.empty() || stage.loops.empty() || stage.vertical || stage.scan || content.along) continue;
    content.along = stage.loops.back();
    const auto times = [&](int64_t n, VarId v) { return n * body.pool.indices.extent(v); };
    const auto first = stage.loops.begin() + static_cast<int64_t>(stage.kept);
    if (with_extents) content.row = std::accumulate(first, stage.loops.end(), int64_t{1}, times);
  }
  for (const schedule::Stage& stage : body.stages) {
    for (const schedule::Piece& piece : stage.pieces) {
      for (const ExprId value : piece.values) content.visit(body.pool, value);
      for (const schedule::Store& store : piece.stores) content.visit(body.pool, store.value);
    }
  }
  return name_of(content);
}

std::string kernel_name(const schedule::CudaStitchDesc& body) {
  Content content;
  for (const schedule::CudaStage& stage : body.stages) {
    for (const schedule::CudaReduction& r : stage.reductions) {
      content.reductions.push_back(r.combine);
      content.squares = content.squares || r.squares;
      if (content.along || r.over != schedule::CudaReduction::Over::kTeam || stage.layout.loops.empty()) continue;
      content.along = stage.layout.loops.back();
      const auto times = [&](int64_t n, VarId v) { return n * body.extent(v); };
      content.row = std::accumulate(stage.layout.loops.begin(), stage.layout.loops.end(), int64_t{1}, times);
    }
  }
  for (const auto* stages : {&body.stages, &body.before, &body.ahead, &body.after}) {
    for (const schedule::CudaStage& stage : *stages) {
      for (const schedule::CudaReduction& r : stage.reductions) content.visit(body.pool, r.value);
      for (const schedule::CachedValue& keep : stage.cached) content.visit(body.pool, keep.value);
      for (const schedule::Store& store : stage.stores) content.visit(body.pool, store.value);
    }
  }
  return name_of(content);
}

std::string operators_of(const ExprPool& pool, const std::vector<ExprId>& roots) {
  Content content;
  for (const ExprId root : roots) content.visit(pool, root);
  std::vector<std::string> names = telling(content.operators);
  if (names.size() > kMostOperators) names.resize(kMostOperators);
  std::string text;
  for (const std::string& name : names) text += "_" + name;
  return text;
}

std::string symbol_of(std::string_view prefix, const std::string& text) {
  return fmt::format("{}_{}", prefix, hash_text(without_comments(text)).hex().substr(0, 16));
}

std::string name_kernel(std::string& text, std::string_view prefix, std::string_view placeholder) {
  const std::string symbol = symbol_of(prefix, text);
  size_t at = text.find(placeholder);
  HEDDLE_CHECK(at != std::string::npos, "the text does not name its kernel");
  for (; at != std::string::npos; at = text.find(placeholder, at)) text.replace(at, placeholder.size(), symbol);
  return symbol;
}

std::string first_lines(const KernelHead& head) {
  return head.waits ? fmt::format("  {}\n", kWait) : "";
}

void name_kernel(KernelText& kernel, std::string_view prefix, const TextOf& text, bool waits,
                 const std::string& stand_in) {
  kernel.symbol = symbol_of(prefix, text({stand_in}));
  kernel.text = text({kernel.symbol, waits});
  if (waits) kernel.includes.emplace_back(kWaitHeader);
}

}  // namespace heddle::codegen
