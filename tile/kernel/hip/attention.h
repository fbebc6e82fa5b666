// Attention by MFMA, on AMD GPUs whose waves have 64 lanes: the kernel of tile/kernel/cuda/attention/warps.h. Tiles
// pass through registers: load() fetches a tile, finish() stores it to LDS, so that a product hides the latency in
// between.
#pragma once

#include "tile/kernel/cuda/attention/results.h"
#include "tile/kernel/cuda/attention/warps.h"
#include "tile/kernel/hip/row_tile.h"

namespace heddle::tile::gfx9 {

// Fetches tiles of one batch that begin anywhere.
template <typename Operand, typename In, typename Tile, int Rows, int TileK, int Threads>
class TileFetcher : public cuda::TileLoader<Operand, In, Tile, Rows, TileK, Threads> {
  using Base = cuda::TileLoader<Operand, In, Tile, Rows, TileK, Threads>;

 public:
  __device__ TileFetcher(const Operand& operand, int32_t batch) : Base(operand, batch, 0, 0) {}

  __device__ void fetch(int32_t row, int32_t k) {
#pragma unroll
    for (int i = 0; i < Base::kKept; ++i) {
      this->at_[i].place = this->view_.at(row + this->row_ + Base::row_of(i), k + this->k_ + Base::k_of(i));
    }
    Base::fetch();
  }
};

// Tiles of an operand of one batch: `Rows` rows (columns for V) with Depth elements along the summed dimension.
template <typename Operand, typename In, int Rows, int Depth, int Threads>
class FetchedOperand {
  using Tile = cuda::RowTile<In, Rows, Depth>;
  static constexpr int kWords = sizeof(In);  // of a fragment: four elements

 public:
  static constexpr int kBytes = Tile::kBytes;

  __device__ FetchedOperand(const Operand& operand, int32_t batch) : fetcher_(operand, batch) {}

  // Fetches the tile that starts at row `row` and depth element `at`.
  __device__ void load(uint8_t*, int32_t row, int32_t at) {
    fetcher_.fetch(row, at);
    is_fetched_ = true;
  }
  // Stores the fetched tile, if there is one.
  __device__ void finish(uint8_t* to) {
    if (is_fetched_) fetcher_.put(to);
    is_fetched_ = false;
  }
  // Reads the fragment of 16-row block `block` at depth step `step`: four neighbouring elements of the lane's row.
  __device__ void read(uint32_t (&r)[kWords], const uint8_t* tile, int block, int step) const {
    using Four = cuda::Piece<uint32_t, kWords>;
    const uint32_t place = Tile::place(16 * block + cuda::MfmaLanes::row(), 16 * step + cuda::MfmaLanes::column());
    const Four four = *reinterpret_cast<const Four*>(tile + place);
#pragma unroll
    for (int i = 0; i < kWords; ++i) r[i] = four.x[i];
  }

 private:
  TileFetcher<Operand, In, Tile, Rows, Depth, Threads> fetcher_;
  bool is_fetched_ = false;
};

template <typename T>
struct MfmaAttention {
  using In = T;
  using Lanes = cuda::MfmaLanes;
  template <typename Source, int Rows, int Depth, int Threads, cuda::AttentionRole, int Pages = 1>
  using Operand = FetchedOperand<Source, In, Rows, Depth, Threads>;
  static constexpr int kElement = sizeof(In), kStep = 16, kWords = kElement;
  static constexpr bool kSplitsNumbers = false;

  static constexpr int q_bytes(int tile_m, int depth, int width) {
    return mfma_attention_q_bytes(tile_m, depth, width, kElement);
  }

  // acc += a b: the keys or columns `b` are the rows of the instruction's result, so that a lane has neighbours of a
  // row. An f32 instruction multiplies one of the lane's four elements.
  __device__ static void multiply(float* acc, const uint32_t (&a)[kWords], const uint32_t (&b)[kWords]) {
    auto& sums = reinterpret_cast<float(&)[4]>(*acc);
    if constexpr (kElement == 2) {
      const auto piece = [](const uint32_t(&x)[kWords]) __attribute__((always_inline)) {
        return static_cast<uint64_t>(x[1]) << 32 | x[0];
      };
      Mfma<In>::issue(sums, piece(b), piece(a));
    } else {
#pragma unroll
      for (int i = 0; i < kWords; ++i) Mfma<In>::issue(sums, b[i], a[i]);
    }
  }
};

template <typename Config>
using AttentionTraits = cuda::WarpAttentionTraits<Config, MfmaAttention<typename Config::In>>;

// The kernel. A block computes one unit, in mfma_attention_shared_bytes() of LDS.
template <typename Config, typename Q, typename K, typename V, typename Scores, typename Sink, typename Length,
          typename Epilogue>
__device__ inline void attention(const AttentionArgs& args, const Q& q, const K& k, const V& v, const Scores& scores,
                                 const Sink& sink, const Length& length, const Epilogue& epilogue) {
  static_assert(Config::kStages == 1);
  cuda::warp_attention<Config, MfmaAttention<typename Config::In>>(args, q, k, v, scores, sink, length, epilogue,
                                                                   cuda::NoPages{}, blockIdx.x);
}

}  // namespace heddle::tile::gfx9
