#include "schedule/product/cuda/operand.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "target/argument_block.h"
#include "tile/core/cuda_operand.h"

namespace heddle::schedule {
namespace {

// The widest piece, in elements, that all of these numbers of elements are multiples of.
int widest(DType element, int alignment, std::initializer_list<int64_t> numbers) {
  int64_t width = 16 / static_cast<int64_t>(size_of(element));
  const auto address = static_cast<int64_t>(alignment / size_of(element));
  for (const int64_t n : numbers) width = std::gcd(width, n);
  return static_cast<int>(std::max<int64_t>(std::gcd(width, address), 1));
}

// Offsets in 32 bits reach as far as a tile beyond the end.
bool is_wide(int64_t elements, int64_t leading) {
  constexpr int64_t kMostRows = 512;
  return elements + kMostRows * leading > std::numeric_limits<int32_t>::max();
}

int32_t narrow(int64_t value) {
  HEDDLE_CHECK(value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max());
  return static_cast<int32_t>(value);
}

}  // namespace

std::string_view cuda_storage(DType type) {
  switch (type) {
    case DType::kF64:
      return "double";
    case DType::kF32:
      return "float";
    case DType::kF16:
      return "tile::half";
    case DType::kBF16:
      return "tile::bfloat";
    case DType::kF8E4M3:
      return "tile::cuda::e4m3";
    case DType::kF8E5M2:
      return "tile::cuda::e5m2";
    case DType::kI64:
      return "int64_t";
    case DType::kI32:
      return "int32_t";
    case DType::kI16:
      return "int16_t";
    case DType::kI8:
      return "int8_t";
    case DType::kU64:
      return "uint64_t";
    case DType::kU32:
      return "uint32_t";
    case DType::kU16:
      return "uint16_t";
    case DType::kU8:
    case DType::kBool:
      return "uint8_t";
    default:
      return "";
  }
}

CudaOperand matrix_operand(const CudaMatrix& m, int operand) {
  const int64_t contiguous = m.along_k ? m.k : m.rows, lines = m.along_k ? m.rows : m.k;
  CudaOperand o;
  o.element = m.element;
  o.along_k = m.along_k;
  o.width = widest(m.element, m.alignment, {contiguous, lines > 1 ? m.leading : 0, m.batch > 1 ? m.stride : 0});
  if (o.width == 1) o.along_k = true;  // what the kernel takes where neither is wide
  o.type = fmt::format("tile::cuda::Matrix<{}, {}, {}, {}>", cuda_storage(m.element), m.along_k, o.width,
                       is_wide(lines * m.leading, m.leading));
  tile::GemmMatrixArgs args{};
  args.stride = m.batch > 1 ? m.stride : 0;
  args.leading = m.leading;
  args.rows = narrow(m.rows);
  args.k = narrow(m.k);
  o.block = argument_bytes(args);
  o.pointers = {{0, static_cast<int>(offsetof(tile::GemmMatrixArgs, data)), operand}};
  o.bytes = static_cast<double>(m.rows) * static_cast<double>(m.k) * static_cast<double>(size_of(m.element)) *
            (m.batch > 1 && m.stride == 0 ? 1.0 : static_cast<double>(m.batch));
  return o;
}

int64_t CudaImage::out(int dim) const {
  const auto d = static_cast<size_t>(dim);
  const int64_t reach = size[d] + before[d] + after[d] - (window[d] - 1) * dilation[d] - 1;
  return reach < 0 ? 0 : reach / stride[d] + 1;
}

int64_t CudaImage::rows() const {
  return images * out(0) * out(1) * out(2);
}

int64_t CudaImage::k() const {
  return window[0] * window[1] * window[2] * channels;
}

CudaOperand image_operand(const CudaImage& image, int operand) {
  CudaImage i = image;
  if (i.pixel == 0) i.pixel = i.channels * i.groups;
  if (i.group == 0) i.group = i.channels;
  const auto any = [](const std::array<int64_t, 3>& v, auto f) { return std::any_of(v.begin(), v.end(), f); };
  const bool padded = any(i.before, [](int64_t x) { return x != 0; }) || any(i.after, [](int64_t x) { return x != 0; });
  const bool pointwise = !any(i.window, [](int64_t x) { return x != 1; });
  CudaOperand o;
  o.element = i.element;
  o.image = true;
  o.width = widest(i.element, i.alignment, {i.channels, i.pixel, i.groups > 1 ? i.group : 0});
  const int64_t pixels = i.images * i.size[0] * i.size[1] * i.size[2];
  o.type = fmt::format("tile::cuda::Image<{}, {}, {}, {}, {}, {}>", cuda_storage(i.element), i.rank, o.width, padded,
                       pointwise, is_wide(pixels * i.pixel, i.pixel * i.size[2]));
  tile::GemmImageArgs args{};
  args.group = i.groups > 1 ? i.group : 0;
  args.images = narrow(i.images);
  args.channels = narrow(i.channels);
  args.pixel = narrow(i.pixel);
  for (int d = 0; d < 3; ++d) {
    const auto at = static_cast<size_t>(d);
    args.size[d] = narrow(i.size[at]);
    args.out[d] = narrow(i.out(d));
    args.window[d] = narrow(i.window[at]);
    args.stride[d] = narrow(i.stride[at]);
    args.dilation[d] = narrow(i.dilation[at]);
    args.before[d] = narrow(i.before[at]);
    args.after[d] = narrow(i.after[at]);
  }
  o.block = argument_bytes(args);
  o.pointers = {{0, static_cast<int>(offsetof(tile::GemmImageArgs, data)), operand}};
  o.bytes = static_cast<double>(pixels) * static_cast<double>(i.channels * i.groups) *
            static_cast<double>(size_of(i.element));
  return o;
}

}  // namespace heddle::schedule
