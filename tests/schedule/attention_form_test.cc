// Attention as models write it is one group, and what the schedule reads off it computes what its nodes compute.
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <map>

#include "attention_chains.h"
#include "ir/reference/eval.h"
#include "schedule/attention/form.h"
#include "schedule/expr/expr_walk.h"

namespace heddle {
namespace {

using schedule::AttentionForm;
using schedule::Expr;
using schedule::ExprId;
using schedule::Index;
using testing::AttentionChain;

using Values = std::map<ir::ValueId, ir::Array>;

double element(const ir::Array& array, int64_t at) {
  const auto i = static_cast<size_t>(at);
  return array.real() ? array.f().at(i) : static_cast<double>(array.i().at(i));
}

// A score's expression in float64.
class Interpreter {
 public:
  Interpreter(const schedule::ExprPool& pool, const Values& values) : pool_(pool), values_(values) {}
  std::map<schedule::VarId, int64_t> at;
  double product = 0;

  double eval(ExprId id) const {
    const Expr& e = pool_[id];
    const auto arg = [&](size_t i) { return eval(e.args[i]); };
    switch (e.kind) {
      case Expr::Kind::kConstant:
        return is_float(e.dtype) ? std::bit_cast<double>(e.bits) : static_cast<double>(static_cast<int64_t>(e.bits));
      case Expr::Kind::kLoad:
        return element(values_.at(e.id), index(e.index));
      case Expr::Kind::kLocal:
        EXPECT_EQ(e.id, 0u);
        return product;
      case Expr::Kind::kIndex:
        return static_cast<double>(index(e.index));
      case Expr::Kind::kGuard:
        return index(e.index) >= e.lo && index(e.index) < e.hi ? arg(0) : arg(1);
      default:
        break;
    }
    switch (e.op) {
      case ir::Op::kAdd:
        return arg(0) + arg(1);
      case ir::Op::kSub:
        return arg(0) - arg(1);
      case ir::Op::kMul:
        return arg(0) * arg(1);
      case ir::Op::kDiv:
        return arg(0) / arg(1);
      case ir::Op::kNeg:
        return -arg(0);
      case ir::Op::kTanh:
        return std::tanh(arg(0));
      case ir::Op::kCast:
        return arg(0);
      case ir::Op::kSelect:
        return arg(0) != 0 ? arg(1) : arg(2);
      case ir::Op::kLe:
        return arg(0) <= arg(1);
      case ir::Op::kLt:
        return arg(0) < arg(1);
      case ir::Op::kGe:
        return arg(0) >= arg(1);
      case ir::Op::kGt:
        return arg(0) > arg(1);
      case ir::Op::kNe:
        return arg(0) != arg(1);
      case ir::Op::kEq:
        return arg(0) == arg(1);
      case ir::Op::kAnd:
        return arg(0) != 0 && arg(1) != 0;
      case ir::Op::kNot:
        return arg(0) == 0;
      default:
        break;
    }
    ADD_FAILURE() << "no value of " << to_string(e.op);
    return 0;
  }
  int64_t index(const Index& i) const {
    int64_t sum = i.constant;
    for (const auto& [id, coefficient] : i.terms) {
      const schedule::Atom& atom = pool_.indices.atom(id);
      const bool var = atom.kind == schedule::Atom::Kind::kVar, div = atom.kind == schedule::Atom::Kind::kDiv;
      EXPECT_TRUE(var || div || atom.kind == schedule::Atom::Kind::kMod);
      const int64_t inner = var ? at.at(atom.id) : index(atom.arg);
      sum += coefficient * (var ? inner : div ? inner / atom.a : inner % atom.a);
    }
    return sum;
  }

 private:
  const schedule::ExprPool& pool_;
  const Values& values_;
};

// A row of the result in float64, from what the form says.
std::vector<double> row_of(const AttentionForm& form, const Values& values, int64_t batch, int64_t row) {
  int64_t q = form.q.offset + row * form.q.line, k = form.k.offset, v = form.v.offset, rest = batch;
  for (size_t i = form.batch.size(); i-- > 0;) {
    const AttentionForm::Batch& b = form.batch[i];
    const int64_t at = rest % b.extent;
    rest /= b.extent, q += at * b.q, k += at * b.k, v += at * b.v;
  }
  Interpreter score(form.scores, values);
  std::vector<double> scores;
  for (int64_t key = 0; key < form.keys; ++key) {
    score.product = 0;
    for (int64_t d = 0; d < form.depth; ++d) {
      score.product += element(values.at(form.q.value), q + d * form.q.element) *
                       element(values.at(form.k.value), k + key * form.k.line + d * form.k.element);
    }
    score.at = {{form.batch_var, batch}, {form.row_var, row}, {form.outer_var, 0}, {form.key_var, key}};
    scores.push_back(score.eval(form.softmax.score));
  }
  double top = *std::max_element(scores.begin(), scores.end()), sum = 0;
  if (std::isinf(top)) top = 0;
  std::vector<double> result(static_cast<size_t>(form.width), 0);
  for (const ExprId sink : form.softmax.sinks) sum += std::exp(score.eval(sink) - top);
  for (int64_t key = 0; key < form.keys; ++key) {
    const double weight = std::exp(scores[static_cast<size_t>(key)] - top);
    sum += weight;
    for (int64_t w = 0; w < form.width; ++w) {
      result[static_cast<size_t>(w)] +=
          weight * element(values.at(form.v.value), v + key * form.v.line + w * form.v.element);
    }
  }
  for (double& x : result) x = sum == 0 && form.softmax.zero_if_empty ? 0 : x / sum;
  return result;
}

Values evaluated(const ir::Graph& graph, std::mt19937& random) {
  Values values;
  std::vector<ir::Array> inputs;
  for (const auto& port : graph.inputs()) {
    ir::Array array(graph.dtype(port.value), graph.shape(port.value));
    const bool mask = port.name == "mask";
    std::normal_distribution<double> normal;
    if (array.real()) {
      for (double& x : array.f()) x = mask ? (random() % 3 == 0 ? -1e4 : 0) : normal(random);
    } else {
      for (int64_t& x : array.i()) x = random() % 3 != 0;
    }
    values[port.value] = array;
    inputs.push_back(std::move(array));
  }
  ir::EvalOptions options;
  options.observe = [&](ir::ValueId v, const ir::Array& array) { values[v] = array; };
  ir::evaluate(graph, std::move(inputs), options);
  for (ir::ValueId v = 0; v < graph.value_count(); ++v) {
    if (const Tensor* constant = graph.constant_of(v)) values[v] = ir::to_array(*constant);
  }
  return values;
}

void expect_near(double got, double want, double tolerance = 1e-5) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << got;
  } else {
    EXPECT_NEAR(got, want, tolerance * std::max(1.0, std::fabs(want)));
  }
}

std::string reasons(const ir::Grouping& grouping) {
  std::string text;
  for (const ir::Decision& d : grouping.decisions) {
    if (d.rule == "attention") text += d.what + ": " + d.reason + "\n";
  }
  return text;
}

void check(const AttentionChain& chain) {
  SCOPED_TRACE(chain.text());
  const ir::Graph given = chain.graph();
  const auto precision = chain.type == DType::kF32 ? passes::Precision::kF16 : passes::Precision::kF32;
  const ir::Graph graph = testing::optimized(given, precision);
  const ir::Grouping grouping = testing::grouped(graph, Target::cuda_h200(1));
  std::vector<ir::Group> found;
  for (const ir::Group& group : grouping.groups) {
    if (group.kind == ir::GroupKind::kAttention) found.push_back(group);
  }
  ASSERT_EQ(found.size(), 1u) << reasons(grouping);
  const AttentionForm form = schedule::attention_form(graph, found[0]);
  std::mt19937 random(7);
  const Values values = evaluated(graph, random);
  // The passes keep what the model computes; they round constants.
  const double tolerance = precision == passes::Precision::kF16 ? 2e-3 : 1e-5;
  std::mt19937 again(7);
  const Values before = evaluated(given, again);
  const ir::Array &y = values.at(graph.outputs()[0].value), &wanted = before.at(given.outputs()[0].value);
  for (size_t i = 0; i < y.f().size(); ++i) expect_near(y.f()[i], wanted.f()[i], tolerance);
  // And so does the form.
  const ir::ValueId result =
      form.divisions.empty() ? graph.node(form.values_product).outputs[0] : form.divisions.back().first;
  const Shape& shape = graph.shape(graph.node(form.values_product).outputs[0]);
  schedule::IndexPool pool;
  for (int64_t batch = 0; batch < form.batches(); ++batch) {
    for (int64_t row = 0; row < form.rows; ++row) {
      const std::vector<double> got = row_of(form, values, batch, row);
      for (int64_t w = 0; w < form.width; ++w) {
        const auto constant = [](int64_t x) { return schedule::IndexPool::constant(x); };
        std::vector<Index> at = form.result_at(pool, constant(batch), constant(row), constant(w));
        if (form.divisions.empty() || !chain.swapped) {  // else another order of elements
          expect_near(got[static_cast<size_t>(w)], element(values.at(result), pool.linear(at, shape).constant));
        }
      }
    }
    if (::testing::Test::HasFailure()) return;
  }
}

using Keys = AttentionChain::Keys;
using Scale = AttentionChain::Scale;
using Groups = AttentionChain::Groups;
using Mask = AttentionChain::Mask;
using Softmax = AttentionChain::Softmax;

TEST(AttentionForm, ScaleAnywhere) {
  for (const Scale scale :
       {Scale::kNone, Scale::kScores, Scale::kQuotient, Scale::kQuery, Scale::kBoth, Scale::kBehindMaximum}) {
    check({.scale = scale});
    check({.heads = 6, .groups = 2, .keys = Keys::kSequence, .scale = scale, .packed = false});
    check({.type = DType::kF32, .scale = scale});
  }
}

TEST(AttentionForm, FactorsOfQueriesAndKeysNeedNoKernel) {
  for (const Scale scale : {Scale::kQuery, Scale::kBoth}) {
    for (const DType type : {DType::kF16, DType::kF32}) {
      AttentionChain chain;
      chain.scale = scale, chain.type = type;
      const auto precision = type == DType::kF32 ? passes::Precision::kF16 : passes::Precision::kF32;
      const ir::Graph graph = testing::optimized(chain.graph(), precision);
      size_t with_muls = 0;
      for (const ir::Group& group : testing::grouped(graph, Target::cuda_h200(1)).groups) {
        const bool muls = std::any_of(group.nodes.begin(), group.nodes.end(),
                                      [&](ir::NodeId id) { return graph.node(id).op == ir::Op::kMul; });
        with_muls += muls ? 1 : 0;
      }
      EXPECT_EQ(with_muls, 1u);
    }
  }
}

TEST(AttentionForm, KeysInAnyLayout) {
  for (const Keys keys : {Keys::kHeads, Keys::kSequence, Keys::kFlat}) {
    check({.keys = keys});
    check({.batch = 3, .n = 12, .keys = keys, .packed = true});
    check({.n = 12, .keys = keys, .packed = true, .norm = true});
    check({.keys = keys, .swapped = true});
  }
}

TEST(AttentionForm, QueriesThatShareKeys) {
  for (const Groups shared : {Groups::kExpand, Groups::kBroadcast, Groups::kFreeDims}) {
    for (const int64_t groups : {1, 2}) {
      for (const int64_t m : {1, 5}) {
        check({.heads = 8,
               .groups = groups,
               .m = m,
               .shared = shared,
               .mask = m == 1 ? Mask::kAddPadding : Mask::kCausal});
        check({.batch = 1, .heads = 8, .groups = groups, .m = m, .shared = shared});
      }
    }
  }
}

TEST(AttentionForm, Masks) {
  for (const Mask mask : {Mask::kAddPadding, Mask::kAddMatrix, Mask::kSelectMin, Mask::kSelectInf, Mask::kSelectThenAdd,
                          Mask::kCausal, Mask::kCausalMin, Mask::kTriangle, Mask::kRows}) {
    check({.m = 16, .n = 3, .mask = mask});
    check({.type = DType::kF32, .mask = mask});
    check({.type = DType::kBF16, .mask = mask, .casts = false});
  }
}

TEST(AttentionForm, SoftmaxHoweverItIsWritten) {
  for (const Softmax softmax : {Softmax::kPlain, Softmax::kReciprocal, Softmax::kUnshifted, Softmax::kLog,
                                Softmax::kBehind, Softmax::kBehindFactor}) {
    check({.softmax = softmax});
    check({.type = DType::kF32, .softmax = softmax});
    if (softmax != Softmax::kUnshifted) check({.scale = Scale::kBoth, .mask = Mask::kSelectMin, .softmax = softmax});
  }
}

TEST(AttentionForm, GuardsOfRowsWithoutKeys) {
  for (const Softmax softmax : {Softmax::kIsNan, Softmax::kNotEqual, Softmax::kAllHidden, Softmax::kMaxHidden}) {
    check({.m = 16, .n = 3, .mask = Mask::kSelectInf, .softmax = softmax});
    check({.type = DType::kF32, .m = 16, .n = 3, .mask = Mask::kSelectInf, .softmax = softmax});
    check({.m = 16, .n = 3, .mask = Mask::kSelectInf, .softmax = softmax, .casts = false});
  }
}

TEST(AttentionForm, ScoresWithMore) {
  check({.cap = true});
  check({.bias = true});
  check({.slopes = true});
  check({.windows = true});
  check({.mask = Mask::kCausal, .cap = true, .bias = true, .slopes = true, .windows = true});
  check({.type = DType::kF32, .mask = Mask::kCausalMin, .norm = true, .cap = true, .bias = true});
}

// HEDDLE_CHAINS: how many, from HEDDLE_SEED on.
TEST(AttentionForm, RandomChains) {
  const auto setting = [](const char* name, int otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::atoi(text);
  };
  const int first = setting("HEDDLE_SEED", 1), count = setting("HEDDLE_CHAINS", 40);
  for (int seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(static_cast<unsigned>(seed));
    check(testing::random_chain(random));
    if (HasFailure()) return;
  }
}

TEST(AttentionForm, SinksAreRecognised) {
  AttentionChain chain;
  chain.sink = true;
  const ir::Graph graph = testing::optimized(chain.graph(), passes::Precision::kF32);
  const ir::Grouping grouping = testing::grouped(graph, Target::cuda_h200(1));
  EXPECT_THAT(reasons(grouping), ::testing::HasSubstr("scores stay in registers"));
}

TEST(AttentionForm, OtherTargetsSayWhyThereIsNone) {
  const ir::Graph graph = testing::optimized(AttentionChain().graph(), passes::Precision::kF32);
  Target turing = Target::cuda_h200(1);
  turing.cuda.sm = 75;
  for (const Target& target : {turing, Target()}) {
    const ir::Grouping grouping = testing::grouped(graph, target);
    for (const ir::Group& group : grouping.groups) EXPECT_NE(group.kind, ir::GroupKind::kAttention);
    EXPECT_NE(reasons(grouping), "");
  }
}

}  // namespace
}  // namespace heddle
