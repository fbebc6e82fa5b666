// A product as the kernels over views see it.
#include <algorithm>

#include "schedule/product/cuda/tile.h"
#include "tile/core/pack.h"

namespace heddle::schedule {
namespace {

using Form = OperandView::Form;

constexpr int64_t kSectorBytes = 8;
constexpr int kSumBytes = 4;

// Largest power of two that divides all values, at most 16 bytes of elements.
int widest(DType dtype, std::initializer_list<int64_t> values) {
  int64_t factor = kCopyBytes / static_cast<int64_t>(std::max<size_t>(size_of(dtype), 1));
  for (const int64_t value : values) {
    if (value != 0) factor = std::min(factor, value & -value);
  }
  return static_cast<int>(std::max<int64_t>(factor, 1));
}

}  // namespace

bool stores_apart(const Epilogue& e) {
  if (e.stores.empty() || e.split <= 1) return false;
  bool beside = false;
  for (const auto& [id, coefficient] : e.stores.front().at.terms) {
    if ((e.pool.vars(Index{0, {{id, 1}}}) >> e.col & 1) == 0) continue;
    beside = e.pool.indices.atom(id).kind == Atom::Kind::kVar && coefficient == 1;
    if (!beside) return true;
  }
  return !beside;
}

OperandTraits traits_of(const OperandView& o, int64_t lines, int64_t batch, DType multiply) {
  OperandTraits t;
  t.element = o.dtype;
  const auto element = static_cast<int64_t>(size_of(o.dtype));
  if (o.form == Form::kImage) {
    const tile::GemmImageArgs& i = o.image;
    t.image = true;
    t.width = widest(o.dtype, {i.channels, i.pixel, batch > 1 ? i.group : 0, o.offset});
    t.bytes = static_cast<double>(int64_t{i.images} * i.size[0] * i.size[1] * i.size[2]) *
              static_cast<double>(i.channels * batch) * static_cast<double>(element);
    return t;
  }
  if (o.form == Form::kPacked) {
    const PackedWeights& w = *o.weights;
    const double in_scale = static_cast<double>(size_of(multiply)) * (w.third && !w.is_table ? 2 : 1);
    t.view = false;
    t.bits = static_cast<int>(w.bits);
    t.width = static_cast<int>(tile::packed_per_word(w.bits));
    t.bytes = static_cast<double>(lines) *
              (static_cast<double>(o.depth * w.bits) / 8 + static_cast<double>(w.blocks) * in_scale);
    return t;
  }
  t.view = o.form != Form::kComputed;
  t.image = o.form == Form::kMerged;
  t.bytes =
      static_cast<double>(lines) * static_cast<double>(std::max<int64_t>(o.depth, 1)) * static_cast<double>(element);
  for (const auto& [extent, stride] : o.batch) t.bytes *= stride != 0 ? static_cast<double>(extent) : 1;
  t.along_k = !t.view || o.along_k();
  t.width = t.view ? o.width(lines) : element == 8 ? 2 : 4;
  t.shifted = o.shifted(lines, multiply);
  t.packed = o.packed(lines);
  constexpr int64_t kMostApart = 4 << 20;  // bytes: a tile of 256 lines is addressed in 32 bits
  t.lines = o.form == Form::kMatrix && o.dtype == multiply && o.along_k() && std::abs(o.row) < kMostApart / element;
  if (t.width == 1) t.along_k = true;  // what the kernels take where neither is wide
  return t;
}

int OperandView::width(int64_t lines) const {
  const bool k_first = along_k(), rows_first = !k_first && (row == 1 || lines <= 1);
  if (!k_first && !rows_first) return 1;
  const int64_t others = k_first ? lines : depth;
  int result = widest(dtype, {k_first ? depth : lines, others > 1 ? (k_first ? row : k) : 0, offset});
  // Of what is merged, the innermost dimension holds whole pieces, and all others begin at some.
  for (const auto* dims : {&row_dims, &k_dims}) {
    const bool first = (dims == &k_dims) == k_first;
    for (size_t i = 0; i < dims->size(); ++i) {
      const auto& [extent, stride] = (*dims)[i];
      result = std::min(result, widest(dtype, {first && i + 1 == dims->size() ? extent : stride}));
    }
  }
  for (const auto& [extent, stride] : batch) result = std::min(result, widest(dtype, {stride}));
  return result;
}

bool OperandView::shifted(int64_t lines, DType multiply) const {
  const auto size = static_cast<int64_t>(size_of(dtype));
  if (form != Form::kMatrix || dtype != multiply || size > 2 || width(lines) * size > 4) return false;
  const bool k_first = along_k();
  if (!k_first && (row != 1 || size == 1)) return false;  // bytes are read along k only
  const int64_t length = k_first ? depth : lines, others = k_first ? lines : depth;
  return others <= 1 || (k_first ? row : k) >= length;
}

bool OperandView::packed(int64_t lines) const {
  if (form != Form::kMatrix || along_k() || (row != 1 && lines > 1) || k != lines) return false;
  const int all = static_cast<int>(kCopyBytes / static_cast<int64_t>(size_of(dtype)));
  return widest(dtype, {offset}) == all &&
         std::all_of(batch.begin(), batch.end(), [&](const auto& b) { return widest(dtype, {b.second}) == all; });
}

TileProblem tile_problem(const ProductTask& task) {
  const Product& d = task.product;
  const Epilogue& epilogue = task.epilogue;
  TileProblem p;
  p.a_in = d.multiply_a, p.b_in = d.multiply_b;
  p.tf32 = d.tf32;
  p.m = d.m, p.n = d.n, p.k = d.k, p.batch = d.batch;
  p.out_bytes = kSumBytes;
  p.read_bytes = epilogue_read_bytes(task);
  p.reduces = !epilogue.reductions.empty();
  p.gated = task.gated();
  if (!epilogue.stores.empty()) {
    p.out_bytes = static_cast<int>(std::max<size_t>(size_of(task.operands[epilogue.stores.front().operand].dtype), 1));
    const auto place = affine_place(epilogue, epilogue.stores.front().at);
    p.scattered = d.m > 1 && place && (*place)[2] == 1 && (*place)[1] * p.out_bytes % kSectorBytes != 0;
  }
  p.a = traits_of(d.a, d.m, d.batch, d.multiply_a);
  p.b = traits_of(d.b, d.n, d.batch, d.multiply_b);
  return p;
}

}  // namespace heddle::schedule
