#include <algorithm>
#include <numeric>

#include "ir/ops/combine.h"
#include "ir/ops/families.h"
#include "ir/ops/rules.h"
#include "ir/ops/strided.h"

namespace heddle::ir {
namespace {

void require_kind(const std::string& kind) {
  require(kind == "sum" || kind == "prod" || kind == "max" || kind == "min",
          "kind = \"{}\" is none of \"sum\", \"prod\", \"max\", \"min\"", kind);
}

std::vector<TensorType> infer_reduce(const InferContext& c) {
  const TensorType& x = c.inputs[0];
  const std::string& kind = c.attrs.text("kind");
  const Ints& dims = c.attrs.ints("dims");
  if (kind == "any" || kind == "all") {
    require(x.dtype == DType::kBool, "reduce \"{}\" takes bool, not {}", kind, x.dtype);
  } else {
    require_kind(kind);
    require(is_number(x.dtype), "reduce \"{}\" takes numbers, not {}", kind, x.dtype);
  }
  require_dims("dims", dims, x.shape);
  Shape to;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (!std::binary_search(dims.begin(), dims.end(), static_cast<int64_t>(i))) to.push_back(x.shape[i]);
  }
  return {{x.dtype, std::move(to)}};
}

std::vector<TensorType> infer_arg_reduce(const InferContext& c) {
  const TensorType& x = c.inputs[0];
  const std::string& kind = c.attrs.text("kind");
  const int64_t dim = c.attrs.integer("dim");
  require(kind == "max" || kind == "min", "kind = \"{}\" is neither \"max\" nor \"min\"", kind);
  require(is_number(x.dtype), "arg_reduce takes numbers, not {}", x.dtype);
  require_dim("dim", dim, x.shape);
  require(x.shape[static_cast<size_t>(dim)] > 0, "dimension {} of {} is empty: there is no index to give", dim,
          x.shape);
  Shape to = x.shape;
  to.erase(to.begin() + dim);
  return {{DType::kI64, std::move(to)}};
}

std::vector<TensorType> infer_scan(const InferContext& c) {
  require_kind(c.attrs.text("kind"));
  require(is_number(c.inputs[0].dtype), "scan takes numbers, not {}", c.inputs[0].dtype);
  require_dim("dim", c.attrs.integer("dim"), c.inputs[0].shape);
  return {c.inputs[0]};
}

std::vector<TensorType> infer_topk(const InferContext& c) {
  TensorType type = c.inputs[0];
  const int64_t dim = c.attrs.integer("dim");
  const int64_t k = c.attrs.integer("k");
  require(is_number(type.dtype), "topk takes numbers, not {}", type.dtype);
  require_dim("dim", dim, type.shape);
  int64_t& extent = type.shape[static_cast<size_t>(dim)];
  require(k >= 0 && k <= extent, "k = {} is not within 0 and the extent {} of dimension {}", k, extent, dim);
  extent = k;
  Shape shape = type.shape;
  return {std::move(type), {DType::kI64, std::move(shape)}};
}

// Folds a row of contiguous elements. Four accumulators: no chain of dependent additions, and a smaller error.
template <typename T, typename F>
T fold_row(const T* row, int64_t length, T identity, const F& f) {
  T lanes[4] = {identity, identity, identity, identity};
  int64_t j = 0;
  for (; j + 4 <= length; j += 4) {
    for (int k = 0; k < 4; ++k) lanes[k] = f(lanes[k], row[j + k]);
  }
  for (; j < length; ++j) lanes[0] = f(lanes[0], row[j]);
  return f(f(lanes[0], lanes[1]), f(lanes[2], lanes[3]));
}

// out[offset by out_strides] = f over all of `in`; reduced dimensions have stride 0. `out` holds identities.
template <typename T, typename F>
void fold(Shape extents, const T* in, T* out, Ints out_strides, T identity, const F& f) {
  Ints strides = row_major_strides(extents);
  collapse(extents, strides, out_strides);
  const int64_t length = extents.back(), step = out_strides.back();
  const auto rows = [&](int64_t begin, int64_t end) {
    for_each_row(extents, strides, out_strides, begin, end, [&](int64_t, int64_t from, int64_t to) {
      if (step == 0) {
        out[to] = f(out[to], fold_row(in + from, length, identity, f));
      } else {
        for (int64_t j = 0; j < length; ++j) out[to + j] = f(out[to + j], in[from + j]);
      }
    });
  };
  const int64_t count = extent_product(extents, 0, extents.size() - 1);
  // Threads share the outermost dimension where it survives: each then owns its part of the result.
  if (extents.size() > 1 && out_strides[0] != 0) {
    const int64_t per = count / extents[0];
    parallel_for(extents[0], per * length, [&](int64_t begin, int64_t end) { rows(begin * per, end * per); });
  } else {
    rows(0, count);
  }
}

std::vector<Array> eval_reduce(const EvalContext& c) {
  const Array& x = *c.inputs[0];
  const Op op = combined_by(c.attrs.text("kind"));
  const Ints& dims = c.attrs.ints("dims");
  Array result(c.outputs[0].dtype, c.outputs[0].shape);
  const Ints own = row_major_strides(result.shape);
  Ints strides(x.shape.size(), 0);
  for (size_t d = 0, kept = 0; d < strides.size(); ++d) {
    if (!std::binary_search(dims.begin(), dims.end(), static_cast<int64_t>(d))) strides[d] = own[kept++];
  }
  const auto run = [&](const auto& in, auto& out, auto identity, const auto& f) {
    std::fill(out.begin(), out.end(), identity);
    if (!in.empty()) fold(x.shape, in.data(), out.data(), strides, identity, f);
  };
  if (x.real()) {
    with_real_combine(op, [&](const auto& f) { run(x.f(), result.f(), real_identity(op, x.dtype), f); });
  } else {
    with_int_combine(op, x.dtype, [&](const auto& f) { run(x.i(), result.i(), int_identity(op, x.dtype), f); });
    wrap(x.dtype, result.i());
  }
  return results_of(std::move(result));
}

// Total order of topk and arg_reduce: NaN is above every number.
struct RealLess {
  bool operator()(double a, double b) const { return std::isnan(b) ? !std::isnan(a) : a < b; }
};
struct UnsignedLess {
  bool operator()(int64_t a, int64_t b) const { return static_cast<uint64_t>(a) < static_cast<uint64_t>(b); }
};

// Calls use(elements, less).
template <typename Use>
void with_order(const Array& x, const Use& use) {
  if (x.real()) {
    use(x.f(), RealLess{});
  } else if (x.dtype == DType::kU64) {
    use(x.i(), UnsignedLess{});
  } else {
    use(x.i(), std::less<int64_t>{});
  }
}

std::vector<Array> eval_arg_reduce(const EvalContext& c) {
  const Array& x = *c.inputs[0];
  const AroundDim around(x.shape, c.attrs.integer("dim"));
  const bool largest = c.attrs.text("kind") == "max", last = c.attrs.flag("last");
  Array result(DType::kI64, c.outputs[0].shape);
  with_order(x, [&](const auto& in, const auto& less) {
    using T = typename std::decay_t<decltype(in)>::value_type;
    const auto wins = [&](T a, T b) {  // NaN wins in both directions
      if constexpr (std::is_same_v<T, double>) {
        if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
      }
      return largest ? less(b, a) : less(a, b);
    };
    parallel_for(around.outer * around.inner, around.extent, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const T* column = in.data() + o / around.inner * around.extent * around.inner + o % around.inner;
        int64_t best = 0;
        for (int64_t k = 1; k < around.extent; ++k) {
          const T candidate = column[k * around.inner], held = column[best * around.inner];
          if (last ? !wins(held, candidate) : wins(candidate, held)) best = k;
        }
        result.i()[static_cast<size_t>(o)] = best;
      }
    });
  });
  return results_of(std::move(result));
}

template <typename T, typename F>
void run_scan(const AroundDim& around, const T* in, T* out, bool exclusive, bool reverse, T identity, const F& f) {
  parallel_for(around.outer * around.inner, around.extent, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      const int64_t base = o / around.inner * around.extent * around.inner + o % around.inner;
      T held = identity;
      for (int64_t k = 0; k < around.extent; ++k) {
        const int64_t at = base + (reverse ? around.extent - 1 - k : k) * around.inner;
        const T next = f(held, in[at]);
        out[at] = exclusive ? held : next;
        held = next;
      }
    }
  });
}

std::vector<Array> eval_scan(const EvalContext& c) {
  const Array& x = *c.inputs[0];
  const Op op = combined_by(c.attrs.text("kind"));
  const AroundDim around(x.shape, c.attrs.integer("dim"));
  const bool exclusive = c.attrs.flag("exclusive"), reverse = c.attrs.flag("reverse");
  Array result(x.dtype, x.shape);
  if (x.real()) {
    with_real_combine(op, [&](const auto& f) {
      run_scan(around, x.f().data(), result.f().data(), exclusive, reverse, real_identity(op, x.dtype), f);
    });
  } else {
    with_int_combine(op, x.dtype, [&](const auto& f) {
      run_scan(around, x.i().data(), result.i().data(), exclusive, reverse, int_identity(op, x.dtype), f);
    });
    wrap(x.dtype, result.i());
  }
  return results_of(std::move(result));
}

std::vector<Array> eval_topk(const EvalContext& c) {
  const Array& x = *c.inputs[0];
  const int64_t k = c.attrs.integer("k");
  const bool largest = c.attrs.flag("largest");
  const AroundDim around(x.shape, c.attrs.integer("dim"));
  Array values(x.dtype, c.outputs[0].shape), indices(DType::kI64, c.outputs[1].shape);
  with_order(x, [&](const auto& in, const auto& less) {
    using T = typename std::decay_t<decltype(in)>::value_type;
    auto& kept = std::get<std::vector<T>>(values.data);
    parallel_for(around.outer * around.inner, around.extent * 8, [&](int64_t begin, int64_t end) {
      Ints order(static_cast<size_t>(around.extent));
      for (int64_t o = begin; o < end; ++o) {
        const T* column = in.data() + o / around.inner * around.extent * around.inner + o % around.inner;
        std::iota(order.begin(), order.end(), 0);
        std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t a, int64_t b) {
          const T x_a = column[a * around.inner], x_b = column[b * around.inner];
          if (less(x_a, x_b)) return !largest;
          if (less(x_b, x_a)) return largest;
          return a < b;
        });
        const int64_t to = o / around.inner * k * around.inner + o % around.inner;
        for (int64_t i = 0; i < k; ++i) {
          const int64_t index = order[static_cast<size_t>(i)];
          kept[static_cast<size_t>(to + i * around.inner)] = column[index * around.inner];
          indices.i()[static_cast<size_t>(to + i * around.inner)] = index;
        }
      }
    });
  });
  return results_of(std::move(values), std::move(indices));
}

}  // namespace

std::span<const OpSchema> reduction_schemas() {
  constexpr auto kInt = AttrKind::kInt;
  constexpr auto kText = AttrKind::kText;
  static const std::vector<OpSchema> table = {
      {Op::kReduce, 1, 1, {{"kind", kText}, {"dims", AttrKind::kInts}}, infer_reduce, eval_reduce},
      {Op::kArgReduce, 1, 1, {{"kind", kText}, {"dim", kInt}, {"last", kInt}}, infer_arg_reduce, eval_arg_reduce},
      {Op::kScan,
       1,
       1,
       {{"kind", kText}, {"dim", kInt}, {"exclusive", kInt}, {"reverse", kInt}},
       infer_scan,
       eval_scan},
      {Op::kTopK, 1, 1, {{"k", kInt}, {"dim", kInt}, {"largest", kInt}, {"sorted", kInt}}, infer_topk, eval_topk},
  };
  return table;
}

}  // namespace heddle::ir
