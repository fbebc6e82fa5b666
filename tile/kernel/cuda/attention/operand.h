// Tiles of Q, K and V in shared memory, and how warps read them for Mma (sm80.h).
#pragma once

#include "tile/core/cuda_attention.h"
#include "tile/kernel/cuda/attention/lanes.h"
#include "tile/kernel/cuda/operand/fragment.h"
#include "tile/kernel/cuda/operand/load.h"
#include "tile/kernel/cuda/operand/split_tf32.h"

namespace heddle::tile::sm80 {

using cuda::AttentionRole;

// A tile of V with 32-bit elements. In each group of 8 keys, the even keys are stored before the odd keys. Fragments of
// V then have the key order that the scores have after pack_scores(). So the accumulators of the scores become an
// operand without moves between lanes.
template <typename Tile>
struct PairedKeys : Tile {
  __device__ static uint32_t place(uint32_t row, uint32_t key) {
    return Tile::place(row, (key & ~7u) | (key & 1) << 2 | (key & 6) >> 1);
  }
};
template <typename Tile, bool Pairs>
struct StoredTile {
  using type = Tile;
};
template <typename Tile>
struct StoredTile<Tile, true> {
  using type = PairedKeys<Tile>;
};

// A loader that can read back the values that it loaded.
template <typename Operand, typename In, typename Tile, int Rows, int TileK, int Threads>
class AttentionLoader : public cuda::TileLoader<Operand, In, Tile, Rows, TileK, Threads> {
  using Base = cuda::TileLoader<Operand, In, Tile, Rows, TileK, Threads>;
  using typename Base::D;
  static constexpr bool kAlongK = Base::Traits::kMemoryAlongK;

 public:
  using Base::Base;

  // Calls f(x) for each word of a tile that this thread loaded. Elements must have 32 bits.
  template <typename F>
  __device__ static void for_words(const uint8_t* tile, F f) {
    const int line = cuda::loading_thread<Threads>() / D::kAcross;
    const int pos = cuda::loading_thread<Threads>() % D::kAcross * Base::W;
    if (D::kIdle && line >= (kAlongK ? Rows : TileK)) return;
#pragma unroll 2  // unrolling further would take too many registers
    for (int i = 0; i < D::kCount; ++i) {
      const int row = (kAlongK ? line : pos) + Base::row_of(i), k = (kAlongK ? pos : line) + Base::k_of(i);
      if constexpr (Tile::kAlongK == kAlongK) {
        const auto piece = *reinterpret_cast<const cuda::Piece<uint32_t, Base::W>*>(tile + Tile::place(row, k));
#pragma unroll
        for (int j = 0; j < Base::W; ++j) f(piece.x[j]);
      } else {
#pragma unroll
        for (int j = 0; j < Base::W; ++j) {
          const uint32_t at = kAlongK ? Tile::place(row, k + j) : Tile::place(row + j, k);
          f(*reinterpret_cast<const uint32_t*>(tile + at));
        }
      }
    }
  }
};

// Tiles of an operand (Q, K or V) of one batch. A tile has Rows rows (columns for V), each with Depth elements along
// the summed dimension, and is divided into slices. In a tile of V with 32-bit elements, the elements of one key form a
// contiguous line, so the lines may be stored in any order of the keys. A tile of keys may consist of `Pages` parts,
// each from a different batch.
template <typename Operand, typename In, int Rows, int Depth, int Threads, AttentionRole Role, int Pages = 1>
class AttentionOperand {
  static constexpr int kElement = sizeof(In), kStep = 32 / kElement;
  static constexpr bool kPairs = Role == AttentionRole::kV && kElement == 4;
  static constexpr bool kAlongK = cuda::OperandTraits<Operand, In>::kMemoryAlongK && !kPairs;
  static constexpr int kSlice = attention_slice(kAlongK ? Depth : Rows, kElement);
  static constexpr int kInSlice = kSlice / (kAlongK ? kStep : 16);  // number of steps or blocks per slice
  static constexpr int kSlices = (kAlongK ? Depth : Rows) / kSlice;
  static constexpr int kSliceRows = kAlongK ? Rows : kSlice, kSliceDepth = kAlongK ? kSlice : Depth;
  static constexpr int kAtOnce = kElement == 4 || kSlices > 8 ? 1 : kSlices;  // unrolled slices; each takes registers
  using Tile = SwizzledTile<In, kSliceRows, kSliceDepth, kAlongK>;
  using Stored = typename StoredTile<Tile, kPairs>::type;
  static constexpr bool kMemoryAlongK = cuda::OperandTraits<Operand, In>::kMemoryAlongK;
  static constexpr int kPartLines = (kAlongK ? Rows : Depth) / Pages, kPartBytes = kPartLines * Tile::kPitch;
  using Loader = AttentionLoader<Operand, In, Stored, kAlongK ? kPartLines : kSliceRows,
                                 kAlongK ? kSliceDepth : kPartLines, Threads>;
  static_assert(Pages == 1 || kMemoryAlongK == (Role == AttentionRole::kK), "pages are cut between lines");

 public:
  static constexpr int kBytes = kSlices * Tile::kBytes;

  __device__ AttentionOperand(const Operand& operand, int32_t batch) : operand_(operand), batch_(batch), reader_(0) {}

  // Requests the tile that starts at row `row` and depth element `at`. finish() does nothing.
  __device__ void load(uint8_t* to, int32_t row, int32_t at) const { load_part(to, batch_, row, at); }
  // Requests a tile whose keys are in pages (pages.h). `walk` gives the pages; `key` is the first key within each
  // page. For V, `column` is the first column.
  template <int Page, typename Walk>
  __device__ void load_pages(uint8_t* to, const Walk& walk, int32_t key, int32_t column) const {
#pragma unroll
    for (int i = 0; i < Pages; ++i) {
      const int32_t page = walk.page(i);
      // If there is no page, reads past the end of page 0, which gives zeros.
      const int32_t batch = page < 0 ? 0 : walk.operand_batch(page), first = page < 0 ? Page : key;
      load_part(to + i * kPartBytes, batch, Role == AttentionRole::kK ? first : column,
                Role == AttentionRole::kK ? 0 : first);
    }
  }
  __device__ void finish(uint8_t*) const {}
  // True if tensor cores must not multiply some of the values that this thread loaded into the tile (split_tf32.h). The
  // tile must have arrived in shared memory.
  __device__ static bool leaves_range(const uint8_t* tile) {
    float most = 0;
#pragma unroll 1
    for (int i = 0; i < kSlices * Pages; ++i) {
      const uint8_t* part = tile + i / Pages * Tile::kBytes + i % Pages * kPartBytes;
      Loader::for_words(part, [&](uint32_t x) { most = cuda::larger_magnitude(most, x); });
    }
    return cuda::is_beyond_range(most);
  }
  // Reads the fragment of 16-row block `block` at depth step `step`.
  __device__ void read(uint32_t (&r)[4], const uint8_t* tile, int block, int step) const {
    const uint8_t* slice = tile + (kAlongK ? step : block) / kInSlice * Tile::kBytes;
    reader_.read(r, slice, cuda::shared_address(slice), kAlongK ? block : block % kInSlice,
                 kAlongK ? step % kInSlice : step);
#pragma unroll
    for (uint32_t& word : r) round_fragment<In>(word);
  }

 private:
  __device__ void load_part(uint8_t* to, int32_t batch, int32_t row, int32_t at) const {
    if constexpr (kAlongK) {
      Loader loader(operand_, batch, row, at);
#pragma unroll kAtOnce
      for (int i = 0; i < kSlices; ++i) {
        copy(loader, to + i * Tile::kBytes);
        loader.next();
      }
    } else {
#pragma unroll kAtOnce
      for (int i = 0; i < kSlices; ++i) {
        Loader loader(operand_, batch, row + i * kSlice, at);
        copy(loader, to + i * Tile::kBytes);
      }
    }
  }
  __device__ static void copy(Loader& loader, uint8_t* to) {
    if constexpr (Loader::kAsync) {
      loader.copy(cuda::shared_address(to));
    } else {
      loader.fetch();
      loader.put(to);
    }
  }

  const Operand& operand_;
  const int32_t batch_;
  const FragmentReader<In, Tile, kStep, kAlongK, Role != AttentionRole::kQ> reader_;
};

}  // namespace heddle::tile::sm80
