#include "passes/simplify/constant_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/clones.h"
#include "base/file/file.h"
#include "base/narrow_float.h"
#include "ir/ops/parallel.h"

namespace heddle::passes {
namespace {

// Drops extents of 1 and joins neighbours that are contiguous with each other, so that loops are few and long.
StridedView collapsed(const StridedView& view) {
  StridedView result{{}, {}, view.offset};
  for (size_t d = 0; d < view.shape.size(); ++d) {
    if (view.shape[d] == 1) continue;
    if (!result.shape.empty() && result.strides.back() == view.strides[d] * view.shape[d]) {
      result.shape.back() *= view.shape[d];
      result.strides.back() = view.strides[d];
    } else {
      result.shape.push_back(view.shape[d]);
      result.strides.push_back(view.strides[d]);
    }
  }
  if (result.shape.empty()) {
    result.shape = {1};
    result.strides = {1};
  }
  return result;
}

// A plane of rows x columns whose elements lie `row` and `column` apart in the source and whose rows lie `pitch` apart
// in the target; in blocks, so that either side of a transpose stays in cache.
template <typename T>
void copy_plane(const T* from, T* to, int64_t rows, int64_t columns, int64_t row, int64_t column, int64_t pitch) {
  constexpr int64_t kBlock = 32;
  for (int64_t i0 = 0; i0 < rows; i0 += kBlock) {
    for (int64_t j0 = 0; j0 < columns; j0 += kBlock) {
      for (int64_t i = i0; i < std::min(rows, i0 + kBlock); ++i) {
        for (int64_t j = j0; j < std::min(columns, j0 + kBlock); ++j) to[i * pitch + j] = from[i * row + j * column];
      }
    }
  }
}

template <typename T>
class Copier {
 public:
  Copier(const T* from, T* to, const StridedView& view) : from_(from), to_(to), view_(view) {
    const size_t rank = view.shape.size();
    pitches_ = StridedView::dense(view.shape).strides;
    last_ = rank - 1;
    // The partner of the last dimension in a plane: the one that is contiguous in the source.
    partner_ = last_;
    for (size_t d = 0; d + 1 < rank; ++d) {
      if (view.strides[last_] != 1 && (partner_ == last_ || view.strides[d] < view.strides[partner_]) &&
          view.strides[d] > 0) {
        partner_ = d;
      }
    }
  }
  void run() { visit(0, from_ + view_.offset, to_); }

 private:
  void visit(size_t d, const T* from, T* to) {
    if (d == partner_ && d != last_) return visit(d + 1, from, to);
    if (d < last_) {
      for (int64_t i = 0; i < view_.shape[d]; ++i) {
        visit(d + 1, from + i * view_.strides[d], to + i * pitches_[d]);
      }
      return;
    }
    const int64_t columns = view_.shape[last_], column = view_.strides[last_];
    if (partner_ != last_) {
      return copy_plane(from, to, view_.shape[partner_], columns, view_.strides[partner_], column, pitches_[partner_]);
    }
    if (column == 1) {
      std::copy_n(from, columns, to);
    } else if (column == 0) {
      std::fill_n(to, columns, *from);
    } else {
      for (int64_t j = 0; j < columns; ++j) to[j] = from[j * column];
    }
  }

  const T* from_;
  T* to_;
  const StridedView& view_;
  Ints pitches_;
  size_t last_, partner_;
};

template <typename T>
void copy_view(const Tensor& tensor, Tensor& result, const StridedView& view) {
  const auto* from = static_cast<const T*>(tensor.data());
  auto* to = static_cast<T*>(result.mutable_data());
  const int64_t slice = result.size() / view.shape[0];
  ir::parallel_for(view.shape[0], slice, [&](int64_t begin, int64_t end) {
    StridedView part = view;
    part.shape[0] = end - begin;
    part.offset += begin * view.strides[0];
    Copier<T>(from, to + begin * slice, part).run();
  });
}

Tensor concatenated(std::span<const Tensor> parts, size_t dim) {
  Shape shape = parts[0].shape();
  for (const Tensor& part : parts.subspan(1)) shape[dim] += part.shape()[dim];
  Tensor result = Tensor::unfilled(parts[0].dtype(), shape);
  if (result.size() == 0) return result;
  const auto bytes_from = [&](const Shape& s) {
    return element_count(Shape(s.begin() + static_cast<int64_t>(dim), s.end())) *
           static_cast<int64_t>(size_of(result.dtype()));
  };
  const int64_t pitch = bytes_from(shape);
  const int64_t rows = static_cast<int64_t>(result.bytes()) / pitch;
  auto* to = static_cast<char*>(result.mutable_data());
  for (const Tensor& part : parts) {
    const int64_t row = bytes_from(part.shape());
    const auto* from = static_cast<const char*>(part.data());
    ir::parallel_for(rows, row, [&](int64_t begin, int64_t end) {
      if (row == 1) {
        for (int64_t r = begin; r < end; ++r) to[r * pitch] = from[r];
      } else {
        for (int64_t r = begin; r < end; ++r) std::copy_n(from + r * row, row, to + r * pitch);
      }
    });
    to += row;
  }
  return result;
}

// A tensor with copies of a value around it. Nothing where the padding is negative.
std::optional<Tensor> padded(const Tensor& x, const Tensor& value, const ir::Node& pad) {
  const Ints &low = pad.attrs.ints("low"), &high = pad.attrs.ints("high");
  const auto crops = [](int64_t n) { return n < 0; };
  if (pad.attrs.text("mode") != "constant" || x.dtype() == DType::kString || x.shape().empty() ||
      std::any_of(low.begin(), low.end(), crops) || std::any_of(high.begin(), high.end(), crops)) {
    return std::nullopt;
  }
  Shape shape = x.shape();
  for (size_t d = 0; d < shape.size(); ++d) shape[d] += low[d] + high[d];
  Tensor result = gather_view(value, {shape, Ints(shape.size(), 0), 0});
  if (x.size() == 0) return result;
  const Ints pitches = StridedView::dense(shape).strides;
  const int64_t line = x.shape().back(), lines = x.size() / line;
  const size_t bytes = size_of(x.dtype());
  const auto* from = static_cast<const std::byte*>(x.data());
  auto* to = static_cast<std::byte*>(result.mutable_data());
  ir::parallel_for(lines, line, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t place = low.back(), rest = i;
      for (size_t d = shape.size() - 1; d-- > 0; rest /= x.shape()[d]) {
        place += (rest % x.shape()[d] + low[d]) * pitches[d];
      }
      std::memcpy(to + static_cast<size_t>(place) * bytes, from + static_cast<size_t>(i * line) * bytes,
                  static_cast<size_t>(line) * bytes);
    }
  });
  return result;
}

HEDDLE_CLONES void all_to_f16(const float* from, uint16_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = to_f16(from[i]);
}

HEDDLE_CLONES void all_to_bf16(const float* from, uint16_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = to_bf16(from[i]);
}

template <typename T, typename F>
Tensor map_to_f32(const Tensor& x, F f) {
  Tensor result = Tensor::unfilled(DType::kF32, x.shape());
  const T* in = x.values<T>().data();
  float* out = result.mutable_values<float>().data();
  ir::parallel_for(x.size(), 1,
                   [&](int64_t begin, int64_t end) { std::transform(in + begin, in + end, out + begin, f); });
  return result;
}

template <typename F>
Tensor map_f32(const Tensor& x, F f) {
  Tensor result = Tensor::unfilled(DType::kF32, x.shape());
  const auto in = x.values<float>();
  const auto out = result.mutable_values<float>();
  for (size_t i = 0; i < in.size(); ++i) out[i] = f(in[i]);
  return result;
}
template <typename F>
Tensor map_f32(const Tensor& x, const Tensor& y, F f) {
  Tensor result(DType::kF32, x.shape());
  const auto a = x.values<float>(), b = y.values<float>();
  const auto out = result.mutable_values<float>();
  for (size_t i = 0; i < a.size(); ++i) out[i] = f(a[i], b[i]);
  return result;
}

std::optional<Tensor> arithmetic_f32(Op op, std::span<const Tensor> x) {
  switch (op) {
    case Op::kNeg:
      return map_f32(x[0], [](float a) { return -a; });
    case Op::kSqrt:
      return map_f32(x[0], [](float a) { return std::sqrt(a); });
    case Op::kRsqrt:
      return map_f32(x[0], [](float a) { return static_cast<float>(1 / std::sqrt(static_cast<double>(a))); });
    case Op::kAdd:
      return map_f32(x[0], x[1], [](float a, float b) { return a + b; });
    case Op::kSub:
      return map_f32(x[0], x[1], [](float a, float b) { return a - b; });
    case Op::kMul:
      return map_f32(x[0], x[1], [](float a, float b) { return a * b; });
    case Op::kDiv:
      return map_f32(x[0], x[1], [](float a, float b) { return a / b; });
    default:
      return std::nullopt;
  }
}

template <typename F>
Tensor map_bytes(const Tensor& x, const Tensor& y, F f) {
  Tensor result = Tensor::unfilled(x.dtype(), x.shape());
  const auto *a = static_cast<const uint8_t*>(x.data()), *b = static_cast<const uint8_t*>(y.data());
  auto* out = static_cast<uint8_t*>(result.mutable_data());
  ir::parallel_for(x.size(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = static_cast<uint8_t>(f(a[i], b[i]));
  });
  return result;
}

// What takes numbers of few bits out of bytes.
std::optional<Tensor> bits_of_bytes(Op op, std::span<const Tensor> x) {
  switch (op) {
    case Op::kAnd:
      return map_bytes(x[0], x[1], [](unsigned a, unsigned b) { return a & b; });
    case Op::kOr:
      return map_bytes(x[0], x[1], [](unsigned a, unsigned b) { return a | b; });
    case Op::kShr:
      return map_bytes(x[0], x[1], [](unsigned a, unsigned b) { return b < 8 ? a >> b : 0; });
    default:
      return std::nullopt;
  }
}

template <typename T, typename F>
Tensor map_integers(const Tensor& x, const Tensor& y, F f) {
  using U = std::make_unsigned_t<T>;
  Tensor result = Tensor::unfilled(x.dtype(), x.shape());
  const auto a = x.values<T>(), b = y.values<T>();
  const auto out = result.mutable_values<T>();
  for (size_t i = 0; i < a.size(); ++i) {
    out[i] =
        static_cast<T>(f(static_cast<uint32_t>(static_cast<U>(a[i])), static_cast<uint32_t>(static_cast<U>(b[i]))));
  }
  return result;
}

// Integers wrap around modulo the range of the type.
template <typename T>
std::optional<Tensor> arithmetic(Op op, std::span<const Tensor> x) {
  switch (op) {
    case Op::kAdd:
      return map_integers<T>(x[0], x[1], [](uint32_t a, uint32_t b) { return a + b; });
    case Op::kSub:
      return map_integers<T>(x[0], x[1], [](uint32_t a, uint32_t b) { return a - b; });
    case Op::kMul:
      return map_integers<T>(x[0], x[1], [](uint32_t a, uint32_t b) { return a * b; });
    default:
      return std::nullopt;
  }
}

template <typename From, typename To>
Tensor converted_integers(const Tensor& x, DType to) {
  Tensor result = Tensor::unfilled(to, x.shape());
  const auto in = x.values<From>();
  std::transform(in.begin(), in.end(), result.mutable_values<To>().begin(), [](From v) { return static_cast<To>(v); });
  return result;
}

template <typename From>
std::optional<Tensor> converted_integers(const Tensor& x, DType to) {
  switch (to) {
    case DType::kI8:
      return converted_integers<From, int8_t>(x, to);
    case DType::kU8:
      return converted_integers<From, uint8_t>(x, to);
    case DType::kI16:
      return converted_integers<From, int16_t>(x, to);
    case DType::kI32:
      return converted_integers<From, int32_t>(x, to);
    default:
      return std::nullopt;
  }
}

// Sums over neighbouring dimensions of i32, modulo its range.
std::optional<Tensor> summed(const Tensor& x, const Ints& dims) {
  if (x.dtype() != DType::kI32 || dims.empty()) return std::nullopt;
  for (size_t i = 1; i < dims.size(); ++i) {
    if (dims[i] != dims[i - 1] + 1) return std::nullopt;
  }
  const auto first = x.shape().begin() + dims.front(), last = x.shape().begin() + dims.back() + 1;
  const int64_t outer = element_count({x.shape().begin(), first}), count = element_count({first, last});
  const int64_t inner = element_count({last, x.shape().end()});
  Shape shape(x.shape().begin(), first);
  shape.insert(shape.end(), last, x.shape().end());
  Tensor result(DType::kI32, shape);
  const auto* in = reinterpret_cast<const uint32_t*>(x.values<int32_t>().data());
  auto* out = reinterpret_cast<uint32_t*>(result.mutable_values<int32_t>().data());
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t k = 0; k < count; ++k, in += inner) {
      for (int64_t i = 0; i < inner; ++i) out[o * inner + i] += in[i];
    }
  }
  return result;
}

// Slices of data along `dim`. Nothing where an index is outside of it, or of a type that indices seldom have.
std::optional<Tensor> gathered(const Tensor& data, const Tensor& indices, size_t dim) {
  if (indices.dtype() != DType::kI64 || data.dtype() == DType::kString) return std::nullopt;
  const auto at = static_cast<std::ptrdiff_t>(dim);
  const int64_t extent = data.shape()[dim];
  Shape shape(data.shape().begin(), data.shape().begin() + at);
  const int64_t outer = element_count(shape);
  shape.insert(shape.end(), indices.shape().begin(), indices.shape().end());
  const Shape rest(data.shape().begin() + at + 1, data.shape().end());
  shape.insert(shape.end(), rest.begin(), rest.end());
  const auto bytes = static_cast<size_t>(element_count(rest)) * size_of(data.dtype());
  Tensor result = Tensor::unfilled(data.dtype(), shape);
  auto* to = static_cast<std::byte*>(result.mutable_data());
  for (int64_t i = 0; i < outer; ++i) {
    for (const int64_t index : indices.values<int64_t>()) {
      if (index < -extent || index >= extent) return std::nullopt;
      const int64_t row = i * extent + (index < 0 ? index + extent : index);
      if (bytes > 0)
        std::memcpy(to, static_cast<const std::byte*>(data.data()) + static_cast<size_t>(row) * bytes, bytes);
      to += bytes;
    }
  }
  return result;
}

}  // namespace

Tensor gather_view(const Tensor& tensor, const StridedView& view) {
  Tensor result = Tensor::unfilled(tensor.dtype(), view.shape);
  if (result.size() == 0) return result;
  const StridedView loops = collapsed(view);
  switch (size_of(tensor.dtype())) {
    case 8:
      copy_view<uint64_t>(tensor, result, loops);
      break;
    case 4:
      copy_view<uint32_t>(tensor, result, loops);
      break;
    case 2:
      copy_view<uint16_t>(tensor, result, loops);
      break;
    default:
      HEDDLE_CHECK(size_of(tensor.dtype()) == 1, "a view of {}", to_string(tensor.dtype()));
      copy_view<uint8_t>(tensor, result, loops);
  }
  return result;
}

Tensor transposed(const Tensor& tensor, const Ints& perm) {
  const StridedView dense = StridedView::dense(tensor.shape());
  StridedView view{{}, {}, 0};
  for (int64_t p : perm) {
    view.shape.push_back(dense.shape[static_cast<size_t>(p)]);
    view.strides.push_back(dense.strides[static_cast<size_t>(p)]);
  }
  return gather_view(tensor, view);
}

std::optional<Tensor> converted(const Tensor& tensor, DType to) {
  const DType from = tensor.dtype();
  if (from == DType::kF32 && (to == DType::kF16 || to == DType::kBF16)) {
    Tensor result = Tensor::unfilled(to, tensor.shape());
    const auto* in = static_cast<const float*>(tensor.data());
    auto* out = static_cast<uint16_t*>(result.mutable_data());
    ir::parallel_for(tensor.size(), 1, [&](int64_t begin, int64_t end) {
      (to == DType::kF16 ? all_to_f16 : all_to_bf16)(in + begin, out + begin, end - begin);
    });
    release_pages(in, tensor.bytes());
    return result;
  }
  if (to != DType::kF32) {
    if (from == DType::kI8) return converted_integers<int8_t>(tensor, to);
    if (from == DType::kU8) return converted_integers<uint8_t>(tensor, to);
    if (from == DType::kI16) return converted_integers<int16_t>(tensor, to);
    if (from == DType::kI32) return converted_integers<int32_t>(tensor, to);
    return std::nullopt;
  }
  const auto plain = [](auto v) { return static_cast<float>(v); };
  switch (from) {
    case DType::kBF16:
      return map_to_f32<uint16_t>(tensor, from_bf16);
    case DType::kF16:
      return map_to_f32<uint16_t>(tensor, from_f16);
    case DType::kI8:
      return map_to_f32<int8_t>(tensor, plain);
    case DType::kU8:
      return map_to_f32<uint8_t>(tensor, plain);
    case DType::kI32:
      return map_to_f32<int32_t>(tensor, plain);
    case DType::kI64:
      return map_to_f32<int64_t>(tensor, plain);
    default:
      return std::nullopt;
  }
}

Tensor scaled_along(const Tensor& tensor, int64_t dim, std::span<const float> factors) {
  HEDDLE_CHECK(tensor.dtype() == DType::kF32 &&
               tensor.shape()[static_cast<size_t>(dim)] == static_cast<int64_t>(factors.size()));
  Tensor result(DType::kF32, tensor.shape());
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(dim) + 1; d < tensor.shape().size(); ++d) inner *= tensor.shape()[d];
  const auto in = tensor.values<float>();
  const auto out = result.mutable_values<float>();
  size_t i = 0;
  while (i < in.size()) {
    for (float factor : factors) {
      for (int64_t n = 0; n < inner; ++n, ++i) out[i] = in[i] * factor;
    }
  }
  return result;
}

std::optional<Tensor> evaluate_dense(const ir::Node& node, std::span<const Tensor> operands) {
  if (node.op == Op::kReshape) return operands[0].reshaped(node.attrs.ints("shape"));
  if (node.op == Op::kTranspose || node.op == Op::kSlice || node.op == Op::kBroadcast || node.op == Op::kReverse) {
    return gather_view(operands[0], *apply(StridedView::dense(operands[0].shape()), node));
  }
  if (node.op == Op::kPad) return padded(operands[0], operands[1], node);
  if (node.op == Op::kConcat) return concatenated(operands, static_cast<size_t>(node.attrs.integer("dim")));
  if (node.op == Op::kGather) return gathered(operands[0], operands[1], static_cast<size_t>(node.attrs.integer("dim")));
  if (node.op == Op::kCast) return converted(operands[0], node.attrs.dtype("to"));
  if (ir::is_elementwise(node.op) && operands[0].dtype() == DType::kF32) return arithmetic_f32(node.op, operands);
  if (ir::is_elementwise(node.op) && operands[0].dtype() == DType::kU8) return bits_of_bytes(node.op, operands);
  if (ir::is_elementwise(node.op) && operands[0].dtype() == DType::kI32) return arithmetic<int32_t>(node.op, operands);
  if (ir::is_elementwise(node.op) && operands[0].dtype() == DType::kI16) return arithmetic<int16_t>(node.op, operands);
  if (node.op == Op::kReduce && node.attrs.text("kind") == "sum") return summed(operands[0], node.attrs.ints("dims"));
  return std::nullopt;
}

}  // namespace heddle::passes
