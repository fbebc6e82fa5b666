// Which kernels can compute a product on a GPU, and which of them is expected to be the fastest.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "schedule/expr/expr_walk.h"
#include "schedule/product/cuda/contraction.h"
#include "schedule/product/cuda/engine.h"

namespace heddle::schedule {
namespace {

using Form = ProductOperand::Form;

constexpr int64_t kCopyBytes = 16, kSectorBytes = 8;
constexpr int kSumBytes = 4;
static_assert(ir::kPartialColumns == tile::kGemmPartialColumns && ir::kPartialRows == tile::kGemmPartialRows);

bool is_tensor(const CudaGemmDesc& d) {
  const auto narrow = [](DType t) { return t == DType::kF16 || t == DType::kBF16 || size_of(t) == 1; };
  return d.multiply_a == DType::kF32 || (narrow(d.multiply_a) && narrow(d.multiply_b));
}
// Whether tensor cores multiply f32 in two parts: three products of tf32.
bool splits_f32(const CudaGemmDesc& d) {
  return d.multiply_a == DType::kF32 && !d.tf32;
}

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

void add_tile_family(std::vector<CudaCandidate>& found, const CudaTileProblem& problem, const CudaTarget& target) {
  for (const CudaTileCandidate& candidate : enumerate(problem, target)) {
    const CudaTileConfig& g = candidate.config;
    Config c;
    c.algorithm = engine_of(g).name;
    c.tile_m = g.tile_m, c.tile_n = g.tile_n, c.tile_k = g.tile_k;
    c.micro_m = g.warps_m, c.micro_n = g.warps_n;
    c.stages = g.stages, c.splits = g.splits, c.parts = g.parts;
    c.lanes = g.rows;
    c.swapped = g.swapped;
    found.push_back({c, candidate.predicted_us, candidate.rejected});
  }
}

// Registers for the pieces of an operand that a thread of the loading warpgroup holds at once: none where cp.async
// brings them to shared memory.
int64_t held_registers(const CudaOperand& o, DType in, bool k_major, int64_t rows, int64_t tile_k) {
  constexpr int64_t kLoaders = 128, kWord = 4;
  const auto element = static_cast<int64_t>(size_of(in));
  if (o.shifted) return 0;
  if (o.view && o.element == in && k_major == o.along_k && o.width * element >= kWord) return 0;
  const int64_t pieces = std::max<int64_t>(rows * tile_k / (o.width * kLoaders), 1);
  return pieces * std::max<int64_t>(o.width * static_cast<int64_t>(size_of(o.element)) / kWord, 1);
}

// `views`: the operands where threads load them. `factor`: how much slower than the model of TMA says.
void add_sm90_family(std::vector<CudaCandidate>& found, const char* name, const std::optional<CudaGemmProblem>& problem,
                     const CudaTileProblem* views, const std::string& why, double factor, const CudaTarget& target) {
  if (!problem) {
    Config none;
    none.algorithm = name;
    found.push_back({none, 0, why});
    return;
  }
  for (const CudaGemmCandidate& candidate : enumerate(*problem, target, true)) {
    const CudaGemmConfig& g = candidate.config;
    Config c;
    c.algorithm = g.classed ? fmt::format("{}c", name) : g.parts > 0 ? fmt::format("{}p", name) : name;
    c.parts = g.parts;
    c.tile_m = g.tile_m, c.tile_n = g.tile_n;
    c.tile_k = tile::kGemmRowBytes / static_cast<int64_t>(size_of(problem->in));
    c.micro_m = g.consumers, c.micro_n = 1;
    c.stages = g.stages, c.splits = g.splits;
    c.cluster_m = g.cluster_m, c.cluster_n = g.cluster_n;
    c.ping_pong = g.ping_pong, c.swapped = g.swapped, c.stream = g.stream;
    CudaCandidate mine{c, candidate.predicted_us * factor, candidate.rejected};
    constexpr int64_t kMostHeld = 40;
    if (views != nullptr && mine.rejected.empty() &&
        held_registers(views->a, problem->in, problem->a_k_major, c.tile_m, c.tile_k) +
                held_registers(views->b, problem->in, problem->b_k_major, c.tile_n, c.tile_k) >
            (g.parts > 0 ? 0 : kMostHeld)) {
      mine = {c, 0, "more passes through registers than a loading thread has"};
    }
    found.push_back(std::move(mine));
  }
}

// An operand for TMA: contiguous along k or along its rows.
// Batches in two dimensions have one stride, or the inner ones lie within the rows (`step`).
bool read_by_copies(const ProductOperand& o, int64_t rows, int64_t k, DType multiply, bool& k_major, int64_t& leading,
                    int64_t& stride, int64_t& offset, int64_t& step, std::string* why) {
  const auto refuse = [&](const char* text) {
    *why = text;
    return false;
  };
  const auto element = static_cast<int64_t>(size_of(multiply));
  if (o.form != Form::kMatrix) return refuse("an operand is no matrix in memory");
  if (o.dtype != multiply) return refuse("an operand is converted on its way");
  if (o.batch.size() > 2) return refuse("batches have several strides");
  k_major = o.k == 1 || (k == 1 && o.row != 1);
  if (!k_major && o.row != 1 && rows != 1) return refuse("an operand is contiguous along neither of its dimensions");
  if (!k_major && element != 2) return refuse("operands of this type are read along k only");
  leading = k_major ? o.row : o.k;
  const int64_t row = k_major ? k : rows, lines = k_major ? rows : k;
  if (lines == 1) leading = (row * element + kCopyBytes - 1) / kCopyBytes * kCopyBytes / element;
  if (leading < row) return refuse("rows of an operand overlap");
  stride = o.batch.empty() ? 0 : o.batch.back().second;
  if (o.batch.size() == 2 && o.batch[0].second != stride * o.batch[1].first) {
    const int64_t heads = o.batch[1].first, outer = o.batch[0].second, depth = tile::kGemmRowBytes / element;
    step = stride, stride = outer;
    // What is read beyond the end of one head is the next one's. A coordinate along memory that is no multiple of 16
    // bytes is an illegal instruction.
    const bool whole = (!k_major || k % depth == 0) && step * element % kCopyBytes == 0;
    if (step <= 0 || !whole || (heads - 1) * step + row > leading ||
        needs_repack(multiply, leading, outer, o.batch[0].first) || o.offset * element % kCopyBytes != 0) {
      return refuse("batches have several strides");
    }
  }
  if (!o.batch.empty() && stride == 0) return refuse("one operand serves all batches");
  if (stride < 0) return refuse("batches in descending order");
  offset = o.offset;
  return true;
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

CudaTileProblem tile_problem(const CudaGemmDesc& d, const Epilogue& epilogue, const std::vector<Operand>& operands) {
  CudaTileProblem p;
  p.a_in = d.multiply_a, p.b_in = d.multiply_b;
  p.tf32 = d.tf32;
  p.m = d.m, p.n = d.n, p.k = d.k, p.batch = d.batch;
  p.out_bytes = kSumBytes;
  p.reduces = !epilogue.reductions.empty();
  if (!epilogue.stores.empty()) {
    p.out_bytes = static_cast<int>(std::max<size_t>(size_of(operands[epilogue.stores.front().operand].dtype), 1));
    const auto place = affine_place(epilogue, epilogue.stores.front().at);
    p.scattered = d.m > 1 && place && (*place)[2] == 1 && (*place)[1] * p.out_bytes % kSectorBytes != 0;
  }
  p.a = view_of(d.a, d.m, d.batch, d.multiply_a);
  p.b = view_of(d.b, d.n, d.batch, d.multiply_b);
  return p;
}

CudaTileConfig tile_config(const Config& c) {
  CudaTileConfig g;
  const auto engines = cuda_engines();
  const auto found =
      std::find_if(engines.begin(), engines.end(), [&](const auto* e) { return e->name == c.algorithm; });
  HEDDLE_CHECK(found != engines.end(), "{} is none of the kernels over views", c.algorithm);
  g.engine = static_cast<CudaTileConfig::Engine>(found - engines.begin());
  g.parts = static_cast<int>(c.parts);
  const auto i = [](int64_t x) { return static_cast<int>(x); };
  g.tile_m = i(c.tile_m), g.tile_n = i(c.tile_n), g.tile_k = i(c.tile_k);
  g.warps_m = i(c.micro_m), g.warps_n = i(c.micro_n);
  g.stages = i(c.stages), g.splits = i(c.splits);
  g.rows = i(c.lanes);
  g.swapped = c.swapped;
  return g;
}

double cuda_peak(const ContractionDesc& desc, const CudaTarget& target) {
  constexpr double kThread = 256;  // operations of one SM in a cycle
  double rate = kThread;
  if (const auto* d = std::get_if<CudaGemmDesc>(&desc.problem)) {
    const double tensor = target.model.chip.tensor_per_cycle * 2 * 2;
    const auto bytes = static_cast<double>(size_of(d->multiply_a));
    rate = is_tensor(*d) ? tensor / bytes / (splits_f32(*d) ? 3 : 1) : kThread * 4 / std::max(bytes, 4.0);
  }
  return rate * target.model.chip.clock_ghz * 1e9 * target.sms;
}

namespace {

// The load of the only matrix of 16-bit numbers that an epilogue of one result reads beside D, if TMA can
// read it: from multiples of 16 bytes, as the epilogue's functor has to know as well.
std::optional<ExprId> load_of_residual(const Epilogue& e, const std::vector<Operand>& operands, const CudaGemmDesc& d) {
  constexpr int64_t kPiece = 8;
  if (e.stores.size() != 1 || !e.reductions.empty() || e.pool.indices.extent(e.col_outer) > 1 || e.split % kPiece != 0)
    return std::nullopt;
  std::optional<ExprId> found;
  for (const ExprId id : unconditional(e.pool, {e.stores.front().value})) {
    const Expr& load = e.pool[id];
    if (load.kind != Expr::Kind::kLoad) continue;
    const auto place = affine_place(e, load.index);
    if (place && (*place)[1] == 0) continue;
    if (found || !place || (*place)[2] != 1) return std::nullopt;
    const DType dtype = operands[load.id].dtype;
    const bool aligned = (*place)[0] % kPiece == 0 && (*place)[1] % kPiece == 0 && (*place)[3] % kPiece == 0;
    const bool apart = (*place)[1] >= d.n && ((*place)[0] > 0 || d.batch == 1) && (*place)[3] >= 0;
    if ((dtype != DType::kF16 && dtype != DType::kBF16) || !aligned || !apart) return std::nullopt;
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

// What wgmma multiplies, and the first result as a matrix.
std::optional<CudaGemmProblem> wgmma_problem(const CudaGemmDesc& d, const Epilogue& epilogue,
                                             const std::vector<Operand>& operands, std::string* why) {
  if (!is_tensor(d) || d.multiply_a != d.multiply_b || d.multiply_a == DType::kU8) {
    *why = fmt::format("no wgmma for {} and {}", to_string(d.multiply_a), to_string(d.multiply_b));
    return std::nullopt;
  }
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (std::max({d.m, d.n, d.k, d.batch}) > kMost) {
    *why = "a dimension beyond 2^31";
    return std::nullopt;
  }
  CudaGemmProblem p;
  p.in = d.multiply_a;
  p.split = splits_f32(d);
  p.m = d.m, p.n = d.n, p.k = d.k, p.batch = d.batch;
  p.reduces = !epilogue.reductions.empty();
  if (epilogue.stores.empty()) {
    p.epilogue_stores = true, p.heavy_epilogue = holds_many_values(epilogue, {});
    p.out = DType::kF32;
    return p;
  }
  // Sums of integers stay exact only in an epilogue that stores them itself.
  const Epilogue::Store& store = epilogue.stores.front();
  const auto place = affine_place(epilogue, store.at);
  p.out = operands[store.operand].dtype;
  const bool fits = p.in == DType::kI8 ? p.out == DType::kI32 && epilogue.pool[store.value].kind == Expr::Kind::kLocal
                                       : p.out == DType::kF32 || p.out == DType::kF16 || p.out == DType::kBF16;
  const bool matrix = place && (*place)[3] == 0 && ((*place)[2] == 1 || d.n == 1) && ((*place)[1] >= d.n || d.m == 1) &&
                      ((*place)[0] >= (*place)[1] * d.m || d.batch == 1);
  p.epilogue_stores = !fits || !matrix;
  const auto residual = load_of_residual(epilogue, operands, d);
  if (residual) {
    const auto beside = *affine_place(epilogue, epilogue.pool[*residual].index);
    p.residual = {epilogue.pool[*residual].id, beside[3], beside[1], beside[0]};
  }
  p.heavy_epilogue = holds_many_values(epilogue, residual);
  if (p.epilogue_stores) {
    p.out = p.in == DType::kI8 ? DType::kI32 : DType::kF32;
  }
  if (matrix) {
    p.ldd = d.m == 1 ? 0 : (*place)[1];
    p.stride_d = d.batch == 1 ? 0 : (*place)[0];
  }
  return p;
}

}  // namespace

std::optional<CudaGemmProblem> sm90_problem(const CudaGemmDesc& d, const Epilogue& epilogue,
                                            const std::vector<Operand>& operands, std::string* why) {
  auto p = wgmma_problem(d, epilogue, operands, why);
  if (!p || !read_by_copies(d.a, d.m, d.k, p->in, p->a_k_major, p->lda, p->stride_a, p->offset_a, p->step_a, why) ||
      !read_by_copies(d.b, d.n, d.k, p->in, p->b_k_major, p->ldb, p->stride_b, p->offset_b, p->step_b, why)) {
    return std::nullopt;
  }
  if (d.a.batch.size() == 2) p->heads = d.a.batch[1].first;
  if (p->step_a == 0 && p->step_b == 0) p->heads = 1;
  return p->resolved();
}

std::optional<CudaGemmProblem> sm90_views_problem(const CudaGemmDesc& d, const Epilogue& epilogue,
                                                  const std::vector<Operand>& operands, std::string* why) {
  auto p = wgmma_problem(d, epilogue, operands, why);
  if (!p) return p;
  if (d.multiply_a == DType::kF32) {
    *why = "threads that load do not prepare f32";
    return std::nullopt;
  }
  const CudaTileProblem views = tile_problem(d, epilogue, operands);
  p->views = true;
  p->a_k_major = (views.a.shifted ? d.a.along_k() : views.a.along_k) || size_of(p->in) == 1;
  p->b_k_major = (views.b.shifted ? d.b.along_k() : views.b.along_k) || size_of(p->in) == 1;
  p->shifted_a = views.a.shifted, p->shifted_b = views.b.shifted;
  return p->resolved();
}

namespace {

// Where no padding is in the way, the pixels of a line of a window lie side by side: one tap of so many channels, if
// that makes fewer k-tiles.
void join_lines(CudaGemmWindows& w, int64_t depth) {
  const int64_t joined = w.window[0] * w.channels, tiles = (w.channels + depth - 1) / depth;
  const bool inside = w.before[0] == 0 && (w.out[0] - 1) * w.stride[0] + w.window[0] <= w.size[0];
  if (!inside || w.dilation[0] != 1 || w.pixel != w.channels) return;
  if ((joined + depth - 1) / depth >= w.window[0] * tiles) return;
  w.size[0] -= w.window[0] - 1;
  w.channels = joined, w.window[0] = 1;
}

}  // namespace

std::optional<CudaGemmProblem> sm90_windows_problem(const CudaGemmDesc& d, const Epilogue& epilogue,
                                                    const std::vector<Operand>& operands, std::string* why) {
  auto p = wgmma_problem(d, epilogue, operands, why);
  if (!p) return p;
  const auto refuse = [&](const char* text) {
    *why = text;
    return std::nullopt;
  };
  const tile::GemmImageArgs& i = d.a.image;
  const auto element = static_cast<int64_t>(size_of(p->in));
  if (d.a.form != Form::kImage) return refuse("no windows over images in memory");
  if (element != 2 || d.a.dtype != p->in || d.b.dtype != p->in) return refuse("windows are gathered of 16-bit numbers");
  if (d.batch != 1) return refuse("groups of channels");
  if (i.size[0] != 1 || i.window[0] != 1 || i.out[0] != 1 || i.before[0] != 0)
    return refuse("windows of three dimensions");
  const bool along_k = d.b.form == Form::kMatrix && d.b.batch.empty() && (d.b.k == 1 || d.k == 1);
  if (!along_k || d.b.offset != 0 || d.b.row * element % kCopyBytes != 0)
    return refuse("filters are no rows of whole 16 bytes");
  if (i.channels * element % kCopyBytes != 0 || i.pixel * element % kCopyBytes != 0) {
    return refuse("pixels are no whole 16 bytes long");
  }
  CudaGemmWindows w;
  w.images = i.images, w.channels = i.channels, w.pixel = i.pixel;
  for (size_t at = 0; at < 2; ++at) {
    const size_t from = 2 - at;
    w.size[at] = i.size[from], w.out[at] = i.out[from], w.window[at] = i.window[from];
    w.stride[at] = i.stride[from], w.dilation[at] = i.dilation[from], w.before[at] = i.before[from];
    // What fits into TMA's maps.
    constexpr int64_t kMostPlace = 127, kMostStride = 8;
    const int64_t last = (w.out[at] - 1) * w.stride[at] - w.before[at] - (w.size[at] - 1);
    if (w.before[at] > kMostPlace || std::abs(last) > kMostPlace || w.stride[at] > kMostStride ||
        (w.window[at] - 1) * w.dilation[at] > kMostPlace) {
      return refuse("strides, padding or windows beyond TMA's");
    }
  }
  w.line = w.pixel * w.size[0];
  const int64_t depth = tile::kGemmRowBytes / element;
  join_lines(w, depth);
  p->k = w.window[0] * w.window[1] * ((w.channels + depth - 1) / depth) * depth;
  p->ldb = std::max(d.b.row, p->k);  // of the maps only
  p->windows = w;
  *p = p->resolved();
  p->ldb = d.b.row;
  return p;
}

CudaGemmConfig sm90_config(const Config& c, const CudaGemmProblem& problem) {
  CudaGemmConfig g;
  g.tile_m = static_cast<int>(c.tile_m), g.tile_n = static_cast<int>(c.tile_n);
  g.consumers = static_cast<int>(c.micro_m);
  g.stages = static_cast<int>(c.stages), g.splits = static_cast<int>(c.splits);
  g.cluster_m = static_cast<int>(c.cluster_m), g.cluster_n = static_cast<int>(c.cluster_n);
  g.ping_pong = c.ping_pong, g.swapped = c.swapped, g.stream = c.stream;
  g.parts = static_cast<int>(c.parts);
  g.classed = c.algorithm == "sm90c";
  g.store = g.parts == 0   ? store_of(problem, g.splits, g.swapped)
            : g.splits > 1 ? tile::GemmStore::kPartial
                           : tile::GemmStore::kEpilogue;
  return g;
}

std::vector<CudaCandidate> cuda_candidates(const CudaGemmDesc& desc, const Epilogue& epilogue,
                                           const std::vector<Operand>& operands, const Target& target) {
  std::vector<CudaCandidate> found;
  // Pieces of 16 bytes keep up with wgmma; each that is smaller, computed or converted costs instructions.
  const CudaTileProblem views = tile_problem(desc, epilogue, operands);
  constexpr double kWholePieces = 1.4, kSmallPieces = 2.5, kShiftedPieces = 4.2;
  const auto factor = [](const CudaOperand& o, DType in) {
    if (o.shifted) return kShiftedPieces;
    const bool whole = o.view && o.element == in && o.width * static_cast<int>(size_of(in)) == kCopyBytes;
    return whole ? kWholePieces : kSmallPieces;
  };
  const double slower = std::max(factor(views.a, desc.multiply_a), factor(views.b, desc.multiply_b));
  std::string why = "the device is older", why_views = why, why_windows = why;
  const bool wgmma = target.cuda.sm == 90;
  const auto copied = wgmma ? sm90_problem(desc, epilogue, operands, &why) : std::nullopt;
  const auto loaded = wgmma ? sm90_views_problem(desc, epilogue, operands, &why_views) : std::nullopt;
  const auto gathered = wgmma ? sm90_windows_problem(desc, epilogue, operands, &why_windows) : std::nullopt;
  add_sm90_family(found, "sm90", copied, nullptr, why, 1, target.cuda);
  add_sm90_family(found, "sm90w", gathered, nullptr, why_windows, 1, target.cuda);
  add_sm90_family(found, "sm90v", loaded, &views, why_views, slower, target.cuda);
  add_tile_family(found, views, target.cuda);
  // Kernels of TMA load weights while the kernel in front still runs, "lines" does not. In models (H200):
  // 1x1280x320 4.7 us where the model of "lines" says 2.2, 1x640x1280 4.4 where it says 3.2, 32x1000x768 6.1 and 3.5.
  const auto weights = [&](const ProductOperand& o) {
    return o.form == Form::kMatrix && operands[static_cast<size_t>(o.operand)].constant;
  };
  if (copied && (weights(desc.a) || weights(desc.b))) {
    for (CudaCandidate& c : found) {
      if (c.config.algorithm == "lines" && c.rejected.empty()) c.predicted_us += target.cuda.model.mma.late_weights_us;
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const CudaCandidate& a, const CudaCandidate& b) {
    if (a.rejected.empty() != b.rejected.empty()) return a.rejected.empty();
    return a.predicted_us < b.predicted_us;
  });
  for (CudaCandidate& c : found) c.config.reason = fmt::format("{:.1f} us predicted", c.predicted_us);
  return found;
}

namespace {

std::string operand_text(const ProductOperand& o) {
  if (o.form == Form::kComputed) return "computed";
  std::string text(to_string(o.dtype));
  if (o.form == Form::kImage) {
    const tile::GemmImageArgs& i = o.image;
    return text + fmt::format(" image {}x{}x{}x{} window {}x{}x{} stride {}x{}x{}", i.size[0], i.size[1], i.size[2],
                              i.channels, i.window[0], i.window[1], i.window[2], i.stride[0], i.stride[1], i.stride[2]);
  }
  return text + fmt::format("[{},{}]", o.row, o.k);
}

// What the speed depends on, for the tuner's database.
std::string problem_text(const CudaGemmDesc& d, const Epilogue& e, const std::vector<Operand>& operands) {
  std::string text = fmt::format("cuda gemm {}x{}x{}x{} {}{} a {} b {} ->", d.batch, d.m, d.n, d.k,
                                 to_string(d.multiply_a), d.tf32 ? " tf32" : "", operand_text(d.a), operand_text(d.b));
  for (const Epilogue::Store& store : e.stores) text += fmt::format(" {}", to_string(operands[store.operand].dtype));
  for (const Epilogue::Reduction& r : e.reductions) text += r.rows ? " reduced rows" : " reduced columns";
  return text + fmt::format(" expressions {}", e.pool.size());
}

}  // namespace

ScheduledGroup finish_cuda_gemm(ContractionBuilder& builder, CudaGemmDesc desc, std::string label, double operations) {
  const Epilogue& epilogue = builder.desc().epilogue;
  const auto all = [&] { return cuda_candidates(desc, epilogue, builder.operands(), builder.target()); };
  const auto runnable = [&] {
    std::vector<Config> configs;
    for (const CudaCandidate& c : all()) {
      if (c.rejected.empty()) configs.push_back(c.config);
    }
    return configs;
  };
  const Config config = choose_config(builder.configs(), problem_text(desc, epilogue, builder.operands()), runnable);
  label += builder.epilogue_label();
  ScheduledGroup result;
  std::string note = fmt::format("{}: {}, {}", label, name_of(config), config.reason);
  if (!config.algorithm.starts_with("sm90")) {
    std::string why = "the device is older";
    const bool possible =
        builder.target().cuda.sm == 90 && sm90_views_problem(desc, epilogue, builder.operands(), &why).has_value();
    note += possible ? "; wgmma is slower by the model" : "; no wgmma: " + why;
  }
  result.notes.push_back(std::move(note));
  builder.desc().problem = std::move(desc);
  result.kernels.push_back(builder.finish(config, std::move(label), operations));
  return result;
}

}  // namespace heddle::schedule
