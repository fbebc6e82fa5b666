#include "schedule/expr/inline.h"

#include "base/check.h"
#include "tile/core/pack.h"

namespace heddle::schedule {

bool Inliner::inlines(Op op) {
  if (ir::is_elementwise(op) || ir::class_of(op) == ir::OpClass::kLayout) return true;
  switch (op) {
    case Op::kConstant:
    case Op::kIota:
    case Op::kRandom:
    case Op::kGather:
    case Op::kGatherElements:
    case Op::kGatherNd:
    case Op::kDequantize:
      return true;
    default:
      return false;
  }
}

ExprId Inliner::at(ir::ValueId value, const std::vector<Index>& index) {
  const auto key = std::make_pair(value, index);
  if (const auto known = memo_.find(key); known != memo_.end()) return known->second;
  const ExprId result = make(value, index);
  memo_.emplace(key, result);
  return result;
}

ExprId Inliner::make(ir::ValueId value, const std::vector<Index>& index) {
  if (binding_) {
    if (const auto bound = binding_(value, index)) return *bound;
  }
  const ir::Node& node = graph_.producer(value);
  const DType dtype = graph_.dtype(value);
  if (ir::is_elementwise(node.op)) {
    const ExprId e = elementwise(node, index, dtype);
    std::string origin = node.origins.empty() ? "" : " of " + graph_.origin(node.origins[0]).op_type;
    pool_.describe(e, std::string(ir::to_string(node.op)) + origin);
    return e;
  }
  switch (node.op) {
    case Op::kConstant: {
      const auto splat = splat_of(pool_, node.attrs.tensor("value"));
      HEDDLE_CHECK(splat.has_value(), "a constant {} is not bound", ir::to_string(graph_.type(value)));
      return *splat;
    }
    case Op::kIota:
      return pool_.add(
          {.kind = Expr::Kind::kIndex, .dtype = dtype, .index = index[static_cast<size_t>(node.attrs.integer("dim"))]});
    case Op::kRandom:
      return pool_.add({.kind = Expr::Kind::kRandom,
                        .dtype = dtype,
                        .index = pool_.indices.linear(index, graph_.shape(value)),
                        .lo = node.attrs.text("kind") == "normal",
                        .bits = static_cast<uint64_t>(node.attrs.integer("seed"))});
    case Op::kPad:
      return pad(node, index);
    case Op::kConcat:
      return concat(node, index);
    case Op::kGather:
    case Op::kGatherElements:
    case Op::kGatherNd:
      return indexed(node, index);
    case Op::kDequantize:
      return dequantized(node, index);
    default:
      break;
  }
  if (ir::class_of(node.op) == ir::OpClass::kLayout) return layout(node, index);
  fail(ErrorCode::kUnsupportedOperator, std::string(ir::to_string(node.op)), "it has no per-element form");
}

ExprId Inliner::elementwise(const ir::Node& node, const std::vector<Index>& index, DType dtype) {
  Expr e{.kind = Expr::Kind::kOp, .dtype = dtype, .op = node.op};
  for (ir::ValueId input : node.inputs) e.args.push_back(at(input, index));
  if (node.op == Op::kCast) return cast(node, e.args[0]);
  if (node.attrs.has("rounded")) e.lo = node.attrs.integer("rounded");
  if (node.op == Op::kIsInf) {
    e.lo = node.attrs.integer("positive");
    e.hi = node.attrs.integer("negative");
  }
  return pool_.add(std::move(e));
}

ExprId Inliner::cast(const ir::Node& node, ExprId value) {
  const DType dtype = graph_.dtype(node.outputs[0]);
  if (pool_[value].dtype == dtype) return value;
  const int64_t saturate = node.attrs.has("saturate") ? node.attrs.integer("saturate") : 1;
  const int64_t excess = node.attrs.has("excess_precision") ? node.attrs.integer("excess_precision") : 0;
  return pool_.add(
      {.kind = Expr::Kind::kOp, .dtype = dtype, .op = Op::kCast, .args = {value}, .lo = saturate, .hi = excess});
}

ExprId Inliner::layout(const ir::Node& node, const std::vector<Index>& index) {
  const ir::ValueId input = node.inputs[0];
  const Shape& shape = graph_.shape(input);
  IndexPool& indices = pool_.indices;
  std::vector<Index> to(shape.size());
  switch (node.op) {
    case Op::kBroadcast: {
      const auto& dims = node.attrs.ints("dims");
      for (size_t d = 0; d < shape.size(); ++d) {
        if (shape[d] != 1) to[d] = index[static_cast<size_t>(dims[d])];
      }
      break;
    }
    case Op::kReshape:
      to = indices.delinear(indices.linear(index, graph_.shape(node.outputs[0])), shape);
      break;
    case Op::kTranspose: {
      const auto& perm = node.attrs.ints("perm");
      for (size_t d = 0; d < perm.size(); ++d) to[static_cast<size_t>(perm[d])] = index[d];
      break;
    }
    case Op::kSlice: {
      const auto& starts = node.attrs.ints("starts");
      const auto& strides = node.attrs.ints("strides");
      for (size_t d = 0; d < shape.size(); ++d) {
        to[d] = indices.offset(indices.scale(index[d], strides[d]), starts[d]);
      }
      break;
    }
    case Op::kReverse: {
      to = index;
      for (int64_t dim : node.attrs.ints("dims")) {
        const auto d = static_cast<size_t>(dim);
        to[d] = indices.offset(indices.scale(index[d], -1), shape[d] - 1);
      }
      break;
    }
    default:
      fail(ErrorCode::kUnsupportedOperator, std::string(ir::to_string(node.op)), "it has no per-element form");
  }
  return at(input, to);
}

ExprId Inliner::pad(const ir::Node& node, const std::vector<Index>& index) {
  const Shape& shape = graph_.shape(node.inputs[0]);
  const auto& low = node.attrs.ints("low");
  const std::string& mode = node.attrs.text("mode");
  IndexPool& indices = pool_.indices;
  std::vector<Index> to(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    to[d] = indices.offset(index[d], -low[d]);
    if (shape[d] == 0) continue;
    if (mode == "edge") to[d] = indices.clamp(to[d], 0, shape[d] - 1);
    if (mode == "reflect") to[d] = indices.reflect(to[d], shape[d]);
    if (mode == "wrap") to[d] = indices.mod(to[d], shape[d]);
  }
  if (mode != "constant") return at(node.inputs[0], to);
  const ExprId fill = at(node.inputs[1], {});
  bool outside = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    const Range r = indices.range(to[d]);
    outside = outside || r.hi < 0 || r.lo >= shape[d];
  }
  if (outside) return fill;
  ExprId result = at(node.inputs[0], to);
  for (size_t d = shape.size(); d-- > 0;) result = pool_.guard(to[d], 0, shape[d], result, fill);
  return result;
}

ExprId Inliner::concat(const ir::Node& node, const std::vector<Index>& index) {
  const auto d = static_cast<size_t>(node.attrs.integer("dim"));
  IndexPool& indices = pool_.indices;
  const Range range = indices.range(index[d]);
  struct Part {
    ir::ValueId input;
    int64_t start, limit;
  };
  std::vector<Part> parts;
  int64_t start = 0;
  for (ir::ValueId input : node.inputs) {
    const int64_t limit = start + graph_.shape(input)[d];
    if (limit > start && range.hi >= start && range.lo < limit) parts.push_back({input, start, limit});
    start = limit;
  }
  HEDDLE_CHECK(!parts.empty());
  // A chain of guards for few parts; halves of halves for many.
  constexpr size_t kMostInChain = 8;
  const std::function<ExprId(size_t, size_t)> choose = [&](size_t first, size_t end) {
    const size_t split = end - first <= kMostInChain ? first + 1 : first + (end - first) / 2;
    const ExprId rest = split < end ? choose(split, end) : 0;
    if (split > first + 1) {
      return pool_.guard(index[d], parts[first].start, parts[split - 1].limit, choose(first, split), rest);
    }
    std::vector<Index> to = index;
    to[d] = indices.offset(index[d], -parts[first].start);
    const ExprId part = at(parts[first].input, to);
    return split < end ? pool_.guard(index[d], parts[first].start, parts[first].limit, part, rest) : part;
  };
  return choose(0, parts.size());
}

// The index that an expression yields, where it is one that needs no computation and lies inside.
Index Inliner::position(ExprId value, int64_t extent) {
  IndexPool& indices = pool_.indices;
  const Expr& e = pool_[value];
  if (e.kind == Expr::Kind::kIndex && !is_float(e.dtype)) {
    const Range range = indices.range(e.index);
    if (range.lo >= 0 && range.hi < extent) return e.index;
  }
  return indices.dynamic(value, extent);
}

ExprId Inliner::indexed(const ir::Node& node, const std::vector<Index>& index) {
  const ir::ValueId data = node.inputs[0], positions = node.inputs[1];
  const Shape& shape = graph_.shape(data);
  const size_t rank = graph_.shape(positions).size();
  if (node.op == Op::kGather) {
    const auto dim = static_cast<size_t>(node.attrs.integer("dim"));
    const auto middle = index.begin() + static_cast<int64_t>(dim), tail = middle + static_cast<int64_t>(rank);
    std::vector<Index> to(index.begin(), middle);
    to.push_back(position(at(positions, {middle, tail}), shape[dim]));
    to.insert(to.end(), tail, index.end());
    return at(data, to);
  }
  if (node.op == Op::kGatherElements) {
    const auto dim = static_cast<size_t>(node.attrs.integer("dim"));
    std::vector<Index> to = index;
    to[dim] = position(at(positions, index), shape[dim]);
    return at(data, to);
  }
  // gather_nd: positions [batch..., outer..., depth] select data[batch..., depth indices..., rest...].
  const auto batch = static_cast<size_t>(node.attrs.integer("batch_dims"));
  const auto depth = static_cast<size_t>(graph_.shape(positions).back());
  std::vector<Index> from(index.begin(), index.begin() + static_cast<int64_t>(rank) - 1);
  std::vector<Index> to(index.begin(), index.begin() + static_cast<int64_t>(batch));
  for (size_t i = 0; i < depth; ++i) {
    from.push_back(IndexPool::constant(static_cast<int64_t>(i)));
    to.push_back(position(at(positions, from), shape[batch + i]));
    from.pop_back();
  }
  to.insert(to.end(), index.begin() + static_cast<int64_t>(rank) - 1, index.end());
  return at(data, to);
}

// An integer of a word, minus its zero point or as an index into a table, times the scale of its block.
ExprId Inliner::dequantized(const ir::Node& node, const std::vector<Index>& index) {
  const int64_t bits = node.attrs.integer("bits"), per_word = tile::packed_per_word(bits);
  IndexPool& indices = pool_.indices;
  const std::vector<Index> block = {index[0], indices.div(index[1], node.attrs.integer("block"))};
  const auto op = [&](Op what, ExprId a, ExprId b) {
    return pool_.add({.kind = Expr::Kind::kOp, .dtype = pool_[a].dtype, .op = what, .args = {a, b}});
  };
  const auto to_f32 = [&](ExprId value) {
    if (pool_[value].dtype == DType::kF32) return value;
    return pool_.add({.kind = Expr::Kind::kOp, .dtype = DType::kF32, .op = Op::kCast, .args = {value}, .lo = 1});
  };
  const Index place = indices.mod(index[1], per_word);
  const Index shift = indices.add(indices.scale(indices.mod(place, 4), 8), indices.scale(indices.div(place, 4), bits));
  const ExprId word = at(node.inputs[0], {index[0], indices.div(index[1], per_word)});
  const ExprId by = pool_.add({.kind = Expr::Kind::kIndex, .dtype = DType::kU32, .index = shift});
  const ExprId q = op(Op::kAnd, op(Op::kShr, word, by), pool_.integer(DType::kU32, (int64_t{1} << bits) - 1));
  const bool has_third = node.inputs.size() == 3;
  ExprId value = 0;
  if (has_third && graph_.shape(node.inputs[2]).size() == 1) {
    value = to_f32(at(node.inputs[2], {indices.dynamic(q, int64_t{1} << bits, true)}));
  } else {
    const auto zero = static_cast<double>(node.attrs.integer("zero"));
    value = op(Op::kSub, to_f32(q), has_third ? to_f32(at(node.inputs[2], block)) : pool_.constant(DType::kF32, zero));
  }
  const ExprId result = op(Op::kMul, value, to_f32(at(node.inputs[1], block)));
  if (graph_.dtype(node.outputs[0]) == DType::kF32) return result;
  return pool_.add(
      {.kind = Expr::Kind::kOp, .dtype = graph_.dtype(node.outputs[0]), .op = Op::kCast, .args = {result}, .lo = 1});
}

}  // namespace heddle::schedule
