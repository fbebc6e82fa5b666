#include "schedule/product/cuda/wgmma/misaligned.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "base/divide.h"
#include "target/argument_block.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kPiece = 16;  // bytes

int64_t element_bytes(const WgmmaProblem& p) {
  return static_cast<int64_t>(size_of(p.in));
}

// An operand of the kernel, in bytes.
struct MatrixLines {
  int operand;
  int64_t rows, row, offset;
};
MatrixLines lines_of(const WgmmaProblem& p, bool is_a) {
  const int64_t element = element_bytes(p);
  return is_a ? MatrixLines{0, p.m, p.lda * element, p.offset_a * element}
              : MatrixLines{1, p.n, p.ldb * element, p.offset_b * element};
}
MatrixLines long_of(const WgmmaProblem& p, bool swapped) {
  return lines_of(p, !swapped);
}
MatrixLines short_of(const WgmmaProblem& p, bool swapped) {
  return lines_of(p, swapped);
}

// Pieces of a row of a copy: whole k-tiles, since the L2 answers 2.5 requests for one of 128 bytes that begins
// elsewhere.
int64_t chunks_of(const WgmmaProblem& p) {
  return class_k_tiles(p) * (tile::kGemmRowBytes / kPiece);
}

}  // namespace

int classes_of(const WgmmaProblem& p, bool swapped) {
  constexpr int kMostClasses = 8;
  constexpr int64_t kMostShort = 128, kLeastRows = 256;
  if (p.views || p.windows || p.split || p.batch != 1 || p.heads > 1 || p.k == 0 || !p.a_k_major || !p.b_k_major)
    return 0;
  const MatrixLines a = long_of(p, swapped), b = short_of(p, swapped);
  if (b.rows > kMostShort || a.rows < kLeastRows) return 0;
  const int64_t classes = kPiece / std::gcd(a.row, kPiece);
  // TMA's strides.
  constexpr int64_t kMostStride = int64_t{1} << 40;
  return classes < 2 || classes > kMostClasses || classes * a.row >= kMostStride ? 0 : static_cast<int>(classes);
}

int class_skip(const WgmmaProblem& p, bool swapped) {
  return static_cast<int>(long_of(p, swapped).offset % kPiece);
}
int class_skip_step(const WgmmaProblem& p, bool swapped) {
  return static_cast<int>(long_of(p, swapped).row % kPiece);
}

int64_t class_k_tiles(const WgmmaProblem& p) {
  return ceil_div(p.k * element_bytes(p) + kPiece - 1, tile::kGemmRowBytes);
}

int64_t misaligned_copies_bytes(const WgmmaProblem& p, bool swapped) {
  return classes_of(p, swapped) * short_of(p, swapped).rows * chunks_of(p) * kPiece;
}

CudaLaunch misaligned_copies_launch(const WgmmaProblem& p, bool swapped, int workspace) {
  const MatrixLines b = short_of(p, swapped);
  tile::GemmClassCopiesArgs args{};
  args.from_offset = b.offset;
  args.from_row = b.row;
  args.bytes = static_cast<uint32_t>(p.k * element_bytes(p));
  args.end = b.offset + (b.rows - 1) * b.row + args.bytes;
  args.rows = static_cast<uint32_t>(b.rows);
  args.chunks = static_cast<uint32_t>(chunks_of(p));
  args.total = static_cast<uint32_t>(misaligned_copies_bytes(p, swapped) / kPiece);
  args.skip = static_cast<uint32_t>(class_skip(p, swapped));
  args.skip_step = static_cast<uint32_t>(class_skip_step(p, swapped));
  CudaLaunch launch;
  launch.symbol = "gemm_copies";
  launch.block = tile::kGemmRepackThreads;
  launch.grid[0] = static_cast<uint32_t>(ceil_div(args.total, tile::kGemmRepackThreads * tile::kGemmRepackChunks));
  launch.arguments = {argument_bytes(args)};
  launch.pointers = {{0, static_cast<int>(offsetof(tile::GemmClassCopiesArgs, from)), b.operand},
                     {0, static_cast<int>(offsetof(tile::GemmClassCopiesArgs, to)), workspace}};
  return launch;
}

std::vector<TensorMapDesc> class_maps(const WgmmaProblem& p, const ClusterSplitKConfig& c, int workspace) {
  const MatrixLines a = long_of(p, c.swapped), b = short_of(p, c.swapped);
  const int64_t element = element_bytes(p), classes = classes_of(p, c.swapped);
  const auto word = [](int64_t x) { return static_cast<uint64_t>(x); };
  TensorMapDesc map;
  map.element = p.in == DType::kF32 ? TensorMapDesc::Element::kTf32
                : element == 2      ? TensorMapDesc::Element::kBits16
                                    : TensorMapDesc::Element::kBits8;
  const auto depth = static_cast<uint32_t>(tile::kGemmRowBytes / element);
  std::vector<TensorMapDesc> maps;
  for (int64_t number = 0; number < classes; ++number) {
    const int64_t begin = a.offset + number * a.row, skip = begin % kPiece, rows = ceil_div(a.rows - number, classes);
    map.operand = a.operand;
    map.offset = word(begin - skip);
    map.extents = {word(skip / element + p.k), word(rows), 1};
    map.strides = {word(classes * a.row), word(classes * a.row * rows)};
    map.box = {depth, static_cast<uint32_t>(c.tile_m)};
    maps.push_back(map);
  }
  const int64_t row = chunks_of(p) * kPiece;
  map.operand = workspace;
  map.offset = 0;
  map.extents = {word(row / element), word(b.rows), word(classes)};
  map.strides = {word(row), word(row * b.rows)};
  map.box = {depth, static_cast<uint32_t>(c.tile_n)};
  maps.push_back(map);
  return maps;
}

}  // namespace heddle::schedule
