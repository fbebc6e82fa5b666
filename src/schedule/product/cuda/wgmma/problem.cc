// What TMA and wgmma see of a product.
#include <algorithm>
#include <limits>

#include "schedule/expr/expr_walk.h"
#include "schedule/product/cuda/tile.h"
#include "schedule/product/cuda/wgmma/wgmma.h"

namespace heddle::schedule {
namespace {

using Form = OperandView::Form;

// An operand as TMA reads it, in the terms of WgmmaProblem.
struct CopiedOperand {
  bool k_major = true;
  int64_t leading = 0, stride = 0, offset = 0, step = 0;
};

// An operand for TMA: contiguous along k or along its rows. Batches in two dimensions have one stride, or the inner
// ones lie within the rows (`step`). nullopt: TMA cannot read it, and `why` says so.
std::optional<CopiedOperand> read_by_copies(const OperandView& o, int64_t rows, int64_t k, DType multiply,
                                            std::string* why) {
  const auto refuse = [&](const char* text) {
    *why = text;
    return std::nullopt;
  };
  CopiedOperand c;
  c.offset = o.offset;
  const auto element = static_cast<int64_t>(size_of(multiply));
  if (o.form != Form::kMatrix) return refuse("an operand is no matrix in memory");
  if (o.dtype != multiply) return refuse("an operand is converted on its way");
  if (o.batch.size() > 2) return refuse("batches have several strides");
  c.k_major = o.k == 1 || (k == 1 && o.row != 1);
  if (!c.k_major && o.row != 1 && rows != 1) return refuse("an operand is contiguous along neither of its dimensions");
  if (!c.k_major && element != 2) return refuse("operands of this type are read along k only");
  c.leading = c.k_major ? o.row : o.k;
  const int64_t row = c.k_major ? k : rows, lines = c.k_major ? rows : k;
  if (lines == 1) c.leading = (row * element + kCopyBytes - 1) / kCopyBytes * kCopyBytes / element;
  if (c.leading < row) return refuse("rows of an operand overlap");
  c.stride = o.batch.empty() ? 0 : o.batch.back().second;
  if (o.batch.size() == 2 && o.batch[0].second != c.stride * o.batch[1].first) {
    const int64_t heads = o.batch[1].first, outer = o.batch[0].second, depth = tile::kGemmRowBytes / element;
    c.step = c.stride, c.stride = outer;
    // What is read beyond the end of one head is the next one's. A coordinate along memory that is no multiple of 16
    // bytes is an illegal instruction.
    const bool whole = (!c.k_major || k % depth == 0) && c.step * element % kCopyBytes == 0;
    if (c.step <= 0 || !whole || (heads - 1) * c.step + row > c.leading ||
        needs_repack(multiply, c.leading, outer, o.batch[0].first) || o.offset * element % kCopyBytes != 0) {
      return refuse("batches have several strides");
    }
  }
  if (c.stride < 0) return refuse("batches in descending order");
  if (!o.batch.empty() && c.stride == 0) {
    if (c.step != 0) return refuse("batches have several strides");
    c.step = tile::kGemmOneForAll;
  }
  return c;
}

// The load of the only matrix that an epilogue of one result reads beside D, if kernels can load it in pieces: its
// elements have 16 bits, or 8 bits like D's, and it begins at multiples of 16 bytes, as the epilogue's functor has to
// know as well.
std::optional<ExprId> load_of_residual(const ProductTask& task) {
  const Product& d = task.product;
  const Epilogue& e = task.epilogue;
  if (e.stores.empty()) return std::nullopt;
  const bool bytes = size_of(task.operands[e.stores.front().operand].dtype) == 1;
  const int64_t piece = bytes ? 16 : 8;
  if (e.stores.size() != 1 || !e.reductions.empty() || e.gate || !e.bounds.empty() ||
      e.pool.indices.extent(e.col_outer) > 1 || e.split % piece != 0)
    return std::nullopt;
  std::optional<ExprId> found;
  for (const ExprId id : unconditional(e.pool, {e.stores.front().value})) {
    const Expr& load = e.pool[id];
    if (load.kind != Expr::Kind::kLoad) continue;
    const auto place = affine_place(e, load.index);
    if (place && (*place)[1] == 0) continue;
    if (found || !place || (*place)[2] != 1) return std::nullopt;
    const DType dtype = task.operands[load.id].dtype;
    const bool aligned = (*place)[0] % piece == 0 && (*place)[1] % piece == 0 && (*place)[3] % piece == 0;
    const bool apart = (*place)[1] >= d.n && ((*place)[0] > 0 || d.batch == 1) && (*place)[3] >= 0;
    const bool fits =
        bytes ? dtype == DType::kU8 || dtype == DType::kI8 : dtype == DType::kF16 || dtype == DType::kBF16;
    if (!fits || !aligned || !apart) return std::nullopt;
    found = id;
  }
  return found;
}

// Whether an epilogue needs registers for more than a few values of each element: it reads matrices beside D, whose
// loads are under way for many elements at once, or is long. `residual`: a load that does not count.
bool holds_many_values(const Epilogue& e, std::optional<ExprId> residual) {
  constexpr size_t kLong = 40;
  if (e.stores.size() > 1 || !e.reductions.empty() || e.pool.size() > kLong) return true;
  for (ExprId id = 0; id < static_cast<ExprId>(e.pool.size()); ++id) {
    if (e.pool[id].kind != Expr::Kind::kLoad || residual == id) continue;
    const auto place = affine_place(e, e.pool[id].index);
    if (!place || (*place)[1] != 0) return true;
  }
  return false;
}

// Whether an epilogue stores several results, reads several matrices of narrow elements beside `residual`, or stores
// bytes and reads one such matrix. Sums then pass through shared memory, so that rows of all these are accessed as
// whole vectors. An access by fragments would touch eight lines of memory for at most 128 bytes.
bool is_by_rows(const ProductTask& task, std::optional<ExprId> residual) {
  const Epilogue& e = task.epilogue;
  int narrow = 0;
  for (ExprId id = 0; id < static_cast<ExprId>(e.pool.size()); ++id) {
    const Expr& load = e.pool[id];
    if (load.kind != Expr::Kind::kLoad || residual == id || size_of(task.operands[load.id].dtype) > 2) continue;
    const auto place = affine_place(e, load.index);
    narrow += place && (*place)[1] != 0 && (*place)[2] == 1 ? 1 : 0;
  }
  const bool bytes = size_of(task.operands[e.stores.front().operand].dtype) == 1;
  return e.reductions.empty() && !e.gate && (e.stores.size() > 1 || narrow > (bytes ? 0 : 1));
}

// What wgmma multiplies, and the first result as a matrix.
std::optional<WgmmaProblem> multiplied(const ProductTask& task, std::string* why) {
  const Product& d = task.product;
  const Epilogue& epilogue = task.epilogue;
  const bool mixed = d.multiply_a == DType::kU8 && d.multiply_b == DType::kI8;
  if (!d.on_tensor_cores() || (d.multiply_a != d.multiply_b && !mixed) || d.multiply_b == DType::kU8) {
    *why = fmt::format("no wgmma for {} and {}", to_string(d.multiply_a), to_string(d.multiply_b));
    return std::nullopt;
  }
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (std::max({d.m, d.n, d.k, d.batch}) > kMost) {
    *why = "a dimension beyond 2^31";
    return std::nullopt;
  }
  WgmmaProblem p;
  p.in = d.multiply_a;
  p.split = d.splits_f32();
  p.m = d.m, p.n = d.n, p.k = d.k, p.batch = d.batch;
  p.read_bytes = epilogue_read_bytes(task);
  p.reduces = !epilogue.reductions.empty();
  p.gated = task.gated();
  if (epilogue.stores.empty()) {
    p.epilogue_stores = true, p.heavy_epilogue = holds_many_values(epilogue, {});
    p.out = DType::kF32;
    return p;
  }
  const Epilogue::Store& store = epilogue.stores.front();
  const auto place = affine_place(epilogue, store.at);
  p.out = task.operands[store.operand].dtype;
  const bool floats = p.out == DType::kF32 || p.out == DType::kF16 || p.out == DType::kBF16;
  const bool bytes = p.out == DType::kU8 || p.out == DType::kI8;
  const bool sums = p.out == DType::kI32 && epilogue.pool[store.value].kind == Expr::Kind::kLocal;
  const bool fits = floats || (is_int(p.in) && (bytes || sums));
  const int64_t columns = task.columns();
  const bool matrix = place && epilogue.bounds.empty() && (*place)[3] >= 0 && ((*place)[2] == 1 || columns == 1) &&
                      ((*place)[1] >= columns || d.m == 1) &&
                      (d.batch == 1 || (*place)[0] >= (*place)[1] * d.m ||
                       ((*place)[0] >= columns && (*place)[1] >= (*place)[0] * d.batch));  // batches within rows
  p.epilogue_stores = !fits || !matrix;
  p.quantises = size_of(p.out) == 1;
  const auto residual = load_of_residual(task);
  if (residual) {
    const auto beside = *affine_place(epilogue, epilogue.pool[*residual].index);
    p.residual = {epilogue.pool[*residual].id, beside[3], beside[1], beside[0]};
  }
  p.heavy_epilogue = holds_many_values(epilogue, residual);
  if (!p.epilogue_stores && is_by_rows(task, residual)) {
    p.epilogue_stores = p.by_rows = true;
    p.residual.reset();
  } else if (p.epilogue_stores) {
    p.out = is_int(p.in) ? DType::kI32 : DType::kF32;
  }
  if (matrix) {
    p.ldd = d.m == 1 ? 0 : (*place)[1];
    p.stride_d = d.batch == 1 ? 0 : (*place)[0];
    p.offset_d = (*place)[3];
  }
  return p;
}

}  // namespace

std::optional<WgmmaProblem> wgmma_problem(const ProductTask& task, std::string* why) {
  const Product& d = task.product;
  auto p = multiplied(task, why);
  const auto a = p ? read_by_copies(d.a, d.m, d.k, p->in, why) : std::nullopt;
  const auto b = a ? read_by_copies(d.b, d.n, d.k, d.multiply_b, why) : std::nullopt;
  if (!b) return std::nullopt;
  p->a_k_major = a->k_major, p->lda = a->leading, p->stride_a = a->stride, p->offset_a = a->offset, p->step_a = a->step;
  p->b_k_major = b->k_major, p->ldb = b->leading, p->stride_b = b->stride, p->offset_b = b->offset, p->step_b = b->step;
  if (d.a.batch.size() == 2) p->heads = d.a.batch[1].first;
  if (p->step_a == 0 && p->step_b == 0) p->heads = 1;
  return p->resolved();
}

std::optional<WgmmaProblem> wgmma_gather_problem(const ProductTask& task, std::string* why) {
  const Product& d = task.product;
  auto p = multiplied(task, why);
  if (!p) return p;
  if (d.multiply_a == DType::kF32 || d.multiply_a != d.multiply_b) {
    *why = "threads that load prepare neither f32 nor two types";
    return std::nullopt;
  }
  const TileProblem views = tile_problem(task);
  p->views = true;
  p->a_k_major = (views.a.shifted ? d.a.along_k() : views.a.along_k) || size_of(p->in) == 1;
  p->b_k_major = (views.b.shifted ? d.b.along_k() : views.b.along_k) || size_of(p->in) == 1;
  p->shifted_a = views.a.shifted, p->shifted_b = views.b.shifted;
  return p->resolved();
}

namespace {

// Where no padding is in the way, the pixels of a line of a window lie side by side: one tap of so many channels, if
// that makes fewer k-tiles.
void join_lines(WgmmaWindows& w, int64_t depth) {
  const int64_t joined = w.window[0] * w.channels, tiles = (w.channels + depth - 1) / depth;
  const bool inside = w.before[0] == 0 && (w.out[0] - 1) * w.stride[0] + w.window[0] <= w.size[0];
  if (!inside || w.dilation[0] != 1 || w.pixel != w.channels) return;
  if ((joined + depth - 1) / depth >= w.window[0] * tiles) return;
  w.size[0] -= w.window[0] - 1;
  w.channels = joined, w.window[0] = 1;
}

// The windows in TMA's terms; nullopt if its maps cannot describe them.
std::optional<WgmmaWindows> windows_of(const OperandView& o) {
  const tile::GemmImageArgs& i = o.image;
  WgmmaWindows w;
  w.images = i.images, w.channels = i.channels, w.pixel = i.pixel, w.offset = o.offset;
  for (size_t at = 0; at < 2; ++at) {
    const size_t from = 2 - at;
    w.size[at] = i.size[from], w.out[at] = i.out[from], w.window[at] = i.window[from];
    w.stride[at] = i.stride[from], w.dilation[at] = i.dilation[from], w.before[at] = i.before[from];
    constexpr int64_t kMostPlace = 127, kMostStride = 8;
    const int64_t last = (w.out[at] - 1) * w.stride[at] - w.before[at] - (w.size[at] - 1);
    if (w.before[at] > kMostPlace || std::abs(last) > kMostPlace || w.stride[at] > kMostStride ||
        (w.window[at] - 1) * w.dilation[at] > kMostPlace) {
      return std::nullopt;
    }
  }
  w.line = w.pixel * w.size[0];
  return w;
}

}  // namespace

std::optional<WgmmaProblem> wgmma_im2col_problem(const ProductTask& task, std::string* why) {
  const Product& d = task.product;
  auto p = multiplied(task, why);
  if (!p) return p;
  const auto refuse = [&](const char* text) {
    *why = text;
    return std::nullopt;
  };
  const tile::GemmImageArgs& i = d.a.image;
  const auto element = static_cast<int64_t>(size_of(p->in));
  if (d.a.form != Form::kImage) return refuse("no windows over images in memory");
  if (element > 2 || d.a.dtype != d.multiply_a || d.b.dtype != d.multiply_b)
    return refuse("windows are gathered of numbers of 8 and 16 bits");
  if (i.size[0] != 1 || i.window[0] != 1 || i.out[0] != 1 || i.before[0] != 0)
    return refuse("windows of three dimensions");
  const int64_t depth = tile::kGemmRowBytes / element;
  if (d.batch != 1 && i.channels % depth != 0) return refuse("groups of channels that are no whole k-tiles");
  const bool behind = d.b.batch.empty() || (d.b.batch.size() == 1 && d.b.batch[0].second == d.n * d.b.row);
  const bool along_k = d.b.form == Form::kMatrix && behind && (d.b.k == 1 || d.k == 1);
  if (!along_k || d.b.offset != 0 || d.b.row * element % kCopyBytes != 0)
    return refuse("filters are no rows of whole 16 bytes");
  for (const int64_t place : {int64_t{i.channels}, int64_t{i.pixel}, d.a.offset}) {
    if (place * element % kCopyBytes != 0) return refuse("pixels are no whole 16 bytes long");
  }
  std::optional<WgmmaWindows> w = windows_of(d.a);
  if (!w) return refuse("strides, padding or windows beyond TMA's");
  join_lines(*w, depth);
  p->k = w->window[0] * w->window[1] * ((w->channels + depth - 1) / depth) * depth;
  p->ldb = std::max(d.b.row, p->k);  // of the maps only
  p->windows = w;
  *p = p->resolved();
  p->ldb = d.b.row;
  return p;
}

std::optional<WgmmaProblem> wgmma_wgrad_problem(const ProductTask& task, std::string* why) {
  const Product& d = task.product;
  auto p = multiplied(task, why);
  const auto b = p ? read_by_copies(d.b, d.n, d.k, p->in, why) : std::nullopt;
  if (!b) return std::nullopt;
  p->windows = windows_of(d.a);
  if (!p->windows) {
    *why = "strides, padding or windows beyond TMA's";
    return std::nullopt;
  }
  p->sums_windows = true;
  p->a_k_major = false;
  p->b_k_major = b->k_major, p->ldb = b->leading, p->stride_b = b->stride, p->offset_b = b->offset, p->step_b = b->step;
  return p->resolved();
}

}  // namespace heddle::schedule
