// Loads the tile of an operand whose lines may begin at any element, so that 16-byte pieces of a line are not aligned
// in memory. Each piece is assembled from the two aligned 16-byte words that contain it.
#pragma once

#include "tile/kernel/cuda/operand/load.h"
#include "tile/kernel/cuda/operand/operand.h"
#include "tile/kernel/cuda/operand/shifted.h"

namespace heddle::tile::cuda {

// True for an operand with view() and these members:
//
//   static constexpr bool kLinesAlongK = true;
//   __device__ MatrixLines<Element> lines(int batch) const;
template <typename Operand, typename In>
concept ShiftedAs = HasView<Operand> && same_bits<typename Operand::Element, In> && requires(const Operand& o) {
  o.lines(0);
};

template <typename Operand, typename In>
requires ShiftedAs<Operand, In>
struct OperandTraits<Operand, In> {
  static constexpr bool kMemoryAlongK = Operand::kLinesAlongK;
  static constexpr int kWidth = 16 / sizeof(In);
  static constexpr bool kRaw = true;
};

// Loads a tile with cp.async in two steps. copy() copies the aligned 16-byte words of every line to shared memory. When
// the words have arrived, finish() shifts them and stores them to the tile. Memory after the matrix is not read.
template <typename Operand, typename In, typename SharedTile, int Rows, int TileK, int Threads>
requires ShiftedAs<Operand, In>
class TileLoader<Operand, In, SharedTile, Rows, TileK, Threads> {
 private:
  static constexpr bool kAlongK = Operand::kLinesAlongK;
  static constexpr int W = 16 / sizeof(In);
  using D = Deal<(kAlongK ? Rows : TileK), (kAlongK ? TileK : Rows) / W, Threads>;

 public:
  using Tile = SharedTile;
  static constexpr bool kAsync = false;

  __device__ TileLoader(const Operand& operand, int batch, int row, int k) {
    const auto lines = operand.lines(batch);
    place_ = static_cast<int>(threadIdx.x) / D::kAcross;
    inside_ = static_cast<int>(threadIdx.x) % D::kAcross * W;
    lines_ = lines.lines - (kAlongK ? row : k) - place_;
    left_ = lines.length - (kAlongK ? k : row) - inside_;
    leading_ = lines.leading * int(sizeof(In));
    const auto data = reinterpret_cast<uint64_t>(lines.data);
    end_ = data + (lines.lines - 1) * leading_ + lines.length * int(sizeof(In));
    begin_ = data & ~uint64_t{15};
    at_ = data + ((kAlongK ? row : k) + place_) * leading_ + ((kAlongK ? k : row) + inside_) * int(sizeof(In));
  }

  // The copied words in shared memory. A line has kPieces + 1 words.
  static constexpr int kPieces = (kAlongK ? TileK : Rows) / W, kPitch = (kPieces + 1) * 16;
  static constexpr int kRawBytes = (kAlongK ? Rows : TileK) * kPitch;

  // The state of a copied tile that finish() needs.
  struct Copied {
    int left;
    uint32_t at, leading;
  };

  // Copies to the shared-memory address `raw`. One warp copies each line, so a warp barrier before finish() suffices.
  __device__ Copied copy(uint32_t raw) const {
    if (!D::kIdle || !idle()) {
#pragma unroll
      for (int i = 0; i < D::kCount; ++i) {
        const uint64_t at = at_ + line_of(i) * leading_ + pos_of(i) * int(sizeof(In)), word = at & ~uint64_t{15};
        const int bytes = line_of(i) < lines_ ? bytes_of(left_ - pos_of(i)) + static_cast<int>(at & 15) : 0;
        const uint32_t to = raw + (place_ + line_of(i)) * kPitch + (inside_ + pos_of(i)) * int(sizeof(In));
        copy_word(to, word, bytes > 0);
        if (inside_ + pos_of(i) == (kPieces - 1) * W) copy_word(to + 16, word + 16, bytes > 16);
      }
    }
    return {left_, static_cast<uint32_t>(at_), static_cast<uint32_t>(leading_)};
  }
  __device__ static void finish(const Copied& copied, const uint8_t* raw, uint8_t* to) {
    const int place = static_cast<int>(threadIdx.x) / D::kAcross;
    const int inside = static_cast<int>(threadIdx.x) % D::kAcross * W;
    if (D::kIdle && place >= (kAlongK ? Rows : TileK)) return;
#pragma unroll
    for (int i = 0; i < D::kCount; ++i) {
      const int line = place + line_of(i), pos = inside + pos_of(i);
      const auto* word = reinterpret_cast<const Chunk*>(raw + line * kPitch + pos * int(sizeof(In)));
      const Chunk chunk = shifted(word[0], word[1], (copied.at + line_of(i) * copied.leading) & 15);
      put_piece(to, line, pos, before(chunk, bytes_of(copied.left - pos_of(i))));
    }
  }

  __device__ void next() {
    if constexpr (kAlongK) {
      at_ += TileK * sizeof(In);
      left_ -= TileK;
    } else {
      at_ += TileK * leading_;
      lines_ -= TileK;
    }
  }

 private:
  using Held = Piece<In, W>;

  __device__ void copy_word(uint32_t to, uint64_t word, bool valid) const {
    const uint64_t behind = end_ - word;  // the bytes up to the end of the matrix; positive if `valid`
    sm80::copy_async<16>(to, reinterpret_cast<const void*>(valid ? word : begin_),
                         !valid        ? 0
                         : behind < 16 ? static_cast<uint32_t>(behind)
                                       : 16);
  }
  __device__ static void put_piece(uint8_t* to, int line, int pos, const Chunk& chunk) {
    if constexpr (Tile::kAlongK == kAlongK) {
      *reinterpret_cast<Chunk*>(to + place_of(line, pos)) = chunk;
    } else {
      const auto piece = __builtin_bit_cast(Held, chunk);
#pragma unroll
      for (int j = 0; j < W; ++j) *reinterpret_cast<In*>(to + place_of(line, pos + j)) = piece.x[j];
    }
  }

  __device__ static constexpr int line_of(int i) {
    return i / D::kPos * D::kLinesAtOnce;
  }
  __device__ static constexpr int pos_of(int i) {
    return i % D::kPos * D::kAcross * W;
  }
  __device__ static uint32_t place_of(int line, int pos) {
    return kAlongK ? Tile::place(line, pos) : Tile::place(pos, line);
  }
  __device__ bool idle() const {
    return place_ >= (kAlongK ? Rows : TileK);
  }

  // The number of bytes in `left` elements, limited to two words: a shifted piece never reaches further.
  __device__ static int bytes_of(int left) {
    return (left < 2 * W ? left : 2 * W) * int(sizeof(In));
  }

  uint64_t begin_, at_, end_;  // addresses: the aligned start of the matrix, the thread's first piece, the matrix's end
  int64_t leading_;            // the stride between lines, in bytes
  int place_, inside_;         // the line and the element of the thread's first piece in the tile
  int lines_, left_;           // the number of lines and of elements in a line from the thread's first piece on
};

}  // namespace heddle::tile::cuda
