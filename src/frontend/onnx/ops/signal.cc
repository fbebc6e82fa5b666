#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "frontend/onnx/lowering/op_helpers.h"
#include "frontend/onnx/node_context.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {
namespace {

using ir::Builder;

constexpr int64_t kLargestMatrix = int64_t{1} << 26;

// A transform as a matrix [rows * parts_in, cols * parts_out] whose parts are real and imaginary: a dot runs at the
// speed of a matrix product, which for the lengths of audio frames beats a fast transform written in primitives.
struct Transform {
  int64_t length = 0;  // N of the definition
  int64_t rows = 0, cols = 0;
  int64_t parts_in = 1, parts_out = 2;
  bool inverse = false;
  bool mirrored = false;  // the input holds only the first half of a spectrum whose other half is its mirror image
};

ValueId transform_matrix(const NodeContext& ctx, const Transform& t, DType dtype) {
  const Shape shape = {t.rows * t.parts_in, t.cols * t.parts_out};
  if (t.length > kLargestMatrix || element_count(shape) > kLargestMatrix) {
    ctx.unsupported(fmt::format("a Fourier transform of length {} is too long", t.length));
  }
  std::vector<double> m(static_cast<size_t>(element_count(shape)));
  const double scale = t.inverse ? 1 / static_cast<double>(t.length) : 1;
  for (int64_t r = 0; r < t.rows; ++r) {
    const bool doubled = t.mirrored && r != 0 && 2 * r != t.length;
    const double weight = doubled ? 2 * scale : scale;
    for (int64_t c = 0; c < t.cols; ++c) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(r * c % t.length) / static_cast<double>(t.length);
      const double re = weight * std::cos(angle), im = weight * (t.inverse ? std::sin(angle) : -std::sin(angle));
      // (x + iy)(re + i im)
      double* at = m.data() + r * t.parts_in * shape[1] + c * t.parts_out;
      at[0] = re;
      if (t.parts_out == 2) at[1] = im;
      if (t.parts_in == 2) at[shape[1]] = -im;
      if (t.parts_in == 2 && t.parts_out == 2) at[shape[1] + 1] = re;
    }
  }
  return real_constant(ctx.b, dtype, shape, std::move(m));
}

// x [..., n, parts] -> [..., cols, parts_out].
ValueId transform(NodeContext& ctx, ValueId x, const Transform& t) {
  Builder& b = ctx.b;
  Shape shape = b.shape(x);
  const size_t rank = shape.size();
  if (!is_float(b.dtype(x))) ctx.invalid("a Fourier transform takes floats");
  x = b.slice_dim(x, static_cast<int64_t>(rank) - 2, 0, t.rows);
  const int64_t outer = element_count(Shape(shape.begin(), shape.end() - 2));
  const ValueId matrix = transform_matrix(ctx, t, b.dtype(x));
  const ValueId y = b.matmul(b.reshape(x, {outer, t.rows * t.parts_in}), matrix);
  shape[rank - 2] = t.cols;
  shape[rank - 1] = t.parts_out;
  return b.reshape(y, std::move(shape));
}

void require_parts(const NodeContext& ctx, int64_t parts) {
  if (parts != 1 && parts != 2) ctx.invalid("the last dimension must hold a real number or its two parts");
}

void lower_dft(NodeContext& ctx) {
  Builder& b = ctx.b;
  const int64_t rank = ctx.rank(0);
  if (rank < 2) ctx.invalid("the input must have rank 2 or more");
  int64_t axis = ctx.attr_int("axis", 1);
  if (ctx.version() >= 20) axis = ctx.has(2) ? ctx.constant_int(2) : -2;
  axis = ctx.axis(axis, rank);
  if (axis == rank - 1) ctx.invalid("the axis is the dimension of real and imaginary parts");
  const bool onesided = ctx.attr_int("onesided", 0) != 0;
  Transform t;
  t.inverse = ctx.attr_int("inverse", 0) != 0;
  t.parts_in = ctx.shape(0).back();
  require_parts(ctx, t.parts_in);
  t.mirrored = t.inverse && onesided;
  const int64_t extent = ctx.shape(0)[static_cast<size_t>(axis)];
  t.length = t.mirrored ? 2 * (extent - 1) : extent;
  if (ctx.has(1)) t.length = ctx.constant_int(1);
  if (t.length < 1 || t.length > kLargestMatrix) ctx.invalid(fmt::format("a transform of length {}", t.length));
  t.rows = std::min(extent, t.mirrored ? t.length / 2 + 1 : t.length);
  t.cols = onesided && !t.inverse ? t.length / 2 + 1 : t.length;
  t.parts_out = t.mirrored ? 1 : 2;
  // The axis next to the parts, and back.
  Ints there, back(static_cast<size_t>(rank));
  for (int64_t d = 0; d < rank - 1; ++d) {
    if (d != axis) there.push_back(d);
  }
  there.push_back(axis);
  there.push_back(rank - 1);
  for (int64_t d = 0; d < rank; ++d) back[static_cast<size_t>(there[static_cast<size_t>(d)])] = d;
  ctx.set(0, b.transpose(transform(ctx, b.transpose(ctx.in(0), there), t), back));
}

void lower_stft(NodeContext& ctx) {
  Builder& b = ctx.b;
  ValueId signal = ctx.in(0);
  if (ctx.rank(0) == 2) signal = b.reshape(signal, {ctx.shape(0)[0], ctx.shape(0)[1], 1});
  const Shape shape = b.shape(signal);
  if (shape.size() != 3) ctx.invalid("the signal must be [batch, length, parts]");
  require_parts(ctx, shape[2]);
  const int64_t step = ctx.constant_int(1);
  int64_t frame = 0;
  if (ctx.has(3)) {
    frame = ctx.constant_int(3);
  } else if (ctx.has(2) && ctx.rank(2) == 1) {
    frame = ctx.shape(2)[0];
  } else {
    ctx.invalid("neither frame_length nor a window is given");
  }
  if (step < 1 || frame < 1 || frame > shape[1]) {
    ctx.invalid(fmt::format("frames of {} every {} of a signal of length {}", frame, step, shape[1]));
  }
  const int64_t frames = (shape[1] - frame) / step + 1;
  const ValueId first = b.binary(Op::kMul, b.iota(DType::kI64, {frames, frame}, 0), static_cast<double>(step));
  const ValueId at = b.add(first, b.iota(DType::kI64, {frames, frame}, 1));
  ValueId framed = b.gather(signal, at, 1);  // [batch, frames, frame, parts]
  if (ctx.has(2)) {
    if (ctx.shape(2) != Shape{frame}) ctx.invalid("the window differs from frame_length");
    framed = b.mul(framed, b.reshape(ctx.in(2), {frame, 1}));
  }
  Transform t;
  t.length = t.rows = frame;
  t.parts_in = shape[2];
  t.cols = ctx.attr_int("onesided", 1) != 0 ? frame / 2 + 1 : frame;
  ctx.set(0, transform(ctx, framed, t));
}

// The sum of coefficients[k] cos(2 pi k n / N).
void cosine_window(NodeContext& ctx, std::span<const double> coefficients) {
  const int64_t size = ctx.constant_int(0);
  if (size < 0 || size > kLargestMatrix) ctx.invalid(fmt::format("a window of {} points", size));
  const int64_t period = ctx.attr_int("periodic", 1) != 0 ? size : size - 1;
  std::vector<double> values(static_cast<size_t>(size));
  for (size_t n = 0; n < values.size(); ++n) {
    for (size_t k = 0; k < coefficients.size(); ++k) {
      const double angle =
          period > 0 ? 2 * std::numbers::pi * static_cast<double>(k * n) / static_cast<double>(period) : 0;
      values[n] += coefficients[k] * std::cos(angle);
    }
  }
  const DType dtype = ctx.attr_dtype("output_datatype", DType::kF32);
  const ValueId window = real_constant(ctx.b, DType::kF64, {size}, std::move(values));
  ctx.set(0, ctx.b.cast(window, dtype));
}

void lower_hann(NodeContext& ctx) {
  cosine_window(ctx, std::array{0.5, -0.5});
}

void lower_hamming(NodeContext& ctx) {
  cosine_window(ctx, std::array{25.0 / 46, -21.0 / 46});
}

void lower_blackman(NodeContext& ctx) {
  cosine_window(ctx, std::array{0.42, -0.5, 0.08});
}

double mel_of(double hertz) {
  return 2595 * std::log10(1 + hertz / 700);
}

// Triangles over the bins of a spectrum, evenly spaced on the mel scale.
void lower_mel_weights(NodeContext& ctx) {
  const int64_t mels = ctx.constant_int(0), length = ctx.constant_int(1), rate = ctx.constant_int(2);
  const double lower = mel_of(ctx.constant_real(3)), upper = mel_of(ctx.constant_real(4));
  if (mels < 0 || mels > kLargestMatrix || length < 0 || length > kLargestMatrix || rate < 1) {
    ctx.invalid("num_mel_bins, dft_length and sample_rate must be positive");
  }
  const int64_t bins = length / 2 + 1;
  if (bins * mels > kLargestMatrix) ctx.invalid("the matrix is too large");
  std::vector<double> m(static_cast<size_t>(bins * mels));
  const auto edge = [&](int64_t i) {
    const double mel = lower + static_cast<double>(i) * (upper - lower) / static_cast<double>(mels + 2);
    const double hertz = 700 * (std::pow(10, mel / 2595) - 1);
    const double bin = std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    return static_cast<int64_t>(std::clamp(bin, 0.0, static_cast<double>(bins)));
  };
  const auto put = [&](int64_t bin, int64_t mel, double value) {
    if (bin < bins) m[static_cast<size_t>(bin * mels + mel)] = value;
  };
  for (int64_t i = 0; i < mels; ++i) {
    const int64_t low = edge(i), center = edge(i + 1), high = edge(i + 2);
    if (center == low) put(center, i, 1);
    for (int64_t j = low; j <= center && center > low; ++j) {
      put(j, i, static_cast<double>(j - low) / static_cast<double>(center - low));
    }
    for (int64_t j = center; j < high; ++j)
      put(j, i, static_cast<double>(high - j) / static_cast<double>(high - center));
  }
  const DType dtype = ctx.attr_dtype("output_datatype", DType::kF32);
  ctx.set(0, ctx.b.cast(real_constant(ctx.b, DType::kF64, {bins, mels}, std::move(m)), dtype));
}

}  // namespace

std::span<const OpHandler> signal_ops() {
  static constexpr std::array kHandlers = {
      OpHandler{"", "DFT", 17, kNewestOpset, lower_dft},
      OpHandler{"", "STFT", 17, kNewestOpset, lower_stft},
      OpHandler{"", "HannWindow", 17, kNewestOpset, lower_hann},
      OpHandler{"", "HammingWindow", 17, kNewestOpset, lower_hamming},
      OpHandler{"", "BlackmanWindow", 17, kNewestOpset, lower_blackman},
      OpHandler{"", "MelWeightMatrix", 17, kNewestOpset, lower_mel_weights},
  };
  return kHandlers;
}

}  // namespace heddle::onnx
