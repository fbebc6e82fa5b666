// Loads tiles of an operand from global to shared memory.
//
// For each step of k, a block loads Rows x TileK elements of the operand's view. cp.async copies them if the elements
// in memory already have the multiplied format and pieces of at least 4 bytes are contiguous. All other operands pass
// through registers: computed operands, and operands with odd alignment, a conversion or a prologue. Their elements are
// fetched before a step multiplies and stored to shared memory after it. On a GPU without asynchronous copies, all
// operands do.
#pragma once

#include "tile/arch/sm80/convert.h"
#include "tile/arch/sm80/cp_async.h"
#include "tile/arch/sm80/shared.h"
#include "tile/arch/sm80/stream.h"
#include "tile/core/view.h"

namespace heddle::tile::cuda {

// True if two types have the same representation under different names.
template <typename From, typename To>
inline constexpr bool same_bits = is_same<From, To> ||
                                  (is_same<From, float> && (is_same<To, tf32> || is_same<To, tf32x2>));

// The type in which elements are converted and prologues compute: double if From or To is double, To if both are
// integers, float otherwise.
template <typename From, typename To>
struct between {
  using type = float;
};
template <typename From, typename To>
requires(is_same<From, double> || is_same<To, double>) struct between<From, To> {
  using type = double;
};
template <typename From, typename To>
requires(is_integer<From>&& is_integer<To>) struct between<From, To> {
  using type = To;
};
template <typename From, typename To>
using between_t = typename between<From, To>::type;

template <typename Operand>
concept HasView = requires(const Operand& o) {
  o.view(0);
};
template <typename Operand>
concept HasPrologue = requires(const Operand& o, float (&v)[1]) {
  o.apply(v, 0, 0, 0);
};

// An operand that only one block reads may declare `static constexpr bool kStream = true`. The L2 then evicts the
// operand first. This applies to plain loads only: ptxas 13.0 generates an illegal instruction for a cp.async with a
// cache hint and an address in a uniform register.
template <typename Operand>
inline constexpr bool is_stream = false;
template <typename Operand>
requires requires {
  Operand::kStream;
}
inline constexpr bool is_stream<Operand> = Operand::kStream;

// Describes how an operand is loaded. It is derived from the operand's type.
template <typename Operand, typename In>
struct OperandTraits {  // for a computed operand
  static constexpr bool kMemoryAlongK = true;
};
template <HasView Operand, typename In>
struct OperandTraits<Operand, In> {
  using Element = typename Operand::Element;
  using Chain = decltype(static_cast<const Operand*>(nullptr)->view(0).chain);
  static constexpr int kMost = 16 / (sizeof(Element) > sizeof(In) ? sizeof(Element) : sizeof(In));
  static constexpr int kWidthRow = known_vector_length<0, Chain>(kMost), kWidthK = known_vector_length<1, Chain>(kMost);
  static constexpr bool kMemoryAlongK = kWidthK >= kWidthRow;
  static constexpr int kWidth = kMemoryAlongK ? kWidthK : kWidthRow;  // elements per piece
  static constexpr bool kRaw = same_bits<Element, In> && !HasPrologue<Operand>;
};

template <typename T, int W>
struct alignas(sizeof(T) * W) Piece {
  T x[W];
};

constexpr int common_divisor(int a, int b) {
  return b == 0 ? a : common_divisor(b, a % b);
}

// The index of this thread among the Threads threads that load a tile: a whole block, or a warp that loads its own
// tiles.
template <int Threads>
__device__ inline int loading_thread() {
  return static_cast<int>(Threads == 32 ? threadIdx.x % 32 : threadIdx.x);
}

// The assignment of a tile's pieces to threads. A line is a row, or one index of k if memory is contiguous along rows.
// A thread loads kCount pieces: kPos pieces in each of kLines lines.
template <int Lines, int PiecesPerLine, int Threads>
struct Deal {
  static constexpr int kAcross = common_divisor(PiecesPerLine, Threads);  // threads per line
  static constexpr int kPos = PiecesPerLine / kAcross, kLinesAtOnce = Threads / kAcross;
  static constexpr int kLines = Lines > kLinesAtOnce ? Lines / kLinesAtOnce : 1;
  static constexpr int kCount = kPos * kLines;
  static constexpr bool kIdle = kLinesAtOnce > Lines;  // some threads have no pieces to load
  static_assert(kIdle || Lines % kLinesAtOnce == 0);
};

// Loads one thread's pieces of an operand's tiles. SharedTile describes the layout of a tile in shared memory:
// place(row, k) is the offset of an element in bytes, and kAlongK is true if lines are along k. Pieces outside the
// view's extents, and pieces in padding, are zeros.
template <typename Operand, typename In, typename SharedTile, int Rows, int TileK, int Threads>
class TileLoader;

template <HasView Operand, typename In, typename SharedTile, int Rows, int TileK, int Threads>
class TileLoader<Operand, In, SharedTile, Rows, TileK, Threads> {
 public:
  using Traits = OperandTraits<Operand, In>;
  using Tile = SharedTile;
  static constexpr bool kAsync = sm80::kCopiesAsync && Traits::kRaw && Tile::kAlongK == Traits::kMemoryAlongK &&
                                 Traits::kWidth * int(sizeof(In)) >= 4;

  __device__ TileLoader(const Operand& operand, int batch, int row, int k)
      : operand_(operand),
        view_(operand.view(batch)),
        base_(reinterpret_cast<uint64_t>(view_.data)),
        step_(view_.chain, fixed<TileK>()),
        batch_(batch) {
    constexpr bool kAlongK = Traits::kMemoryAlongK;
    const int line = loading_thread<Threads>() / D::kAcross;
    const int pos = loading_thread<Threads>() % D::kAcross * W;
    row_ = kAlongK ? line : pos;
    k_ = kAlongK ? pos : line;
#pragma unroll
    for (int i = 0; i < kKept; ++i) {
      at_[i].place = view_.at(row + row_ + row_of(i), k + k_ + k_of(i));
    }
  }

  // Copies the current tile to the shared-memory address `to` by cp.async. The caller commits the copies.
  __device__ void copy(uint32_t to) {
    for_pieces([&](const auto& at, int row, int k) {
      const uint32_t valid = is_valid(at) ? W * sizeof(In) : 0;
      sm80::copy_async<W * sizeof(In)>(to + Tile::place(row_ + row, k_ + k), address(at), valid);
    });
  }

  // Loads the tile through registers: fetch() loads it to registers, put() stores it to shared memory.
  __device__ void fetch() {
    int i = 0;
    for_pieces([&](const auto& at, int, int) {
      const bool valid = is_valid(at);
      const auto piece =
          sm80::load_or_zero(reinterpret_cast<const Piece<Element, W>*>(view_.data + at.offset()), valid);
      if constexpr (Traits::kRaw) {
        held_[i++] = __builtin_bit_cast(Held, piece);
      } else {
        held_[i++] = converted(piece, valid, at.template index<0>(), at.template index<1>());
      }
    });
  }
  __device__ void put(uint8_t* to) const {
#pragma unroll
    for (int i = 0; i < D::kCount; ++i) {
      if (D::kIdle && idle()) continue;
      const int row = row_ + row_of(i), k = k_ + k_of(i);
      if constexpr (Tile::kAlongK == Traits::kMemoryAlongK) {
        *reinterpret_cast<Held*>(to + Tile::place(row, k)) = held_[i];
      } else {
#pragma unroll
        for (int j = 0; j < W; ++j) {
          const uint32_t at = Traits::kMemoryAlongK ? Tile::place(row, k + j) : Tile::place(row + j, k);
          *reinterpret_cast<In*>(to + at) = held_[i].x[j];
        }
      }
    }
  }

  // Advances to the next tile along k.
  __device__ void next() {
    if constexpr (kLeader) {
      Steps<Chain> moved;
      at_[0].place.move_and_note(moved, step_);
#pragma unroll
      for (int i = 1; i < kKept; ++i) at_[i].place.follow(moved);
    } else {
#pragma unroll
      for (int i = 0; i < kKept; ++i) {
        Steps<Chain> moved;
        at_[i].place.move_and_note(moved, step_);
      }
    }
  }

 protected:
  using Element = typename Operand::Element;
  using Chain = typename Traits::Chain;
  static constexpr int W = Traits::kWidth;
  using D = Deal<(Traits::kMemoryAlongK ? Rows : TileK), (Traits::kMemoryAlongK ? TileK : Rows) / W, Threads>;
  using Held = Piece<In, W>;
  // kWalk: one coordinate moves from piece to piece, since the chain is affine, or to save registers for many pieces.
  // kLeader: rows move alike along k, so the coordinates of all pieces follow that of the first piece.
  static constexpr int kMostKept = 8;
  static constexpr bool kWalk = (moves_linearly<0, Chain>() && moves_linearly<1, Chain>()) || D::kCount > kMostKept;
  static constexpr int kKept = kWalk ? 1 : D::kCount;
  static constexpr bool kLeader = !kWalk && D::kPos == 1 && Traits::kMemoryAlongK && shares_steps<1, Chain>();
  struct Slot {
    Coordinate<Chain> place{Chain{}, 0, 0};
  };

  __device__ static constexpr int line_of(int i) {
    return i / D::kPos * D::kLinesAtOnce;
  }
  __device__ static constexpr int pos_of(int i) {
    return i % D::kPos * D::kAcross * W;
  }
  __device__ static constexpr int row_of(int i) {
    return Traits::kMemoryAlongK ? line_of(i) : pos_of(i);
  }
  __device__ static constexpr int k_of(int i) {
    return Traits::kMemoryAlongK ? pos_of(i) : line_of(i);
  }
  __device__ bool idle() const {
    return (Traits::kMemoryAlongK ? row_ : k_) >= (Traits::kMemoryAlongK ? Rows : TileK);
  }

  __device__ bool is_valid(const Coordinate<Chain>& at) const {
    using Unsigned = uint_t<sizeof(typename Chain::Index)>;
    const bool row =
        static_cast<Unsigned>(at.template index<0>()) < static_cast<Unsigned>(view_.chain.template length<0>());
    const bool k =
        static_cast<Unsigned>(at.template index<1>()) < static_cast<Unsigned>(view_.chain.template length<1>());
    return (int(row) & int(k) & int(at.maps())) != 0;
  }

  // The address for cp.async. Integer arithmetic lets the compiler keep the sum of the invariant terms.
  __device__ const void* address(const Coordinate<Chain>& at) const {
    return reinterpret_cast<const void*>(base_ +
                                         static_cast<int64_t>(at.offset()) * static_cast<int64_t>(sizeof(Element)));
  }
  // Calls f(coordinate, row, k) for each piece; row and k are relative to the thread's first piece.
  template <typename F>
  __device__ void for_pieces(F f) {
    if (D::kIdle && idle()) return;
    if constexpr (kWalk) {
      Coordinate<Chain> at = at_[0].place;
#pragma unroll
      for (int i = 0; i < D::kCount; ++i) {
        f(at, row_of(i), k_of(i));
        at.move(row_of(i + 1) - row_of(i), k_of(i + 1) - k_of(i));
      }
    } else {
#pragma unroll
      for (int i = 0; i < D::kCount; ++i) f(at_[i].place, row_of(i), k_of(i));
    }
  }

  __device__ Held converted(const Piece<Element, W>& piece, bool valid, int row, int k) const {
    using Value = between_t<Element, In>;
    Held held{};
    Value v[W];
#pragma unroll
    for (int j = 0; j < W; ++j) v[j] = convert<Value>(piece.x[j]);
    if constexpr (HasPrologue<Operand>) {
      if (valid) operand_.apply(v, batch_, row, k);
    }
#pragma unroll
    for (int j = 0; j < W; ++j) held.x[j] = convert<In>(v[j]);
    return held;
  }

  const Operand& operand_;
  TensorView<const Element, Chain> view_;
  uint64_t base_;
  PreparedStep<1, Chain> step_;
  int batch_, row_, k_;
  Slot at_[kKept];
  Held held_[kAsync ? 1 : D::kCount];
};

// The loader for a computed operand. A piece has kWidth neighbouring elements along k. The operand's rows() and depth()
// return its number of rows and its number of elements along k.
template <typename Operand, typename In, typename SharedTile, int Rows, int TileK, int Threads>
class TileLoader {
 public:
  using Tile = SharedTile;
  static constexpr bool kAsync = false;

  __device__ TileLoader(const Operand& operand, int batch, int row, int k)
      : operand_(operand),
        batch_(batch),
        row_(loading_thread<Threads>() / D::kAcross),
        k_(loading_thread<Threads>() % D::kAcross * W),
        first_row_(row),
        first_k_(k) {}

  __device__ void copy(uint32_t) {}
  __device__ void fetch() {
    if (D::kIdle && row_ >= Rows) return;
#pragma unroll
    for (int i = 0; i < D::kCount; ++i) {
      const int row = first_row_ + row_ + i / D::kPos * D::kLinesAtOnce;
      const int k = first_k_ + k_ + i % D::kPos * D::kAcross * W;
      between_t<In, In> v[W] = {};
      if (row < operand_.rows() && k < operand_.depth()) {
        operand_.load(v, batch_, row, k, operand_.depth() - k < W ? operand_.depth() - k : W);
      }
#pragma unroll
      for (int j = 0; j < W; ++j) held_[i].x[j] = convert<In>(v[j]);
    }
  }
  __device__ void put(uint8_t* to) const {
    if (D::kIdle && row_ >= Rows) return;
#pragma unroll
    for (int i = 0; i < D::kCount; ++i) {
      const int row = row_ + i / D::kPos * D::kLinesAtOnce, k = k_ + i % D::kPos * D::kAcross * W;
      if constexpr (Tile::kAlongK) {
        *reinterpret_cast<Piece<In, W>*>(to + Tile::place(row, k)) = held_[i];
      } else {
#pragma unroll
        for (int j = 0; j < W; ++j) *reinterpret_cast<In*>(to + Tile::place(row, k + j)) = held_[i].x[j];
      }
    }
  }
  __device__ void next() {
    first_k_ += TileK;
  }

 private:
  static constexpr int W = Operand::kWidth;
  using D = Deal<Rows, TileK / W, Threads>;

  const Operand& operand_;
  int batch_, row_, k_, first_row_, first_k_;
  Piece<In, W> held_[D::kCount];
};

}  // namespace heddle::tile::cuda
