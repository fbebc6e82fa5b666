// A product as the kernels over views see it.
#include <algorithm>

#include "schedule/product/cuda/tile.h"

namespace heddle::schedule {
namespace {

using Form = ProductOperand::Form;

constexpr int64_t kCopyBytes = 16, kSectorBytes = 8;
constexpr int kSumBytes = 4;

// Largest power of two that divides all values, at most 16 bytes of elements.
int widest(DType dtype, std::initializer_list<int64_t> values) {
  int64_t factor = kCopyBytes / static_cast<int64_t>(std::max<size_t>(size_of(dtype), 1));
  for (const int64_t value : values) {
    if (value != 0) factor = std::min(factor, value & -value);
  }
  return static_cast<int>(std::max<int64_t>(factor, 1));
}

CudaOperand image_of(const ProductOperand& o, int64_t groups) {
  const tile::GemmImageArgs& a = o.image;
  const auto trivial = [&](int d) {
    return a.size[d] == 1 && a.out[d] == 1 && a.window[d] == 1 && a.before[d] == 0 && a.after[d] == 0;
  };
  CudaImage image;
  image.element = o.dtype;
  image.rank = !trivial(0) ? 3 : !trivial(1) ? 2 : 1;
  image.images = a.images, image.channels = a.channels;
  image.pixel = a.pixel, image.group = a.group, image.groups = groups;
  for (int d = 0; d < 3; ++d) {
    const auto at = static_cast<size_t>(d);
    image.size[at] = a.size[d], image.window[at] = a.window[d], image.stride[at] = a.stride[d];
    image.dilation[at] = a.dilation[d], image.before[at] = a.before[d], image.after[at] = a.after[d];
  }
  return image_operand(image, static_cast<int>(o.operand));
}

// `lines`: rows of A or columns of B.
CudaOperand view_of(const ProductOperand& o, int64_t lines, int64_t batch, DType multiply) {
  if (o.form == Form::kImage) return image_of(o, batch);
  CudaOperand v;
  v.element = o.dtype;
  v.view = o.form != Form::kComputed;
  v.bytes = static_cast<double>(lines) * static_cast<double>(std::max<int64_t>(o.depth, 1)) *
            static_cast<double>(size_of(o.dtype));
  for (const auto& [extent, stride] : o.batch) v.bytes *= stride != 0 ? static_cast<double>(extent) : 1;
  v.along_k = o.form == Form::kComputed || o.along_k();
  v.width = o.form == Form::kComputed ? (size_of(o.dtype) == 8 ? 2 : 4) : o.width(lines);
  v.shifted = o.shifted(lines, multiply);
  constexpr int64_t kMostApart = 4 << 20;  // bytes: a tile of 256 lines is addressed in 32 bits
  v.lines = o.form == Form::kMatrix && o.dtype == multiply && o.along_k() &&
            std::abs(o.row) < kMostApart / static_cast<int64_t>(size_of(o.dtype));
  if (v.width == 1) v.along_k = true;  // what the kernels take where neither is wide
  return v;
}

}  // namespace

std::optional<std::array<int64_t, 4>> affine_place(const Epilogue& e, const Index& at) {
  std::array<int64_t, 4> place = {0, 0, 0, at.constant};
  int64_t outer = 0, inner = 0;
  for (const auto& [id, coefficient] : at.terms) {
    const Atom& atom = e.pool.indices.atom(id);
    if (atom.kind != Atom::Kind::kVar) return std::nullopt;
    if (atom.id == e.batch) place[0] += coefficient;
    if (atom.id == e.row) place[1] += coefficient;
    if (atom.id == e.col) inner += coefficient;
    if (atom.id == e.col_outer) outer += coefficient;
  }
  if (e.pool.indices.extent(e.col_outer) > 1 && outer != inner * e.split) return std::nullopt;
  place[2] = inner;
  return place;
}

int ProductOperand::width(int64_t lines) const {
  const bool k_first = along_k(), rows_first = !k_first && (row == 1 || lines <= 1);
  if (!k_first && !rows_first) return 1;
  const int64_t others = k_first ? lines : depth;
  int result = widest(dtype, {k_first ? depth : lines, others > 1 ? (k_first ? row : k) : 0, offset});
  for (const auto& [extent, stride] : batch) result = std::min(result, widest(dtype, {stride}));
  return result;
}

bool ProductOperand::shifted(int64_t lines, DType multiply) const {
  const auto size = static_cast<int64_t>(size_of(dtype));
  if (form != Form::kMatrix || dtype != multiply || size > 2 || width(lines) * size > 4) return false;
  const bool k_first = along_k();
  if (!k_first && (row != 1 || size == 1)) return false;  // bytes are read along k only
  const int64_t length = k_first ? depth : lines, others = k_first ? lines : depth;
  return others <= 1 || (k_first ? row : k) >= length;
}

CudaTileProblem tile_problem(const ProductTask& task) {
  const CudaGemmDesc& d = task.product;
  const Epilogue& epilogue = task.epilogue;
  CudaTileProblem p;
  p.a_in = d.multiply_a, p.b_in = d.multiply_b;
  p.tf32 = d.tf32;
  p.m = d.m, p.n = d.n, p.k = d.k, p.batch = d.batch;
  p.out_bytes = kSumBytes;
  p.reduces = !epilogue.reductions.empty();
  if (!epilogue.stores.empty()) {
    p.out_bytes = static_cast<int>(std::max<size_t>(size_of(task.operands[epilogue.stores.front().operand].dtype), 1));
    const auto place = affine_place(epilogue, epilogue.stores.front().at);
    p.scattered = d.m > 1 && place && (*place)[2] == 1 && (*place)[1] * p.out_bytes % kSectorBytes != 0;
  }
  p.a = view_of(d.a, d.m, d.batch, d.multiply_a);
  p.b = view_of(d.b, d.n, d.batch, d.multiply_b);
  return p;
}

}  // namespace heddle::schedule
