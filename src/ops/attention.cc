#include "ops/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "base/check.h"
#include "base/divide.h"
#include "schedule/attention/cuda/attention.h"
#include "schedule/attention/describe.h"
#include "schedule/attention/pack_rows.h"

namespace heddle::ops {
namespace {

using ir::Op;
using schedule::AttentionForm;
using schedule::Expr;
using schedule::ExprId;
using schedule::ExprPool;
using schedule::Index;
using schedule::IndexPool;

constexpr uint32_t kOperandO = 3;

[[noreturn]] void refuse_attention(const std::string& why, const std::string& remedy = {}) {
  fail(ErrorCode::kInvalidArgument, "attention", why, remedy);
}

// Of a tensor of so many batches, heads, rows and elements a row.
struct Extents {
  int64_t batch, heads, rows, row;
};

void resolve_strides(const char* name, const Extents& x, AttentionStrides& s) {
  if (s.row == 0) s = {x.heads * x.rows * x.row, x.rows * x.row, x.row, 1};
  constexpr int64_t kMost = int64_t{1} << 40;
  for (const auto& [of, stride] :
       {std::pair{"batch", s.batch}, {"head", s.head}, {"row", s.row}, {"element", s.element}}) {
    if (stride >= 0 && stride <= kMost) continue;
    refuse_attention(fmt::format("the {} stride of {} is {}", of, name, stride),
                     "Strides count elements and are not negative");
  }
}

int64_t span_of(const Extents& x, const AttentionStrides& s) {
  if (std::min({x.batch, x.heads, x.rows, x.row}) == 0) return 0;
  return (x.batch - 1) * s.batch + (x.heads - 1) * s.head + (x.rows - 1) * s.row + (x.row - 1) * s.element + 1;
}

// Whether no two elements lie at one place, as far as their order of strides tells.
bool is_apart(const Extents& x, const AttentionStrides& s) {
  std::pair<int64_t, int64_t> dims[] = {{s.batch, x.batch}, {s.head, x.heads}, {s.row, x.rows}, {s.element, x.row}};
  std::sort(std::begin(dims), std::end(dims));
  int64_t reach = 0;  // of the inner dimensions
  for (const auto& [stride, extent] : dims) {
    if (extent <= 1) continue;
    if (stride <= reach) return false;
    reach += stride * (extent - 1);
  }
  return true;
}

constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2;

// Entries of a sequence.
int64_t entries_of(const AttentionProblem& p) {
  return ceil_div(p.keys, p.pages->page);
}

void resolve_pages(AttentionProblem& p) {
  constexpr int64_t kStep = 16;
  AttentionPages& x = *p.pages;
  if (x.page < 1 || x.page > kMost || x.page % kStep != 0) {
    refuse_attention(fmt::format("a page has {} keys", x.page), "Give pages of a multiple of 16 keys");
  }
  const int64_t most = kMost / std::max<int64_t>(p.heads, 1);
  if (x.pages < 1 || x.pages > most) {
    refuse_attention(fmt::format("the pool has {} pages, it must have 1 to {}", x.pages, most));
  }
  if (x.sequence == 0) x.sequence = entries_of(p);
  if (x.sequence < 0) {
    refuse_attention(fmt::format("the table of pages has {} entries from sequence to sequence", x.sequence),
                     "Strides count elements and are not negative");
  }
}

AttentionProblem resolve_sizes(AttentionProblem p) {
  if (p.kv_heads == 0) p.kv_heads = p.heads;
  if (p.width == 0) p.width = p.depth;
  for (const auto& [name, value] : {std::pair{"batch", p.batch}, {"heads", p.heads}, {"queries", p.queries}}) {
    if (value < 0 || value > kMost) refuse_attention(fmt::format("{} is {}, it must be 0 to {}", name, value, kMost));
  }
  for (const auto& [name, value] :
       {std::pair{"keys", p.keys}, {"depth", p.depth}, {"width", p.width}, {"kv_heads", p.kv_heads}}) {
    if (value < 1 || value > kMost) refuse_attention(fmt::format("{} is {}, it must be 1 to {}", name, value, kMost));
  }
  if (p.heads % p.kv_heads != 0) {
    refuse_attention(fmt::format("{} heads of queries cannot share {} heads of keys", p.heads, p.kv_heads),
                     "The first has to be a multiple of the second");
  }
  if (p.type != DType::kF16 && p.type != DType::kBF16) {
    fail(ErrorCode::kUnsupportedType, "attention", fmt::format("there is no kernel for {}", to_string(p.type)),
         "Types: f16, bf16");
  }
  if (p.window < 0)
    refuse_attention(fmt::format("window is {}", p.window), "Give how many keys a query sees, or 0 for all");
  if (!p.scale) p.scale = 1 / std::sqrt(static_cast<double>(p.depth));
  if (!std::isfinite(*p.scale)) refuse_attention(fmt::format("scale is {}", *p.scale));
  if (!(p.soft_cap >= 0) || std::isinf(p.soft_cap)) refuse_attention(fmt::format("soft_cap is {}", p.soft_cap));
  if (p.sinks && *p.sinks != DType::kF32 && *p.sinks != DType::kF16 && *p.sinks != DType::kBF16) {
    fail(ErrorCode::kUnsupportedType, "attention: sinks", fmt::format("they are {}", to_string(*p.sinks)),
         "Types: f32, f16, bf16");
  }
  if (p.bias) {
    const DType type = p.bias->dtype;
    if (type != DType::kF32 && type != DType::kF16 && type != DType::kBF16 && type != DType::kBool) {
      fail(ErrorCode::kUnsupportedType, "attention: bias", fmt::format("it is {}", to_string(type)),
           "Types: f32, f16, bf16, bool");
    }
    if (std::min({p.bias->batch, p.bias->head, p.bias->query, p.bias->key}) < 0) {
      refuse_attention("a stride of the bias is negative",
                       "Strides count elements; 0 where a dimension has the bias in common");
    }
  }
  if (p.pages) resolve_pages(p);
  return p;
}

// The scores of a (batch, query, key), as expressions in f32 and conditions.
class Scores {
 public:
  Scores(const AttentionProblem& p, AttentionForm& form, uint32_t first_extra)
      : p_(p), form_(form), pool_(form.scores), indices_(form.scores.indices), next_(first_extra) {}

  void make() {
    form_.batch_var = indices_.new_var(form_.batches()), form_.row_var = indices_.new_var(form_.rows);
    form_.outer_var = indices_.new_var(1), form_.key_var = indices_.new_var(form_.keys);
    const Index all = indices_.var(form_.batch_var);
    batch_ = indices_.div(all, p_.heads), head_ = indices_.mod(all, p_.heads);
    query_ = indices_.var(form_.row_var), key_ = indices_.var(form_.key_var);
    ExprId score = pool_.local(DType::kF32, 0);
    if (p_.soft_cap > 0) {
      score =
          op(Op::kMul, {op(Op::kTanh, {op(Op::kMul, {score, number(*p_.scale / p_.soft_cap)})}), number(p_.soft_cap)});
    } else {
      score = op(Op::kMul, {score, number(*p_.scale)});
    }
    std::vector<ExprId> seen;
    if (p_.bias) add_bias(score, seen);
    if (p_.sinks) {
      form_.softmax.sinks.push_back(as_f32(pool_.load(*p_.sinks, next_++, head_)));
    }
    add_positions(seen);
    for (const ExprId condition : seen) score = op(Op::kSelect, {condition, score, number(-INFINITY)});
    form_.softmax.score = score;
    form_.softmax.zero_if_empty = true;
  }

 private:
  ExprId number(double x) { return pool_.constant(DType::kF32, x); }
  ExprId make(Op op, std::vector<ExprId> args, DType dtype) {
    Expr e{Expr::Kind::kOp, dtype};
    e.op = op;
    e.args = std::move(args);
    return pool_.add(std::move(e));
  }
  ExprId op(Op op, std::vector<ExprId> args) { return make(op, std::move(args), DType::kF32); }
  ExprId as_f32(ExprId x) { return pool_[x].dtype == DType::kF32 ? x : op(Op::kCast, {x}); }
  ExprId position(const Index& index) {
    Expr e{Expr::Kind::kIndex, DType::kI32};
    e.index = index;
    return pool_.add(std::move(e));
  }

  void add_bias(ExprId& score, std::vector<ExprId>& seen) {
    const AttentionBias& b = *p_.bias;
    Index at = indices_.scale(batch_, b.batch);
    for (const auto& [index, stride] : {std::pair{head_, b.head}, {query_, b.query}, {key_, b.key}}) {
      at = indices_.add(at, indices_.scale(index, stride));
    }
    const ExprId bias = pool_.load(b.dtype, next_++, at);
    if (b.dtype == DType::kBool) {
      seen.push_back(bias);
    } else {
      score = op(Op::kAdd, {score, as_f32(bias)});
    }
  }

  // What lengths, the order of keys and a window hide. The key of a query is `query + ahead`.
  void add_positions(std::vector<ExprId>& seen) {
    const ExprId key = position(key_);
    ExprId own = 0;
    if (p_.lengths) {
      const ExprId length = pool_.load(DType::kI32, next_++, batch_);
      seen.push_back(make(Op::kLt, {key, length}, DType::kBool));
      own = make(Op::kAdd, {position(indices_.offset(query_, -p_.queries)), length}, DType::kI32);
    } else {
      own = position(indices_.offset(query_, p_.keys - p_.queries));
    }
    if (p_.causal) seen.push_back(make(Op::kGe, {own, key}, DType::kBool));
    if (p_.window == 0) return;
    const ExprId reach = pool_.integer(DType::kI32, p_.window);
    const auto near = [&](ExprId from, ExprId to) {
      const ExprId distance = make(Op::kSub, {from, to}, DType::kI32);
      seen.push_back(make(Op::kLt, {distance, reach}, DType::kBool));
    };
    near(own, key);
    if (!p_.causal) near(key, own);
  }

  const AttentionProblem& p_;
  AttentionForm& form_;
  ExprPool& pool_;
  IndexPool& indices_;
  Index batch_, head_, query_, key_;
  uint32_t next_;  // operand
};

AttentionForm form_of(const AttentionProblem& p) {
  AttentionForm form;
  const int64_t group = p.heads / p.kv_heads;
  form.batch = {p.pages ? AttentionForm::Batch{p.batch, p.q.batch, 0, 0, p.pages->sequence}
                        : AttentionForm::Batch{p.batch, p.q.batch, p.k.batch, p.v.batch},
                {p.kv_heads, p.q.head * group, p.k.head, p.v.head},
                {group, p.q.head, 0, 0}};
  form.rows = p.queries, form.keys = p.keys, form.depth = p.depth, form.width = p.width;
  const auto operand = [](ir::ValueId value, const AttentionStrides& s, int64_t rows, int64_t row) {
    return AttentionForm::Operand{value, 0, rows == 1 ? 1 : s.row, row == 1 ? 1 : s.element};
  };
  form.q = operand(0, p.q, p.queries, p.depth);
  const int64_t lines = p.pages ? p.pages->page : p.keys;
  form.k = operand(1, p.k, lines, p.depth);
  form.v = operand(2, p.v, lines, p.width);
  if (p.pages) {
    const uint32_t table = kOperandO + 1 + (p.bias ? 1 : 0) + (p.sinks ? 1 : 0) + (p.lengths ? 1 : 0);
    form.pages = AttentionForm::Pages{table, p.pages->page, p.pages->pages, 0, 1, p.k.batch, p.v.batch, false};
  }
  Scores(p, form, kOperandO + 1).make();
  form.result_at = [p](IndexPool& pool, const Index& batch, const Index& row, const Index& column) {
    Index at = pool.scale(pool.div(batch, p.heads), p.o.batch);
    at = pool.add(at, pool.scale(pool.mod(batch, p.heads), p.o.head));
    at = pool.add(at, pool.scale(row, p.o.row));
    return std::vector<Index>{pool.add(at, pool.scale(column, p.o.element))};
  };
  return form;
}

schedule::Epilogue epilogue_of(const AttentionForm& form, const schedule::AttentionDesc& desc) {
  schedule::Epilogue e;
  IndexPool& indices = e.pool.indices;
  e.batch = indices.new_var(desc.batch), e.row = indices.new_var(desc.m);
  e.split = desc.width;
  e.col_outer = indices.new_var(1), e.col = indices.new_var(desc.width);
  e.accumulator = DType::kF32;
  Expr cast{Expr::Kind::kOp, desc.type};
  cast.op = Op::kCast;
  cast.args = {e.pool.local(DType::kF32, 0)};
  const Index at = form.result_at(indices, indices.var(e.batch), indices.var(e.row), indices.var(e.col)).front();
  e.stores.push_back({kOperandO, at, e.pool.add(std::move(cast))});
  return e;
}

}  // namespace

const schedule::AttentionDesc& ResolvedAttention::attention() const {
  return *std::get<std::shared_ptr<const schedule::AttentionDesc>>(desc.body);
}

bool ResolvedAttention::is_empty() const {
  return std::min({problem.batch, problem.heads, problem.queries}) == 0;
}

ResolvedAttention resolve(const AttentionProblem& given) {
  ResolvedAttention result;
  result.problem = resolve_sizes(given);
  AttentionProblem& p = result.problem;
  const int64_t lines = p.pages ? p.pages->pages : p.batch, keys = p.pages ? p.pages->page : p.keys;
  const Extents q{p.batch, p.heads, p.queries, p.depth}, k{lines, p.kv_heads, keys, p.depth};
  const Extents v{lines, p.kv_heads, keys, p.width}, o{p.batch, p.heads, p.queries, p.width};
  resolve_strides("Q", q, p.q), resolve_strides("K", k, p.k);
  resolve_strides("V", v, p.v), resolve_strides("O", o, p.o);
  if (!is_apart(o, p.o))
    refuse_attention("two elements of O lie at one place", "Give O strides that keep its elements apart");
  using Role = schedule::Operand::Role;
  const auto add = [&](const char* name, Role role, DType dtype, int64_t elements) {
    result.desc.operands.push_back({role, dtype, {elements}, {}});
    result.spans.push_back({fmt::format("attention: {}", name), elements * static_cast<int64_t>(size_of(dtype))});
  };
  add("Q", Role::kInput, p.type, span_of(q, p.q)), add("K", Role::kInput, p.type, span_of(k, p.k));
  add("V", Role::kInput, p.type, span_of(v, p.v)), add("O", Role::kOutput, p.type, span_of(o, p.o));
  if (p.bias) {
    add("bias", Role::kInput, p.bias->dtype,
        span_of({p.batch, p.heads, p.queries, p.keys}, {p.bias->batch, p.bias->head, p.bias->query, p.bias->key}));
  }
  if (p.sinks) add("sinks", Role::kInput, *p.sinks, p.heads);
  if (p.lengths) add("lengths", Role::kInput, DType::kI32, p.batch);
  if (p.pages) {
    const int64_t before = std::max<int64_t>(p.batch - 1, 0) * p.pages->sequence;
    add("page_table", Role::kInput, DType::kI32, before + entries_of(p));
  }
  if (result.is_empty()) return result;
  AttentionForm form = form_of(p);
  schedule::pack_rows(form);
  auto desc = std::make_shared<schedule::AttentionDesc>(
      schedule::describe_attention(form, {[](ir::ValueId operand) { return operand; },
                                          [&](ir::ValueId operand) { return result.desc.operands[operand].dtype; },
                                          [](ir::ValueId) -> const Tensor* { return nullptr; }}));
  desc->epilogue = epilogue_of(form, *desc);
  schedule::name_result(*desc);
  result.desc.body = std::shared_ptr<const schedule::AttentionDesc>(std::move(desc));
  return result;
}

std::vector<schedule::Config> candidates(const ResolvedAttention& attention, const CudaTarget& cuda) {
  const Target target = Target::of(cuda);
  const schedule::AttentionBackend& backend = schedule::cuda_attention();
  backend.check_target(target);
  backend.check(attention.attention(), {attention.problem.type, attention.problem.type});
  return backend.candidates(attention.attention(), target);
}

namespace {

constexpr size_t kAttentionOperands = 8;

}  // namespace

class Attention::Impl {
 public:
  Impl(const AttentionProblem& problem, const PrepareOptions& options) : attention_(resolve(problem)) {
    if (attention_.is_empty()) {
      config = reason = "nothing to compute";
      return;
    }
    auto context = runtime::CudaContext::of_device(options.device);
    std::vector<ConfigChoice> choices;
    for (schedule::Config& c : candidates(attention_, context->device().target)) {
      if (choices.size() == kMostTries) break;
      choices.push_back({std::move(c), {}});
      choices.back().reason = choices.back().config.reason;
    }
    kernel_ = std::make_unique<PreparedKernel>(std::move(context), attention_.desc, choices, options.use_cache);
    config = kernel_->config, reason = kernel_->reason, workspace_bytes = kernel_->workspace_bytes;
  }

  void call(const AttentionOperands& x, void* stream) const {
    if (kernel_ == nullptr) return;
    std::array<uint64_t, kAttentionOperands + 2> addresses;
    size_t count = 0;
    const auto add = [&](const void* pointer) {
      addresses[count] = checked_address(attention_.spans[count], pointer);
      ++count;
    };
    add(x.q), add(x.k), add(x.v), add(x.o);
    const AttentionProblem& p = attention_.problem;
    if (p.bias) add(x.bias);
    if (p.sinks) add(x.sinks);
    if (p.lengths) add(x.lengths);
    if (p.pages) add(x.page_table);
    check_overlaps({addresses.data(), count});
    kernel_->launch({addresses.data(), count + 2}, stream);
  }

  std::string config, reason;
  int64_t workspace_bytes = 0;

 private:
  void check_overlaps(std::span<const uint64_t> addresses) const {
    const auto end = [&](size_t i) { return addresses[i] + static_cast<uint64_t>(attention_.spans[i].bytes); };
    for (size_t i = 0; i < addresses.size(); ++i) {
      if (i == kOperandO || addresses[i] >= end(kOperandO) || end(i) <= addresses[kOperandO]) continue;
      fail(ErrorCode::kInvalidArgument, attention_.spans[i].name, "it overlaps O", "Give O memory of its own");
    }
  }

  ResolvedAttention attention_;
  std::unique_ptr<PreparedKernel> kernel_;  // null where there is nothing to compute
};

Attention Attention::prepare(const AttentionProblem& problem, const PrepareOptions& options) {
  return Attention(std::make_shared<const Impl>(problem, options));
}

void Attention::operator()(const AttentionOperands& operands, void* stream) const {
  impl_->call(operands, stream);
}

const std::string& Attention::config() const {
  return impl_->config;
}
const std::string& Attention::reason() const {
  return impl_->reason;
}
int64_t Attention::workspace_bytes() const {
  return impl_->workspace_bytes;
}

namespace {

using Key = std::pair<AttentionProblem, int>;

// Of what differs between the problems of a program; equal hashes are told apart by comparing.
struct KeyHash {
  size_t operator()(const Key& key) const {
    const AttentionProblem& p = key.first;
    size_t h = static_cast<size_t>(key.second);
    for (const int64_t x : {p.batch, p.heads, p.kv_heads, p.queries, p.keys, p.depth, p.width, p.window, p.q.row,
                            p.k.row, p.k.batch, p.pages ? p.pages->page : 0, p.pages ? p.pages->pages : 0,
                            static_cast<int64_t>(p.type) * 2 + static_cast<int64_t>(p.causal)}) {
      h = (h ^ static_cast<uint64_t>(x)) * 0x9E3779B97F4A7C15u + (h >> 29);
    }
    return h;
  }
};

struct AttentionCache {
  std::shared_mutex mutex;
  std::unordered_map<Key, Attention, KeyHash> map;
};

// Never destroyed: the driver may be gone when static variables are.
AttentionCache& attention_cache() {
  static auto* cache = new AttentionCache;
  return *cache;
}

}  // namespace

void attention(const AttentionProblem& problem, const AttentionOperands& operands, void* stream,
               const PrepareOptions& options) {
  AttentionCache& cache = attention_cache();
  const Key key(problem, options.device);
  {
    const std::shared_lock lock(cache.mutex);
    if (const auto found = cache.map.find(key); found != cache.map.end()) {
      return found->second(operands, stream);
    }
  }
  const Attention prepared = Attention::prepare(problem, options);
  {
    const std::lock_guard lock(cache.mutex);
    cache.map.try_emplace(key, prepared);
  }
  prepared(operands, stream);
}

}  // namespace heddle::ops
