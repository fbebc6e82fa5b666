#include "ir/builder.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "ir/reference/array.h"

namespace heddle::ir {
namespace {

Ints iota_ints(size_t count, int64_t first = 0) {
  Ints dims(count);
  std::iota(dims.begin(), dims.end(), first);
  return dims;
}

bool is_half(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16;
}

}  // namespace

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()));
  for (size_t i = 0; i < result.size(); ++i) {  // from the last dimension
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) {
      fail(ErrorCode::kInvalidNode, "",
           fmt::format("shapes {} and {} do not broadcast: extents {} and {} meet", heddle::to_string(a),
                       heddle::to_string(b), x, y));
    }
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

ValueId Builder::emit(Op op, std::vector<ValueId> inputs, Attrs attrs) {
  return graph_.emit(op, std::move(inputs), std::move(attrs), origins_);
}

std::vector<ValueId> Builder::emit_all(Op op, std::vector<ValueId> inputs, Attrs attrs) {
  return graph_.node(graph_.add(op, std::move(inputs), std::move(attrs), origins_)).outputs;
}

ValueId Builder::constant(Tensor value) {
  return graph_.constant(std::move(value), origins_);
}

ValueId Builder::scalar(DType dtype, double value) {
  Array array(dtype, {});
  if (array.real()) {
    array.f()[0] = value;
  } else {
    array.i()[0] = wrap(dtype, static_cast<int64_t>(value));
  }
  return constant(to_tensor(array));
}

ValueId Builder::full(DType dtype, Shape shape, double value) {
  return broadcast_to(scalar(dtype, value), shape);
}

ValueId Builder::iota(DType dtype, Shape shape, int64_t dim) {
  return emit(Op::kIota, {}, {{"dtype", dtype}, {"shape", std::move(shape)}, {"dim", dim}});
}

ValueId Builder::ints(const Ints& values) {
  return constant(Tensor::of<int64_t>(DType::kI64, {static_cast<int64_t>(values.size())}, std::span(values)));
}

ValueId Builder::binary(Op op, ValueId a, ValueId b) {
  const Shape to = broadcast_shapes(shape(a), shape(b));
  return emit(op, {broadcast_to(a, to), broadcast_to(b, to)});
}

ValueId Builder::binary(Op op, ValueId a, double b) {
  return binary(op, a, scalar(dtype(a), b));
}

ValueId Builder::select(ValueId condition, ValueId a, ValueId b) {
  const Shape to = broadcast_shapes(shape(condition), broadcast_shapes(shape(a), shape(b)));
  return emit(Op::kSelect, {broadcast_to(condition, to), broadcast_to(a, to), broadcast_to(b, to)});
}

ValueId Builder::cast(ValueId x, DType to, bool saturate) {
  if (dtype(x) == to) return x;
  Attrs attrs{{"to", to}};
  if (!saturate) attrs.set("saturate", int64_t{0});
  return emit(Op::kCast, {x}, std::move(attrs));
}

ValueId Builder::sigmoid(ValueId x) {
  const ValueId one = full(dtype(x), shape(x), 1);
  return emit(Op::kDiv, {one, emit(Op::kAdd, {one, unary(Op::kExp, unary(Op::kNeg, x))})});
}

ValueId Builder::broadcast_to(ValueId x, const Shape& to) {
  const Shape from = shape(x);
  if (from == to) return x;
  if (from.size() > to.size()) {
    fail(ErrorCode::kInvalidNode, "",
         fmt::format("{} does not broadcast to {}, which has fewer dimensions", heddle::to_string(from),
                     heddle::to_string(to)));
  }
  return broadcast(x, to, iota_ints(from.size(), static_cast<int64_t>(to.size() - from.size())));
}

ValueId Builder::broadcast(ValueId x, Shape to, Ints dims) {
  return emit(Op::kBroadcast, {x}, {{"shape", std::move(to)}, {"dims", std::move(dims)}});
}

ValueId Builder::reshape(ValueId x, Shape to) {
  if (shape(x) == to) return x;
  return emit(Op::kReshape, {x}, {{"shape", std::move(to)}});
}

ValueId Builder::transpose(ValueId x, Ints perm) {
  if (perm.size() == shape(x).size() && std::is_sorted(perm.begin(), perm.end()) && perm == iota_ints(perm.size())) {
    return x;
  }
  return emit(Op::kTranspose, {x}, {{"perm", std::move(perm)}});
}

ValueId Builder::slice(ValueId x, Ints starts, Ints limits, Ints strides) {
  const Shape& from = shape(x);
  if (strides.empty()) strides.assign(from.size(), 1);
  const bool whole = limits == from && std::all_of(starts.begin(), starts.end(), [](int64_t s) { return s == 0; }) &&
                     std::all_of(strides.begin(), strides.end(), [](int64_t s) { return s == 1; }) &&
                     starts.size() == from.size() && strides.size() == from.size();
  if (whole) return x;
  return emit(Op::kSlice, {x},
              {{"starts", std::move(starts)}, {"limits", std::move(limits)}, {"strides", std::move(strides)}});
}

ValueId Builder::slice_dim(ValueId x, int64_t dim, int64_t start, int64_t limit) {
  Ints starts(shape(x).size(), 0);
  Ints limits = shape(x);
  HEDDLE_CHECK(dim >= 0 && dim < rank(x), "slice of dimension {} of rank {}", dim, rank(x));
  starts[static_cast<size_t>(dim)] = start;
  limits[static_cast<size_t>(dim)] = limit;
  return slice(x, std::move(starts), std::move(limits));
}

ValueId Builder::concat(std::span<const ValueId> parts, int64_t dim) {
  if (parts.size() == 1) return parts[0];
  return emit(Op::kConcat, {parts.begin(), parts.end()}, {{"dim", dim}});
}

ValueId Builder::pad(ValueId x, ValueId value, Ints low, Ints high) {
  const auto none = [](const Ints& amounts) {
    return std::all_of(amounts.begin(), amounts.end(), [](int64_t a) { return a == 0; });
  };
  if (none(low) && none(high) && low.size() == shape(x).size() && high.size() == low.size()) return x;
  return emit(Op::kPad, {x, value}, {{"low", std::move(low)}, {"high", std::move(high)}, {"mode", "constant"}});
}

ValueId Builder::gather(ValueId data, ValueId indices, int64_t dim) {
  return emit(Op::kGather, {data, indices}, {{"dim", dim}});
}

ValueId Builder::reduce(std::string_view kind, ValueId x, Ints dims, bool keep) {
  std::sort(dims.begin(), dims.end());
  Shape kept = shape(x);
  const ValueId result = emit(Op::kReduce, {x}, {{"kind", std::string(kind)}, {"dims", dims}});
  if (!keep) return result;
  for (int64_t dim : dims) kept[static_cast<size_t>(dim)] = 1;
  return reshape(result, std::move(kept));
}

ValueId Builder::mean(ValueId x, Ints dims, bool keep) {
  const DType type = dtype(x);
  // The sum of a large f16 tensor does not fit f16 although its mean does.
  if (is_half(type)) return cast(mean(cast(x, DType::kF32), std::move(dims), keep), type);
  double count = 1;
  for (int64_t dim : dims) {
    HEDDLE_CHECK(dim >= 0 && dim < rank(x), "mean over dimension {} of rank {}", dim, rank(x));
    count *= static_cast<double>(shape(x)[static_cast<size_t>(dim)]);
  }
  const ValueId sum = reduce("sum", x, std::move(dims), keep);
  return binary(Op::kDiv, sum, count);
}

ValueId Builder::matmul(ValueId a, ValueId b, int64_t operand_bits) {
  const auto dot = [&](ValueId lhs, ValueId rhs, Ints lhs_batch, Ints rhs_batch, int64_t lhs_dim, int64_t rhs_dim) {
    Attrs attrs = {{"lhs_batch", std::move(lhs_batch)},
                   {"rhs_batch", std::move(rhs_batch)},
                   {"lhs_contract", Ints{lhs_dim}},
                   {"rhs_contract", Ints{rhs_dim}}};
    if (operand_bits > 0) attrs.set("operand_bits", operand_bits);
    return emit(Op::kDot, {lhs, rhs}, std::move(attrs));
  };
  if (rank(a) == 0 || rank(b) == 0) {
    fail(ErrorCode::kInvalidNode, "",
         fmt::format("matmul takes no scalars: {} and {}", to_string(type(a)), to_string(type(b))));
  }
  const int64_t inner_a = rank(a) - 1;
  const int64_t inner_b = std::max(rank(b) - 2, 0);
  // The order of dot's result dimensions (free of lhs, free of rhs) is already numpy's in these cases.
  if (rank(a) == 1 || rank(b) <= 2) return dot(a, b, {}, {}, inner_a, inner_b);

  const Shape a_shape = shape(a), b_shape = shape(b);
  const Shape a_batch(a_shape.begin(), a_shape.end() - 2), b_batch(b_shape.begin(), b_shape.end() - 2);
  const Shape batch = broadcast_shapes(a_batch, b_batch);
  const auto with = [](Shape lead, int64_t rows, int64_t columns) {
    lead.push_back(rows);
    lead.push_back(columns);
    return lead;
  };
  const int64_t rows = a_shape[a_shape.size() - 2], columns = b_shape.back();
  if (std::all_of(b_batch.begin(), b_batch.end(), [](int64_t extent) { return extent == 1; })) {
    const ValueId matrix = reshape(b, {b_shape[b_shape.size() - 2], columns});
    return reshape(dot(a, matrix, {}, {}, inner_a, 0), with(batch, rows, columns));
  }
  const ValueId lhs = broadcast_to(a, with(batch, rows, a_shape.back()));
  const ValueId rhs = broadcast_to(b, with(batch, b_shape[b_shape.size() - 2], columns));
  const Ints dims = iota_ints(batch.size());
  return dot(lhs, rhs, dims, dims, static_cast<int64_t>(batch.size()) + 1, static_cast<int64_t>(batch.size()));
}

ValueId Builder::softmax(ValueId x, Ints dims) {
  const ValueId e = unary(Op::kExp, sub(x, reduce("max", x, dims, true)));
  return div(e, reduce("sum", e, std::move(dims), true));
}

}  // namespace heddle::ir
