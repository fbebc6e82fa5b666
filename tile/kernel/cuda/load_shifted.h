// The tile of an operand whose lines begin at any element, so that no piece of 16 bytes is aligned in memory: a piece
// is made of the two aligned words around it.
#pragma once

#include "tile/kernel/cuda/load.h"
#include "tile/kernel/cuda/operand.h"
#include "tile/kernel/cuda/shifted.h"

namespace heddle::tile::cuda {

// An operand that says so: besides view(), it has
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

// The words are asked for by fetch() and shifted by put(). What lies behind the matrix is not read.
template <typename Operand, typename In, typename SharedTile, int Rows, int TileK, int Threads>
requires ShiftedAs<Operand, In>
class TileLoader<Operand, In, SharedTile, Rows, TileK, Threads> {
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
    at_ = data + ((kAlongK ? row : k) + place_) * leading_ + ((kAlongK ? k : row) + inside_) * int(sizeof(In));
  }

  __device__ void copy(uint32_t) {}
  __device__ void fetch() {
    held_left_ = left_;
    held_at_ = static_cast<uint32_t>(at_);
#pragma unroll
    for (int i = 0; i < D::kCount; ++i) {
      low_[i] = high_[i] = Chunk{};
      if (line_of(i) >= lines_ || pos_of(i) >= left_ || (D::kIdle && idle())) continue;
      const uint64_t at = at_ + line_of(i) * leading_ + pos_of(i) * int(sizeof(In)), word = at & ~uint64_t{15};
      low_[i] = load_until(word, end_);
      if (at != word) high_[i] = load_until(word + 16, end_);
    }
  }
  __device__ void put(uint8_t* to) const {
    if (D::kIdle && idle()) return;
#pragma unroll
    for (int i = 0; i < D::kCount; ++i) {
      const uint32_t shift = (held_at_ + line_of(i) * static_cast<uint32_t>(leading_)) & 15;  // pieces add multiples
      const Chunk chunk = before(shifted(low_[i], high_[i], shift), (held_left_ - pos_of(i)) * int(sizeof(In)));
      const int line = place_ + line_of(i), pos = inside_ + pos_of(i);
      if constexpr (Tile::kAlongK == kAlongK) {
        *reinterpret_cast<Chunk*>(to + place_of(line, pos)) = chunk;
      } else {
        const auto piece = __builtin_bit_cast(Held, chunk);
#pragma unroll
        for (int j = 0; j < W; ++j) *reinterpret_cast<In*>(to + place_of(line, pos + j)) = piece.x[j];
      }
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
  static constexpr bool kAlongK = Operand::kLinesAlongK;
  static constexpr int W = 16 / sizeof(In);
  using D = Deal<(kAlongK ? Rows : TileK), (kAlongK ? TileK : Rows) / W, Threads>;
  using Held = Piece<In, W>;

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

  uint64_t at_, end_;  // of the thread's first piece; behind the matrix
  int64_t leading_;    // in bytes
  int place_, inside_;
  int lines_, left_;  // lines and elements from the thread's first piece on
  int held_left_;
  uint32_t held_at_;
  Chunk low_[D::kCount], high_[D::kCount];
};

}  // namespace heddle::tile::cuda
