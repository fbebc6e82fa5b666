// O = softmax(scores(Q K^T)) V by warps. The scores never leave registers. Each warp has 16 or 32 rows of Q. It
// multiplies them by a tile of keys, updates the running maximum and sum of each row, and multiplies the exponentials,
// directly from registers, by V. All warps load tiles of K and V into shared memory. The next tile of keys is loaded
// while exponentials are computed. The values are loaded during the product with the keys.
//
// A machine has the instructions: sm80.h those of NVIDIA GPUs, tile/kernel/hip/attention.h those of AMD GPUs. It
// provides
//
//   Lanes                             // how lanes hold 16 rows of scores (lanes.h)
//   Operand<...>                      // tiles of Q, K or V: load(), finish() before the barrier, read()
//   kStep                             // elements of k of a fragment, which has 16 rows
//   kSplitsNumbers                    // whether products may have to be computed by FMA instructions
//   q_bytes()                         // size of a tile of Q, which also stages the results
//   multiply(), multiply_by_fma()     // add a product of two fragments
//
// Batches of at most 16 rows (a decoding step) are limited by memory bandwidth. For these, all warps have the same
// rows. Each of the kKeyWarps warps processes separate tiles of keys in a separate ring, for which no other warp waits.
// At the end, the warps add up their sums in shared memory.
//
// Scores, masks and units are as in sm90.h. A block has one unit. Q, K and V are operands as in sm80::gemm, so they may
// have any strides and any alignment.
//
// A generated unit provides a configuration with these fields:
//
//   struct Config {
//     using In = tile::half;                       // or bfloat: Q, K, V and O; for f32 tf32 or tf32x2,
//                                                  // on AMD GPUs float
//     static constexpr int kConsumers = 2;         // rows of Q / 64
//     static constexpr int kTileN = 64;            // keys per tile: 16, 32, 64 or 128
//     static constexpr int kDepth = 64, kWidth = 64;  // columns of Q and K and of a panel, padded to multiples of 16
//     static constexpr int kPanels = 1;            // panels into which the columns of V and O are divided
//     static constexpr int kStages = 1;            // tiles of keys and of values in shared memory; at least 2 per warp
//                                                  // with kKeyWarps
//     static constexpr int kKeyWarps = 0;          // warps that have the same 16 rows; 0: each warp has its own rows
//   };
//
// The configuration also has the fields kScores, kSplit, kRagged, kZeroIfEmpty and kLength of sm90.h. The unit also
// provides the functors and the epilogue that are described in sm90.h. Keys may be stored in pages (pages.h). A batch
// of K and V is then a head of a page.
#pragma once

#include "tile/arch/sm80/cp_async.h"
#include "tile/arch/sm80/stream.h"
#include "tile/kernel/cuda/attention/lanes.h"
#include "tile/kernel/cuda/attention/pages.h"
#include "tile/kernel/cuda/attention/results.h"
#include "tile/kernel/cuda/attention/units.h"

namespace heddle::tile::cuda {

template <typename Config, typename Machine>
struct WarpAttentionTraits {
  using In = typename Config::In;
  using Lanes = typename Machine::Lanes;
  static constexpr bool kFewRows = Config::kKeyWarps > 0;
  static constexpr int kTileM = kFewRows ? kAttentionFewRows : kAttentionGroupRows * Config::kConsumers;
  static constexpr int kTileN = Config::kTileN;
  static constexpr int kElement = sizeof(In), kStep = Machine::kStep;
  static constexpr int kBlocksM = kFewRows ? 1 : attention_blocks_m(Config::kConsumers, Config::kDepth, Config::kWidth);
  static constexpr int kThreads =
      Lanes::kLanes *
      (kFewRows ? Config::kKeyWarps : attention_warps(Config::kConsumers, Config::kDepth, Config::kWidth));
  static constexpr int kWords = 16 * kStep / Lanes::kLanes * kElement / 4;  // that a lane has of a fragment
  static constexpr int kSums = 16 * 16 / Lanes::kLanes;                     // that a lane has of 16 x 16
  static constexpr int kQBytes = Machine::q_bytes(kTileM, Config::kDepth, Config::kWidth);
  // If a tile has values that the instructions cannot multiply, FMA instructions compute its product.
  static constexpr bool kSplitsNumbers = Machine::kSplitsNumbers;
  static constexpr bool kKeepsQueries = !kSplitsNumbers && attention_keeps_queries(Config::kDepth, kBlocksM, kElement);
  static_assert(Config::kConsumers == 1 || Config::kConsumers == 2 || Config::kConsumers == 4);
  static_assert(kTileN % 16 == 0 && Config::kDepth % 16 == 0 && Config::kWidth % 16 == 0);
  static_assert(!kFewRows || kElement == 2);
  static_assert(!kFewRows || (Config::kStages > 1 && Config::kKeyWarps >= 2 && Config::kConsumers == 1));
  // At the end, the sums are stored in the memory of the rings.
  static_assert(!kFewRows || few_rows_ring_bytes(kTileN, Config::kDepth, Config::kWidth, Config::kStages) >=
                                 few_rows_sums_bytes(Config::kWidth));
};

// Computes a block's unit of work. Manages the rings of the block; the caller provides the registers in which a warp
// keeps its rows.
template <typename Config, typename Machine, typename Q, typename K, typename V, typename Scores, typename Pages>
class AttentionBlock {
  using In = typename Config::In;
  using Traits = WarpAttentionTraits<Config, Machine>;
  using Lanes = typename Machine::Lanes;
  static constexpr int kBlocksM = Traits::kBlocksM, kStages = Config::kStages;
  static constexpr int kStepsOfDepth = Config::kDepth / Traits::kStep, kStepsOfKeys = Traits::kTileN / Traits::kStep;
  static constexpr int kWords = Traits::kWords, kSums = Traits::kSums;
  // There are kRings rings. kLoaders threads load the tiles of a ring. If each warp has separate keys, the tiles are
  // assigned to the warps in round-robin order.
  static constexpr int kRings = Traits::kFewRows ? Config::kKeyWarps : 1, kLoaders = Traits::kThreads / kRings;
  using Role = AttentionRole;
  using OperandQ = typename Machine::template Operand<Q, Traits::kTileM, Config::kDepth, Traits::kThreads, Role::kQ>;
  static constexpr int kPage = page_keys<Config>, kPages = kPagesOfTile<Config>;
  using OperandK = typename Machine::template Operand<K, Traits::kTileN, Config::kDepth, kLoaders, Role::kK, kPages>;
  using OperandV = typename Machine::template Operand<V, Config::kWidth, Traits::kTileN, kLoaders, Role::kV, kPages>;
  static constexpr int kRingBytes = kStages * (OperandK::kBytes + OperandV::kBytes);

 public:
  using Registers = AttentionRegisters<Config, Lanes>;
  static constexpr int kToldAt = Traits::kQBytes + kRings * kRingBytes;

  // group(i): the group of 64 rows that contains the warp's i-th set of 16 rows. row(i): the first of these 16 rows.
  __device__ static int group(int i) {
    return Traits::kFewRows ? 0 : static_cast<int>(threadIdx.x) / (4 * Lanes::kLanes) * kBlocksM + i;
  }
  __device__ static int row(int i) {
    return Traits::kFewRows ? 0
                            : kAttentionGroupRows * group(i) + static_cast<int>(threadIdx.x) / Lanes::kLanes % 4 * 16;
  }

  __device__ AttentionBlock(const AttentionArgs& args, const Q& q, const K& k, const V& v, const Scores& scores,
                            const Pages& pages, const AttentionUnit& unit, uint8_t* shared)
      : args_(args),
        scores_(scores),
        unit_(unit),
        q_(q, unit.batch),
        k_(k, unit.batch),
        v_(v, unit.batch),
        pages_(pages, unit.batch, unit.last - 1 - ring(), unit.first),
        shared_q_(shared),
        shared_k_(shared + Traits::kQBytes + ring() * kRingBytes),
        shared_v_(shared_k_ + kStages * OperandK::kBytes) {}

  // Processes all keys. After run(), no thread of the block uses the buffer of Q.
  __device__ void run(Registers (&r)[kBlocksM]) {
#pragma unroll
    for (Registers& x : r) {
      for (int h = 0; h < Lanes::kRows; ++h) x.max[h] = -__builtin_inff(), x.sum[h] = 0;
#pragma unroll
      for (float& o : x.o) o = 0;
    }
    const int32_t last = unit_.last - 1 - ring();
    q_.load(shared_q_, unit_.row, 0);
    load_keys(last);
#pragma unroll
    for (int i = 1; i < kStages; ++i) {
      load_values(last - (i - 1) * kRings);
      load_keys(last - i * kRings);
    }
    q_.finish(shared_q_);
    bool keys_by_fma = wait(k_, shared_k_);
    if constexpr (Traits::kFewRows) __syncthreads();  // other warps have loaded parts of Q
    const bool queries_by_fma = any_leaves_range<OperandQ>(shared_q_);
    if constexpr (Traits::kKeepsQueries) {
#pragma unroll
      for (int step = 0; step < kStepsOfDepth; ++step) read_queries(kept_[step], step);
    }
    uint8_t *keys = shared_k_, *values = shared_v_;
#pragma unroll 1
    for (int32_t tile = last; tile >= unit_.first; tile -= kRings) {
      load_values(tile - (kStages - 1) * kRings);
      multiply_keys(r, keys, queries_by_fma || keys_by_fma);
      const bool values_by_fma = wait(v_, values);
      load_keys(tile - kStages * kRings);
      soften(r, tile);
      multiply_values(r, values, values_by_fma);
      keys = after<OperandK>(keys, shared_k_), values = after<OperandV>(values, shared_v_);
      keys_by_fma = wait(k_, keys);
    }
  }

 private:
  __device__ static int ring() {
    return Traits::kFewRows ? static_cast<int>(threadIdx.x) / Lanes::kLanes : 0;
  }

  template <typename Operand>
  __device__ static uint8_t* after(uint8_t* slot, uint8_t* first) {
    return slot + Operand::kBytes == first + kStages * Operand::kBytes ? first : slot + Operand::kBytes;
  }
  // Waits for the oldest copies in flight, those of `tile`. Loads alternate between tiles of keys and tiles of values,
  // so that a constant number of copies is in flight. After the wait, the copies by the ring's other threads have also
  // arrived, and these threads have finished their earlier reads. Returns true if FMA instructions must compute the
  // product with this tile. For this, each thread checks the values that it copied before it waits at the barrier.
  template <typename Operand>
  __device__ static bool wait(Operand& operand, uint8_t* tile) {
    operand.finish(tile);
    sm80::wait_copies<2 * kStages - 2>();
    if constexpr (Traits::kSplitsNumbers) {
      return any_leaves_range<Operand>(tile);
    } else if constexpr (Traits::kFewRows) {
      __syncwarp();
    } else {
      __syncthreads();
    }
    return false;
  }
  template <typename Operand>
  __device__ static bool any_leaves_range(const uint8_t* tile) {
    if constexpr (Traits::kSplitsNumbers) return __syncthreads_or(Operand::leaves_range(tile)) != 0;
    return false;
  }
  // Loads a tile of keys. For a tile that does not exist, commits an empty group of copies. The values of a tile are
  // loaded right after its keys, so that the current pages are those of the tile.
  __device__ void load_keys(int32_t tile) {
    pages_.move(tile - kRings);
    if (tile >= unit_.first) load(k_, shared_k_ + next_k_ * OperandK::kBytes, tile);
    next_k_ = next_k_ + 1 == kStages ? 0 : next_k_ + 1;
    sm80::commit_copies();
  }
  template <typename Operand>
  __device__ void load(Operand& operand, uint8_t* to, int32_t tile) const {
    const int32_t key = tile * Traits::kTileN;
    constexpr bool kIsKeys = is_same<Operand, OperandK>;
    const int32_t column = first_column<Config>(unit_);
    if constexpr (kPage != 0) {
      operand.template load_pages<kPage>(to, pages_, pages_.first_key(tile), column);
    } else {
      operand.load(to, kIsKeys ? key : column, kIsKeys ? 0 : key);
    }
  }
  __device__ void load_values(int32_t tile) {
    if (tile >= unit_.first) load(v_, shared_v_ + next_v_ * OperandV::kBytes, tile);
    next_v_ = next_v_ + 1 == kStages ? 0 : next_v_ + 1;
    sm80::commit_copies();
  }

  __device__ void read_queries(uint32_t (&a)[kBlocksM][kWords], int step) const {
#pragma unroll
    for (int i = 0; i < kBlocksM; ++i) q_.read(a[i], shared_q_, row(i) / 16, step);
  }
  // Called before a fragment is read. It keeps the compiler from reading further fragments ahead, since their two parts
  // need registers.
  __device__ static void end_fragment() {
    if constexpr (Traits::kSplitsNumbers) __syncwarp();
  }
  __device__ void multiply_keys(Registers (&r)[kBlocksM], const uint8_t* keys, bool by_fma) const {
#pragma unroll
    for (Registers& x : r) {
#pragma unroll
      for (float& s : x.s) s = 0;
    }
    if constexpr (Traits::kSplitsNumbers) {
      if (__builtin_expect(by_fma, 0)) return multiply_keys_by_fma(r, keys);
    }
#pragma unroll Traits::kKeepsQueries ? kStepsOfDepth : 2
    for (int step = 0; step < kStepsOfDepth; ++step) {
      uint32_t a[kBlocksM][kWords];
      if constexpr (Traits::kKeepsQueries) {
#pragma unroll
        for (int i = 0; i < kWords * kBlocksM; ++i) a[i / kWords][i % kWords] = kept_[step][i / kWords][i % kWords];
      } else {
        read_queries(a, step);
      }
#pragma unroll
      for (int j = 0; j < Traits::kTileN / 16; ++j) {
        end_fragment();
        uint32_t b[kWords];
        k_.read(b, keys, j, step);
#pragma unroll
        for (int i = 0; i < kBlocksM; ++i) Machine::multiply(&r[i].s[kSums * j], a[i], b);
      }
    }
  }
  __device__ void multiply_values(Registers (&r)[kBlocksM], const uint8_t* values, bool by_fma) const {
    if constexpr (Traits::kSplitsNumbers) {
      if (__builtin_expect(by_fma, 0)) return multiply_values_by_fma(r, values);
    }
#pragma unroll
    for (int step = 0; step < kStepsOfKeys; ++step) {
#pragma unroll
      for (int j = 0; j < Config::kWidth / 16; ++j) {
        end_fragment();
        uint32_t b[kWords];
        v_.read(b, values, j, step);
#pragma unroll
        for (int i = 0; i < kBlocksM; ++i) Machine::multiply(&r[i].o[kSums * j], r[i].p[step], b);
      }
    }
  }
  // This code is kept short, since it rarely runs: the steps are not unrolled, so each step moves registers.
  __device__ void multiply_keys_by_fma(Registers (&r)[kBlocksM], const uint8_t* keys) const {
#pragma unroll 1
    for (int step = 0; step < kStepsOfDepth; ++step) {
      uint32_t a[kBlocksM][kWords];
      read_queries(a, step);
#pragma unroll
      for (int j = 0; j < Traits::kTileN / 16; ++j) {
        uint32_t b[kWords];
        k_.read(b, keys, j, step);
#pragma unroll
        for (int i = 0; i < kBlocksM; ++i) Machine::multiply_by_fma(&r[i].s[kSums * j], a[i], b);
      }
    }
  }
  __device__ void multiply_values_by_fma(Registers (&r)[kBlocksM], const uint8_t* values) const {
#pragma unroll 1
    for (int step = 0; step < kStepsOfKeys; ++step) {
#pragma unroll
      for (int j = 0; j < Config::kWidth / 16; ++j) {
        uint32_t b[kWords];
        v_.read(b, values, j, step);
#pragma unroll
        for (int i = 0; i < kBlocksM; ++i) Machine::multiply_by_fma(&r[i].o[kSums * j], r[i].p[0], b);
      }
#pragma unroll
      for (Registers& x : r) {
#pragma unroll
        for (int i = 0; i < kWords * (kStepsOfKeys - 1); ++i) {
          x.p[i / kWords][i % kWords] = x.p[i / kWords + 1][i % kWords];
        }
      }
    }
  }

  __device__ void soften(Registers (&r)[kBlocksM], int32_t tile) const {
    const int32_t col = tile * Traits::kTileN;
    const bool inside = !Config::kRagged || col + Traits::kTileN <= args_.n;
    const bool plain = !kComputesScores<Config> || (Config::kScores == AttentionScores::kMixed &&
                                                    tile >= unit_.plain_first && tile < unit_.plain_last);
#pragma unroll
    for (int i = 0; i < kBlocksM; ++i) {
      const int32_t first = unit_.row + row(i) + Lanes::row();
      if constexpr (kComputesScores<Config>) {
        if (!plain && inside) apply_scores<true>(r[i], args_, scores_, unit_.batch, first, col);
        if (!plain && !inside) apply_scores<false>(r[i], args_, scores_, unit_.batch, first, col);
      }
      if (!inside) cut_scores<Config>(r[i], args_, col);
      if (plain) {
        exponentiate<true>(r[i], args_);
      } else {
        exponentiate<false>(r[i], args_);
      }
      fade_results<Config>(r[i]);
      pack_scores<Config>(r[i]);
    }
  }

  const AttentionArgs& args_;
  const Scores& scores_;
  const AttentionUnit& unit_;
  OperandQ q_;
  OperandK k_;
  OperandV v_;
  PageWalk<Config, Pages> pages_;
  uint8_t *const shared_q_, *const shared_k_, *const shared_v_;
  int next_k_ = 0, next_v_ = 0;
  uint32_t kept_[Traits::kKeepsQueries ? kStepsOfDepth : 1][kBlocksM][kWords];
};

// Requests the keys and values of unit `number` from memory, so that the L2 has them when attention_block() loads them.
// Reads nothing but the unit's length. K must be contiguous along its depth and V along its width.
template <typename Config, typename Machine, typename K, typename V, typename Length>
__device__ inline void warp_attention_ahead(const AttentionArgs& args, const K& k, const V& v, const Length& length,
                                            const NoPages&, uint32_t number) {
  constexpr int kThreads = WarpAttentionTraits<Config, Machine>::kThreads,
                kLine = 128 / static_cast<int>(sizeof(typename Config::In));
  const auto unit = attention_unit<Config>(args, length, static_cast<int32_t>(number));
  const auto keys = k.view(unit.batch);
  const auto values = v.view(unit.batch);
  const int32_t end = unit.last * Config::kTileN;
#pragma unroll 1
  for (int32_t key = unit.first * Config::kTileN + static_cast<int32_t>(threadIdx.x); key < end; key += kThreads) {
#pragma unroll
    for (int i = 0; i < Config::kDepth; i += kLine) {
      if (const auto at = keys.at(key, i); at.is_valid()) sm80::prefetch(keys.data + at.offset());
    }
#pragma unroll
    for (int i = 0; i < Config::kWidth; i += kLine) {
      const auto at = values.at(first_column<Config>(unit) + i, key);
      if (at.is_valid()) sm80::prefetch(values.data + at.offset());
    }
  }
}

// Computes unit `number` with WarpAttentionTraits::kThreads threads.
template <typename Config, typename Machine, typename Q, typename K, typename V, typename Scores, typename Sink,
          typename Length, typename Epilogue, typename Pages>
__device__ inline void warp_attention(const AttentionArgs& args, const Q& q, const K& k, const V& v,
                                      const Scores& scores, const Sink& sink, const Length& length,
                                      const Epilogue& epilogue, const Pages& pages, uint32_t number) {
  using Block = AttentionBlock<Config, Machine, Q, K, V, Scores, Pages>;
  using Traits = WarpAttentionTraits<Config, Machine>;
  using Lanes = typename Machine::Lanes;
  extern __shared__ __align__(128) uint8_t raw_shared[];
  const auto unit = attention_unit<Config>(args, length, static_cast<int32_t>(number));
  Block block(args, q, k, v, scores, pages, unit, raw_shared);
  typename Block::Registers r[Traits::kBlocksM];
  block.run(r);
  uint8_t* floats = raw_shared + Traits::kQBytes;
  if constexpr (Config::kKeyWarps > 0) {
    add_warps<Config, Config::kKeyWarps>(r[0], floats);
    if (Config::kSplit != AttentionSplit::kLastBlock && threadIdx.x >= Lanes::kLanes) return;
  }
#pragma unroll
  for (int i = 0; i < Traits::kBlocksM; ++i) {
    const int group = Block::group(i);
    const int32_t row = unit.row + Block::row(i);
    if constexpr (Config::kSplit == AttentionSplit::kCombine) {
      store_part<Config>(r[i], args, unit, group, row + Lanes::row());
      continue;
    }
    if constexpr (Config::kSplit == AttentionSplit::kLastBlock) {
      auto* told = reinterpret_cast<int32_t*>(raw_shared + Block::kToldAt);
      const int32_t left = args.m - unit.row - kAttentionGroupRows * group;
      if (!add_parts<Config>(r[i], args, unit, told, group, left, floats)) continue;
      if (Config::kKeyWarps > 0 && threadIdx.x >= Lanes::kLanes) continue;  // the others have no rows to store
    }
    store_attention<Config>(r[i], args, sink, epilogue, raw_shared + Block::row(i) * kGemmRowBytes, unit, row);
  }
}

}  // namespace heddle::tile::cuda
