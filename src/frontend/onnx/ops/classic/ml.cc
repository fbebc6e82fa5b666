#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "frontend/onnx/lowering/op_helpers.h"
#include "frontend/onnx/node_context.h"
#include "frontend/onnx/op_registry.h"
#include "ir/reference/array.h"

namespace heddle::onnx {
namespace {

// One side of a LabelEncoder: a vector of text or numbers.
std::optional<Tensor> read_list(const NodeContext& ctx, const std::string& side) {
  if (ctx.has_attr(side + "_tensor")) return ctx.attr_tensor(side + "_tensor");
  if (ctx.has_attr(side + "_strings")) {
    std::vector<std::string> values = ctx.attr_strings(side + "_strings");
    const auto count = static_cast<int64_t>(values.size());
    return Tensor::of_strings({count}, std::move(values));
  }
  if (ctx.has_attr(side + "_int64s")) {
    const Ints values = ctx.attr_ints(side + "_int64s");
    return Tensor::of<int64_t>(DType::kI64, {static_cast<int64_t>(values.size())}, std::span(values));
  }
  if (ctx.has_attr(side + "_floats")) {
    const auto wide = ctx.attr_floats(side + "_floats");
    const std::vector<float> values(wide.begin(), wide.end());
    return Tensor::of<float>(DType::kF32, {static_cast<int64_t>(values.size())}, std::span(values));
  }
  return std::nullopt;
}

// The value of labels that are no key, as a tensor of one element of `dtype`.
Tensor default_label(const NodeContext& ctx, DType dtype) {
  if (ctx.has_attr("default_tensor")) {
    const Tensor given = ctx.attr_tensor("default_tensor");
    if (given.dtype() != dtype || given.size() != 1) ctx.invalid("default_tensor differs from the values in type");
    return given;
  }
  if (dtype == DType::kString) return Tensor::of_strings({1}, {ctx.attr_string("default_string", "_Unused")});
  ir::Array value(dtype, {1});
  if (value.real()) {
    value.f()[0] = ctx.attr_float("default_float", -0.0);
  } else {
    value.i()[0] = ctx.attr_int("default_int64", -1);
  }
  return ir::to_tensor(value);
}

// Text in, or text out: computed here.
void encode_constant(NodeContext& ctx, const Tensor& keys, const Tensor& values) {
  const Tensor x = ctx.constant(0);
  if (x.dtype() != keys.dtype()) ctx.invalid("the keys differ from the input in type");
  const Tensor otherwise = default_label(ctx, values.dtype());
  std::map<std::string, size_t> index;  // numbers by their bytes
  const auto key_of = [](const Tensor& t, size_t i) {
    if (t.dtype() == DType::kString) return t.strings()[i];
    const size_t size = size_of(t.dtype());
    return std::string(static_cast<const char*>(t.data()) + i * size, size);
  };
  for (size_t i = 0; i < static_cast<size_t>(keys.size()); ++i) index[key_of(keys, i)] = i;
  std::vector<int64_t> picked;
  for (size_t i = 0; i < static_cast<size_t>(x.size()); ++i) {
    const auto at = index.find(key_of(x, i));
    picked.push_back(at == index.end() ? -1 : static_cast<int64_t>(at->second));
  }
  if (values.dtype() == DType::kString) {
    std::vector<std::string> out;
    for (int64_t at : picked)
      out.push_back(at < 0 ? otherwise.strings()[0] : values.strings()[static_cast<size_t>(at)]);
    ctx.set(0, Value::strings(Tensor::of_strings(x.shape(), std::move(out))));
    return;
  }
  Tensor out(values.dtype(), x.shape());
  const size_t size = size_of(values.dtype());
  for (size_t i = 0; i < picked.size(); ++i) {
    const auto* from = picked[i] < 0 ? static_cast<const char*>(otherwise.data())
                                     : static_cast<const char*>(values.data()) + static_cast<size_t>(picked[i]) * size;
    std::memcpy(static_cast<char*>(out.mutable_data()) + i * size, from, size);
  }
  ctx.set(0, ctx.b.constant(std::move(out)));
}

void lower_label_encoder(NodeContext& ctx) {
  ir::Builder& b = ctx.b;
  const auto keys = read_list(ctx, "keys"), values = read_list(ctx, "values");
  if (!keys || !values || keys->size() != values->size() || keys->size() == 0) {
    ctx.invalid("keys and values must be lists of one length");
  }
  if (keys->dtype() == DType::kString || values->dtype() == DType::kString) {
    return encode_constant(ctx, *keys, *values);
  }
  if (ctx.dtype(0) != keys->dtype()) ctx.invalid("the keys differ from the input in type");
  const int64_t count = keys->size();
  Shape shape = ctx.shape(0), wide = shape, column = shape;
  wide.push_back(count);
  column.push_back(1);
  const ValueId x = b.broadcast_to(b.reshape(ctx.in(0), column), wide);
  const ValueId all_keys = b.broadcast_to(b.constant(keys->reshaped({count})), wide);
  ValueId hits = b.binary(Op::kEq, x, all_keys);
  if (is_float(keys->dtype())) {
    hits = b.binary(Op::kOr, hits, b.binary(Op::kAnd, b.unary(Op::kIsNan, x), b.unary(Op::kIsNan, all_keys)));
  }
  const auto last = static_cast<int64_t>(shape.size());
  const ValueId at =
      b.emit(Op::kArgReduce, {b.cast(hits, DType::kI32)}, {{"kind", "max"}, {"dim", last}, {"last", int64_t{1}}});
  const ValueId found = b.reduce("any", hits, {last});
  const ValueId value = b.gather(b.constant(values->reshaped({count})), at, 0);
  ctx.set(0, b.select(found, value, b.constant(default_label(ctx, values->dtype()).reshaped({}))));
}

void lower_feature_extractor(NodeContext& ctx) {
  ir::Builder& b = ctx.b;
  if (ctx.rank(0) < 1) ctx.invalid("the input has no dimension");
  const ValueId at = b.reshape(ctx.in(1), {element_count(ctx.shape(1))});
  ValueId x = ctx.in(0);
  if (ctx.rank(0) == 1) x = b.reshape(x, {1, ctx.shape(0)[0]});
  ctx.set(0, b.gather(x, at, b.rank(x) - 1));
}

void lower_binarizer(NodeContext& ctx) {
  ir::Builder& b = ctx.b;
  const ValueId x = ctx.in(0);
  const ValueId threshold = b.scalar(b.dtype(x), ctx.attr_float("threshold", 0));
  ctx.set(0, b.cast(b.binary(Op::kGt, x, threshold), b.dtype(x)));
}

// A forest as one table of nodes, leaves being nodes that lead to themselves: all rows walk all trees at once, one
// level per step.
struct Forest {
  std::vector<int64_t> features, modes, on_true, on_false, missing_true, leaf_targets;
  std::vector<double> splits, leaf_weights;
  std::vector<std::vector<double>> members;  // of BRANCH_MEMBER nodes, by node
  Ints roots;
  int64_t leaves_at = 0;  // nodes from here on are leaves
  int64_t depth = 0;
};

enum Mode : int64_t { kLessEqual, kLess, kGreaterEqual, kGreater, kEqual, kNotEqual, kMember };

std::vector<double> reals_of(const NodeContext& ctx, const char* name) {
  const ir::Array array = ir::to_array(ctx.attr_tensor(name));
  if (!array.real()) ctx.invalid(fmt::format("{} must be floating", name));
  return array.f();
}

int64_t depth_of(const NodeContext& ctx, const Forest& f) {
  // Children of an interior node may come before it, so levels are counted breadth first.
  std::vector<int64_t> level = f.roots;
  std::vector<bool> seen(static_cast<size_t>(f.leaves_at), false);
  int64_t depth = 0;
  for (;; ++depth) {
    std::vector<int64_t> next;
    for (int64_t node : level) {
      if (node >= f.leaves_at) continue;
      const auto n = static_cast<size_t>(node);
      if (seen[n]) ctx.invalid("the trees share nodes or have a cycle");
      seen[n] = true;
      next.push_back(f.on_true[n]);
      next.push_back(f.on_false[n]);
    }
    if (next.empty()) return depth;
    level = std::move(next);
  }
}

Forest read_forest(const NodeContext& ctx, int64_t feature_count, int64_t targets) {
  Forest f;
  f.features = ctx.attr_ints("nodes_featureids");
  const size_t nodes = f.features.size();
  f.modes = ir::to_array(ctx.attr_tensor("nodes_modes")).i();
  f.splits = reals_of(ctx, "nodes_splits");
  f.on_true = ctx.attr_ints("nodes_truenodeids");
  f.on_false = ctx.attr_ints("nodes_falsenodeids");
  f.missing_true = ctx.attr_ints("nodes_missing_value_tracks_true", Ints(nodes, 0));
  f.leaf_targets = ctx.attr_ints("leaf_targetids");
  f.leaf_weights = reals_of(ctx, "leaf_weights");
  f.roots = ctx.attr_ints("tree_roots");
  f.leaves_at = static_cast<int64_t>(nodes);
  const Ints true_leaf = ctx.attr_ints("nodes_trueleafs"), false_leaf = ctx.attr_ints("nodes_falseleafs");
  for (size_t size : {f.modes.size(), f.splits.size(), f.on_true.size(), f.on_false.size(), f.missing_true.size(),
                      true_leaf.size(), false_leaf.size()}) {
    if (size != nodes) ctx.invalid("the lists of the nodes differ in length");
  }
  const auto leaves = static_cast<int64_t>(f.leaf_targets.size());
  if (f.leaf_weights.size() != f.leaf_targets.size() || leaves == 0 || nodes == 0 || f.roots.empty()) {
    ctx.invalid("the lists of the leaves differ in length, or the forest is empty");
  }
  const auto within = [](int64_t v, int64_t n) { return v >= 0 && v < n; };
  for (size_t n = 0; n < nodes; ++n) {
    const bool ok = within(f.on_true[n], true_leaf[n] != 0 ? leaves : f.leaves_at) &&
                    within(f.on_false[n], false_leaf[n] != 0 ? leaves : f.leaves_at) &&
                    within(f.features[n], feature_count) && within(f.modes[n], kMember + 1);
    if (!ok) ctx.invalid(fmt::format("node {} of the forest refers to something that does not exist", n));
    if (true_leaf[n] != 0) f.on_true[n] += f.leaves_at;
    if (false_leaf[n] != 0) f.on_false[n] += f.leaves_at;
  }
  for (int64_t target : f.leaf_targets) {
    if (!within(target, targets)) ctx.invalid(fmt::format("a leaf has the target {} of {}", target, targets));
  }
  for (int64_t root : f.roots) {
    if (!within(root, f.leaves_at)) ctx.invalid(fmt::format("a tree has the root {}", root));
  }
  f.members.resize(nodes);
  if (ctx.has_attr("membership_values")) {
    const std::vector<double> all = reals_of(ctx, "membership_values");
    auto at = all.begin();
    for (size_t n = 0; n < nodes; ++n) {
      if (f.modes[n] != kMember) continue;
      for (; at != all.end() && !std::isnan(*at); ++at) f.members[n].push_back(*at);
      if (at != all.end()) ++at;
    }
  }
  f.depth = depth_of(ctx, f);
  return f;
}

// Whether x[row, tree] takes the true branch of node[row, tree].
ValueId takes_true(ir::Builder& b, const Forest& f, ValueId x, ValueId node) {
  const DType dtype = b.dtype(x);
  const auto nodes = static_cast<int64_t>(f.features.size());
  const auto table = [&](const std::vector<int64_t>& values) {
    return b.gather(int_constant(b, {nodes}, values), node, 0);
  };
  const ValueId split = b.gather(real_constant(b, dtype, {nodes}, f.splits), node, 0);
  const ValueId mode = table(f.modes);
  constexpr std::array kCompare = {Op::kLe, Op::kLt, Op::kGe, Op::kGt, Op::kEq, Op::kNe};
  ValueId result = b.scalar(DType::kBool, 0);
  for (int64_t m = 0; m < static_cast<int64_t>(kCompare.size()); ++m) {
    if (std::find(f.modes.begin(), f.modes.end(), m) == f.modes.end()) continue;
    result = b.select(b.binary(Op::kEq, mode, static_cast<double>(m)),
                      b.binary(kCompare[static_cast<size_t>(m)], x, split), result);
  }
  size_t most = 0;
  for (const auto& set : f.members) most = std::max(most, set.size());
  if (most > 0) {
    std::vector<double> padded;  // NaN equals nothing
    for (const auto& set : f.members) {
      for (size_t i = 0; i < most; ++i) padded.push_back(i < set.size() ? set[i] : std::nan(""));
    }
    const auto width = static_cast<int64_t>(most);
    const ValueId sets = b.gather(real_constant(b, dtype, {nodes, width}, std::move(padded)), node, 0);
    Shape column = b.shape(x);
    column.push_back(1);
    const ValueId hit = b.reduce("any", b.binary(Op::kEq, sets, b.reshape(x, column)), {b.rank(x)});
    result = b.select(b.binary(Op::kEq, mode, static_cast<double>(kMember)), hit, result);
  }
  const ValueId missing = b.binary(Op::kNe, table(f.missing_true), 0.0);
  return b.binary(Op::kOr, result, b.binary(Op::kAnd, b.unary(Op::kIsNan, x), missing));
}

void lower_tree_ensemble(NodeContext& ctx) {
  ir::Builder& b = ctx.b;
  if (ctx.rank(0) != 2) ctx.invalid("an input [N,F] expected");
  const int64_t rows = ctx.shape(0)[0], targets = ctx.attr_int("n_targets");
  if (targets < 1) ctx.invalid("n_targets must be positive");
  const int64_t aggregate = ctx.attr_int("aggregate_function", 1);
  if (aggregate < 0 || aggregate > 3) ctx.invalid("aggregate_function is unknown");
  if (ctx.attr_int("post_transform", 0) != 0) ctx.unsupported("post_transform of a TreeEnsemble");
  const DType dtype = ctx.dtype(0);
  const Forest f = read_forest(ctx, ctx.shape(0)[1], targets);
  const auto trees = static_cast<int64_t>(f.roots.size());
  ValueId at = b.broadcast_to(int_constant(b, {trees}, f.roots), {rows, trees});
  for (int64_t level = 0; level < f.depth; ++level) {
    const ValueId done = b.binary(Op::kGe, at, static_cast<double>(f.leaves_at));
    const ValueId node = b.binary(Op::kMin, at, static_cast<double>(f.leaves_at - 1));
    const ValueId feature = b.gather(int_constant(b, {f.leaves_at}, f.features), node, 0);
    const ValueId x = b.emit(Op::kGatherElements, {ctx.in(0), feature}, {{"dim", int64_t{1}}});
    const ValueId next =
        b.select(takes_true(b, f, x, node), b.gather(int_constant(b, {f.leaves_at}, f.on_true), node, 0),
                 b.gather(int_constant(b, {f.leaves_at}, f.on_false), node, 0));
    at = b.select(done, at, next);
  }
  const ValueId leaf = b.binary(Op::kSub, at, static_cast<double>(f.leaves_at));
  const auto leaves = static_cast<int64_t>(f.leaf_targets.size());
  const ValueId weight = b.gather(real_constant(b, dtype, {leaves}, f.leaf_weights), leaf, 0);
  const ValueId target = b.gather(int_constant(b, {leaves}, f.leaf_targets), leaf, 0);
  // [rows, trees, targets]: the weight where the leaf is of the target, else neutral.
  const Shape wide = {rows, trees, targets};
  const ValueId hit = b.binary(Op::kEq, b.reshape(target, {rows, trees, 1}), b.iota(DType::kI64, wide, 2));
  const double infinity = std::numeric_limits<double>::infinity();
  const double neutral = aggregate == 2 ? infinity : aggregate == 3 ? -infinity : 0;
  const ValueId votes = b.select(hit, b.reshape(weight, {rows, trees, 1}), b.full(dtype, wide, neutral));
  ValueId y = b.reduce(aggregate == 2 ? "min" : aggregate == 3 ? "max" : "sum", votes, {1});
  if (aggregate == 0) y = b.binary(Op::kDiv, y, static_cast<double>(trees));
  ctx.set(0, y);
}

}  // namespace

std::span<const OpHandler> ml_ops() {
  static constexpr std::array kTable = {
      OpHandler{"ai.onnx.ml", "ArrayFeatureExtractor", 1, kAnyVersion, lower_feature_extractor},
      OpHandler{"ai.onnx.ml", "Binarizer", 1, kAnyVersion, lower_binarizer},
      OpHandler{"ai.onnx.ml", "LabelEncoder", 2, kAnyVersion, lower_label_encoder},
      OpHandler{"ai.onnx.ml", "TreeEnsemble", 5, kAnyVersion, lower_tree_ensemble},
  };
  return kTable;
}

}  // namespace heddle::onnx
