#include "driver/tune/attention_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/divide.h"
#include "heddle/error.h"

namespace heddle::driver {
namespace {

void require_sizes(const AttentionProblem& p) {
  const auto refuse = [](const std::string& why) { fail(ErrorCode::kInvalidArgument, "kernel attention", why); };
  if (std::min({p.batch, p.heads, p.kv_heads, p.m, p.n, p.depth, p.width}) < 1)
    refuse("all sizes have to be at least 1");
  if (p.heads % p.kv_heads != 0) refuse(fmt::format("{} heads cannot share {}", p.heads, p.kv_heads));
  if (p.page < 0 || p.page % 16 != 0) refuse(fmt::format("pages of {} keys are no multiple of 16", p.page));
  if (p.prefix > 0 && p.window > 0) refuse("a window leaves out the keys of a prefix");
  if (p.prefix < 0 || p.prefix > p.n) refuse(fmt::format("a prefix of {} keys among {}", p.prefix, p.n));
  if (p.causal && p.m > p.n) refuse(fmt::format("{} queries do not see themselves among {} keys", p.m, p.n));
}

// The graph of a problem, as text: heads that share keys are a dimension of their own.
class AttentionText {
 public:
  explicit AttentionText(const AttentionProblem& p) : p_(p), type_(to_string(p.type)), group_(p.heads / p.kv_heads) {}

  std::string text() {
    const Shape q{p_.batch, p_.heads, p_.m, p_.depth}, k{p_.batch, p_.kv_heads, p_.n, p_.depth};
    const Shape v{p_.batch, p_.kv_heads, p_.n, p_.width}, y{p_.batch, p_.heads, p_.m, p_.width};
    operand("q", q, split(p_.m, p_.depth), false);
    if (p_.page > 0) {
      table();
      pages("k", k, split(p_.n, p_.depth));
      pages("v", v, split(p_.n, p_.width));
    } else {
      operand("k", k, split(p_.n, p_.depth), true);
      operand("v", v, split(p_.n, p_.width), true);
    }
    scores_ = lead();
    rows_ = scores_;
    rows_.push_back(p_.m);
    scores_.insert(scores_.end(), {p_.m, p_.n});
    const auto rank = static_cast<int64_t>(scores_.size());
    std::vector<int64_t> batches;
    for (int64_t d = 0; d + 2 < rank; ++d) batches.push_back(d);
    const std::string batch = fmt::format("lhs_batch = [{0}], rhs_batch = [{0}]", fmt::join(batches, ","));
    line("s", "dot(%q, %k)",
         fmt::format("{}, lhs_contract = [{}], rhs_contract = [{}], out = f32{}", batch, rank - 1, rank - 1,
                     precision()),
         "f32", scores_);
    spread("scale", fmt::format("f32[]{{{}}}", 1 / std::sqrt(static_cast<double>(p_.depth))), "f32");
    line("x", "mul(%s, %scale)", "", "f32", scores_);
    const std::string masked = p_.causal || p_.window > 0 ? mask(rank) : "x";
    softmax(masked, rank);
    line("o", "dot(%p, %v)",
         fmt::format("{}, lhs_contract = [{}], rhs_contract = [{}]{}", batch, rank - 1, rank - 2, precision()), type_,
         split(p_.m, p_.width));
    line("y", "reshape(%o)", fmt::format("shape = [{}]", fmt::join(y, ",")), type_, y);
    return "graph g(" + parameters_ + ") {\n" + text_ + "  return \"y\" = %y\n}";
  }

 private:
  const char* precision() const { return p_.tf32 ? ", tf32 = 1" : ""; }
  std::vector<int64_t> lead() const {
    return group_ == 1 ? std::vector<int64_t>{p_.batch, p_.heads} : std::vector<int64_t>{p_.batch, p_.kv_heads, group_};
  }
  Shape split(int64_t lines, int64_t elements) const {
    Shape shape = lead();
    shape.insert(shape.end(), {lines, elements});
    return shape;
  }
  void line(const std::string& name, const std::string& op, const std::string& attrs, const std::string& type,
            const Shape& shape) {
    text_ += fmt::format("  %{} = {}{} : {}[{}]\n", name, op, attrs.empty() ? "" : " {" + attrs + "}", type,
                         fmt::join(shape, ","));
  }
  void operand(const std::string& name, const Shape& given, const Shape& wanted, bool shared) {
    const std::string first = group_ == 1 ? name : name + "0";
    parameters_ += fmt::format("{}%{}: {}[{}]", parameters_.empty() ? "" : ", ", first, type_, fmt::join(given, ","));
    if (group_ == 1) return;
    const std::string shape = fmt::format("shape = [{}]", fmt::join(wanted, ","));
    line(name, fmt::format("{}(%{})", shared ? "broadcast" : "reshape", first),
         shape + (shared ? ", dims = [0,1,3,4]" : ""), type_, wanted);
  }
  void table() {
    std::vector<int64_t> entries;
    for (int64_t i = 0; i < p_.pages(); ++i) entries.push_back(p_.page_at(i));
    text_ += fmt::format("  %table = constant {{value = i32[{},{}]{{{}}}}}\n", p_.batch, p_.pages() / p_.batch,
                         fmt::join(entries, ","));
  }
  // Keys of a pool as `given`, then as `wanted`.
  void pages(const std::string& name, const Shape& given, const Shape& wanted) {
    const int64_t entries = p_.pages() / p_.batch, all = entries * p_.page;
    const int64_t elements = given.back();
    const Shape pool{p_.pages(), p_.page, p_.kv_heads, elements};
    parameters_ += fmt::format(", %{}0: {}[{}]", name, type_, fmt::join(pool, ","));
    line(name + "1", "gather(%" + name + "0, %table)", "dim = 0", type_,
         {p_.batch, entries, p_.page, p_.kv_heads, elements});
    const Shape in_order{p_.batch, all, p_.kv_heads, elements}, cut{p_.batch, p_.n, p_.kv_heads, elements};
    line(name + "2", "reshape(%" + name + "1)", fmt::format("shape = [{}]", fmt::join(in_order, ",")), type_, in_order);
    line(name + "3", "slice(%" + name + "2)",
         fmt::format("starts = [0,0,0,0], limits = [{}], strides = [1,1,1,1]", fmt::join(cut, ",")), type_, cut);
    line(group_ == 1 ? name : name + "4", "transpose(%" + name + "3)", "perm = [0,2,1,3]", type_, given);
    if (group_ == 1) return;
    line(name, "broadcast(%" + name + "4)", fmt::format("shape = [{}], dims = [0,1,3,4]", fmt::join(wanted, ",")),
         type_, wanted);
  }
  void spread(const std::string& name, const std::string& value, const std::string& type) {
    text_ += fmt::format("  %{}0 = constant {{value = {}}}\n", name, value);
    line(name, "broadcast(%" + name + "0)", fmt::format("shape = [{}], dims = []", fmt::join(scores_, ",")), type,
         scores_);
  }
  std::string mask(int64_t rank) {
    const std::string shape = fmt::format("shape = [{}]", fmt::join(scores_, ","));
    line("rows0", "iota()", fmt::format("{}, dim = {}, dtype = i32", shape, rank - 2), "i32", scores_);
    spread("later", fmt::format("i32[]{{{}}}", p_.n - p_.m), "i32");
    line("rows", "add(%rows0, %later)", "", "i32", scores_);
    line("keys", "iota()", fmt::format("{}, dim = {}, dtype = i32", shape, rank - 1), "i32", scores_);
    line("past", "ge(%rows, %keys)", "", "bool", scores_);
    std::string seen = "past";
    if (p_.window > 0) {
      spread("reach", fmt::format("i32[]{{{}}}", p_.window), "i32");
      line("distance", "sub(%rows, %keys)", "", "i32", scores_);
      line("near", "lt(%distance, %reach)", "", "bool", scores_);
      line("seen", "and(%past, %near)", "", "bool", scores_);
      seen = "seen";
    }
    if (p_.prefix > 0) {
      spread("end", fmt::format("i32[]{{{}}}", p_.prefix), "i32");
      line("early", "lt(%keys, %end)", "", "bool", scores_);
      line("seen", "or(%past, %early)", "", "bool", scores_);
      seen = "seen";
    }
    spread("far", "f32[]{-inf}", "f32");
    line("masked", "select(%" + seen + ", %x, %far)", "", "f32", scores_);
    return "masked";
  }
  void softmax(const std::string& x, int64_t rank) {
    std::vector<int64_t> dims;
    for (int64_t d = 0; d + 1 < rank; ++d) dims.push_back(d);
    const std::string last = fmt::format("dims = [{}]", rank - 1);
    const auto over = [&](const std::string& name, const std::string& from) {
      line(name, "broadcast(%" + from + ")",
           fmt::format("shape = [{}], dims = [{}]", fmt::join(scores_, ","), fmt::join(dims, ",")), "f32", scores_);
    };
    line("top", "reduce(%" + x + ")", "kind = \"max\", " + last, "f32", rows_);
    over("tops", "top");
    line("difference", "sub(%" + x + ", %tops)", "", "f32", scores_);
    line("e", "exp(%difference)", "", "f32", scores_);
    line("sum", "reduce(%e)", "kind = \"sum\", " + last, "f32", rows_);
    over("sums", "sum");
    line("p32", "div(%e, %sums)", "", "f32", scores_);
    line("p", "cast(%p32)", fmt::format("to = {}", type_), type_, scores_);
  }

  const AttentionProblem& p_;
  const std::string type_;
  const int64_t group_;
  Shape scores_, rows_;
  std::string parameters_, text_;
};

std::vector<double> row_of(const AttentionProblem& p, int64_t row, const std::vector<double>& q,
                           const std::vector<double>& k, const std::vector<double>& v) {
  const int64_t head = row / p.m, i = row % p.m, kv = head / (p.heads / p.kv_heads);
  const int64_t own = i + p.n - p.m, last = p.causal || p.window > 0 ? std::max(own + 1, p.prefix) : p.n;
  const int64_t first = p.window > 0 ? std::max<int64_t>(0, own + 1 - p.window) : 0;
  const double scale = 1 / std::sqrt(static_cast<double>(p.depth));
  const auto at = [&](const std::vector<double>& x, int64_t line, int64_t e) {
    return x[static_cast<size_t>(line * p.depth + e)];
  };
  const auto line_of = [&](int64_t key) {
    if (p.page == 0) return kv * p.n + key;
    const int64_t sequence = kv / p.kv_heads, page = p.page_at(sequence * (p.pages() / p.batch) + key / p.page);
    return (page * p.page + key % p.page) * p.kv_heads + kv % p.kv_heads;
  };
  std::vector<double> scores, result(static_cast<size_t>(p.width));
  for (int64_t key = first; key < last; ++key) {
    double sum = 0;
    for (int64_t e = 0; e < p.depth; ++e) sum += at(q, row, e) * at(k, line_of(key), e);
    scores.push_back(sum * scale);
  }
  const double top = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& x : scores) sum += x = std::exp(x - top);
  for (int64_t key = first; key < last; ++key) {
    const double weight = scores[static_cast<size_t>(key - first)] / sum;
    const double* values = v.data() + line_of(key) * p.width;
    for (size_t e = 0; e < result.size(); ++e) result[e] += weight * values[e];
  }
  return result;
}

// Of some rows: values are at most 1, probabilities and results rounded once.
double error_of(const AttentionProblem& p, const GroupProblem& problem, const tune::GroupTrial& trial) {
  const ir::Graph& graph = problem.graph;
  std::vector<double> operands[3];
  for (size_t i = 0; i < 3; ++i) operands[i] = trial.values(graph.inputs()[i].value);
  const std::vector<double> got = trial.values(graph.outputs()[0].value);
  constexpr int64_t kRows = 61;
  const double bound = p.type == DType::kF32 && !p.tf32 ? 0x1p-18 : p.type == DType::kBF16 ? 0x1p-7 : 0x1p-10;
  double error = 0;
  for (const int64_t row : sampled(p.batch * p.heads * p.m, kRows)) {
    const std::vector<double> want = row_of(p, row, operands[0], operands[1], operands[2]);
    for (size_t e = 0; e < want.size(); ++e) {
      error = larger_error(error, got[static_cast<size_t>(row * p.width) + e], want[e], bound);
    }
  }
  return error;
}

}  // namespace

int64_t AttentionProblem::pages() const {
  return batch * ceil_div(n, page);
}
int64_t AttentionProblem::page_at(int64_t i) const {
  int64_t step = 7;  // to a page that is not near, and no divisor of their count
  while (std::gcd(step, pages()) != 1) ++step;
  return (i * step + 3) % pages();
}

double AttentionProblem::pairs() const {
  const double heads_of_all = static_cast<double>(batch * heads);
  if (window == 0 && prefix == 0) {
    return heads_of_all * static_cast<double>(m) * static_cast<double>(n) * (causal ? 0.5 : 1.0);
  }
  double keys = 0;
  for (int64_t i = 0; i < m; ++i) {
    const int64_t past = i + n - m + 1;
    keys += static_cast<double>(window > 0 ? std::min(window, past) : std::max(prefix, past));
  }
  return heads_of_all * keys;
}

GroupProblem attention_problem(const AttentionProblem& problem) {
  require_sizes(problem);
  GroupProblem group = group_problem(ir::parse(AttentionText(problem).text()), ir::GroupKind::kAttention);
  group.operations = problem.operations();
  group.error = [problem](const GroupProblem& whole, const tune::GroupTrial& trial) {
    return error_of(problem, whole, trial);
  };
  return group;
}

}  // namespace heddle::driver
