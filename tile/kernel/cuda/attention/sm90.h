// O = softmax(scores(Q K^T)) V on sm_90a; the scores never leave registers. One thread loads tiles of Q and a ring of
// tiles of K and V into shared memory. Each warpgroup other than that thread's is a consumer with 64 rows of Q. A
// consumer multiplies its rows by a tile of keys (wgmma), updates a running maximum and sum of each row, and multiplies
// the exponentials by V straight from registers. The product with the next keys overlaps with the exponentials of the
// current keys. Blocks are persistent and process one unit after another (tile/core/cuda_attention.h), so that the ring
// is already full when a block begins its next unit.
//
// A functor computes scores. It is not called for tiles of keys with plain scores, which are products times a constant.
// Tiles that are masked for all rows of the unit are neither loaded nor computed. Keys are processed from the last tile
// to the first. A tile that is cut by the end of the keys, and usually a tile that is cut by a mask, is therefore
// processed before the loops.
//
// A generated unit provides a configuration with named fields,
//
//   struct Config {
//     using In = tile::half;                       // or bfloat: the type of Q, K, V and O
//     static constexpr int kConsumers = 2;         // warpgroups that multiply; each has 64 rows of Q
//     static constexpr int kTileN = 128;           // keys per tile, a multiple of 16
//     static constexpr int kDepth = 64, kWidth = 64;  // columns of Q and K; of a panel (padded to multiples of 16)
//     static constexpr int kPanels = 1;            // number of panels into which the columns of V and O are cut
//     static constexpr int kStages = 2, kQStages = 2;  // ring slots of K and of V; of Q
//     static constexpr int kBlocks = 1;            // resident blocks per SM
//     static constexpr bool kKAlongDepth = true;   // K is contiguous along its depth; else along keys
//     static constexpr bool kVAlongWidth = true;   // V is contiguous along its width; else along keys
//     static constexpr auto kScores = tile::AttentionScores::kPlain;  // where the scores of tiles come from
//     static constexpr auto kSplit = tile::AttentionSplit::kNone;      // whether a unit has only a part of the keys
//     static constexpr bool kRagged = false;       // the last tile of keys is not full
//     static constexpr bool kOneTile = false;      // no unit has more than one tile of keys
//     static constexpr bool kDynamic = false;      // blocks claim units from a counter
//     static constexpr bool kZeroIfEmpty = false;  // rows whose scores are all minus infinity give 0, else NaN
//     static constexpr bool kLength = false;       // the keys of a batch depend on a number in memory
//   };
//
// and these functors: `scores` for the scores (not used with kPlain); `sink` for a row's score that belongs to no key
// and is only added to the sum of the row (cuda::NoSink if there is none); `length` for the batch's number (with
// kLength, else cuda::NoLength); and an epilogue that stores rows of O:
//
//   scores(v, batch, row, col, n)    float v[2]: products of a row of Q with n <= 2 keys from `col` on; set to scores
//   sink(v, batch, row, 0, 1)        float v[1]: set to the row's score
//   length(v, batch, 0, 0, 1)        float v[1]: set to the batch's number, an integer
//   epilogue(v, batch, row, col, n)  float v[8]: n elements of a row of O
#pragma once

#include "tile/kernel/cuda/attention/loader.h"
#include "tile/kernel/cuda/attention/results.h"
#include "tile/kernel/cuda/attention/softmax.h"

namespace heddle::tile::sm90 {

using cuda::add_parts;
using cuda::apply_scores;
using cuda::AttentionRegisters;
using cuda::cut_scores;
using cuda::exponentiate;
using cuda::fade_results;
using cuda::pack_scores;
using cuda::store_attention;
using cuda::store_part;

template <int N>
__device__ inline void pin_all(float (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) fence_operand(x[i]);
}

__device__ inline void release(Barrier& empty) {
  if (threadIdx.x % 128 == 0) empty.arrive();
}

// Returns x, which must be the same in all threads of a warp. With kUniform the compiler knows this, so that values
// derived from the result use uniform registers.
template <typename Config, typename T>
__device__ inline T of_warp(T x) {
  if constexpr (AttentionTraits<Config>::kUniform) return warp_uniform(x);
  return x;
}

// Reads the unit from shared memory. With kUniform, only one thread of a warp reads: the thread that later allows the
// loader to write the next unit.
template <typename Config>
__device__ inline AttentionUnit read_unit(const AttentionUnit& shared) {
  if constexpr (!AttentionTraits<Config>::kUniform) return shared;
  AttentionUnit unit = {};
  if (threadIdx.x % 32 == 0) unit = shared;
  int32_t* const fields[] = {&unit.number,      &unit.batch,      &unit.row,  &unit.split, &unit.first,
                             &unit.plain_first, &unit.plain_last, &unit.last, &unit.column};
#pragma unroll
  for (int32_t* field : fields) *field = warp_uniform(*field);
  return unit;
}

// The state of a consumer warpgroup: its positions in the rings of K and V.
template <typename Config, typename Scores>
class AttentionGroup {
 public:
  using Traits = AttentionTraits<Config>;
  using Registers = AttentionRegisters<Config>;

  __device__ AttentionGroup(const AttentionArgs& args, const Scores& scores, const AttentionShared<Config>& shared)
      : args_(args), scores_(scores), shared_(shared), group_(static_cast<int>(threadIdx.x) / 128 - 1) {}
  __device__ int group() const { return group_; }

  // Processes all keys of a unit. `q` is the shared-memory address of the warpgroup's rows of Q, `row` the thread's
  // first row.
  __device__ void run(Registers& r, const AttentionUnit& unit, uint32_t q, int32_t row) {
    r.max[0] = r.max[1] = -__builtin_inff();
    r.sum[0] = r.sum[1] = 0;
    if constexpr (Traits::kScalesFirst) {
#pragma unroll
      for (int i = 0; i < Config::kWidth / 2; ++i) r.o[i] = 0;
    }
    if (!has_keys<Config>(unit)) {
#pragma unroll
      for (float& x : r.o) x = 0;
      return;
    }
    int32_t tile = unit.last - 1;
    q = of_warp<Config>(q);
    shared_.k_full[at_k_.stage].wait(at_k_.phase);
    wgmma_fence();
    multiply_keys(r, q);
    wgmma_wait<0>();
    pin_all(r.s);
    release_keys();
    soften_first(r, unit, row, tile * Traits::kTileN);
    pack_scores<Config>(r);
    bool first = true;
    if constexpr (!Config::kOneTile) {
      --tile;
      if constexpr (Config::kScores == AttentionScores::kMixed) {
        // Processes the masked tiles on the right, then the plain tiles, then the masked tiles on the left.
        int32_t stop = unit.plain_last;
        for (;;) {
#pragma unroll 1
          for (; tile >= stop; --tile, first = false) step<false>(r, unit, q, row, tile, first);
          if (tile < unit.first) break;
#pragma unroll 1
          for (; tile >= unit.plain_first; --tile, first = false) step<true>(r, unit, q, row, tile, first);
          stop = unit.first;
        }
      } else {
#pragma unroll 1
        for (; tile >= unit.first; --tile, first = false) step<!kComputesScores<Config>>(r, unit, q, row, tile, first);
      }
    }
    shared_.v_full[at_v_.stage].wait(at_v_.phase);
    wgmma_fence();
    if constexpr (Traits::kScalesFirst) fade_results<Config>(r);
    multiply_values(r, first);
    wgmma_wait<0>();
    pin_all(r.o);
    release_values();
  }

 private:
  __device__ void release_keys() {
    release(shared_.k_empty[at_k_.stage]);
    at_k_.step();
  }
  __device__ void release_values() {
    release(shared_.v_empty[at_v_.stage]);
    at_v_.step();
  }

  __device__ void multiply_keys(Registers& r, uint32_t q) const {
    const uint32_t k = of_warp<Config>(shared_address(shared_.k) + at_k_.stage * Traits::kKBytes);
#pragma unroll
    for (int step = 0; step < Config::kDepth / 16; ++step) {
      Wgmma<typename Config::In, Config::kTileN>::template issue<false, !Config::kKAlongDepth>(
          r.s, Traits::Q::operand(q, step), Traits::K::operand(k, step), step != 0);
    }
    wgmma_commit();
  }
  __device__ void multiply_values(Registers& r, bool first) const {
    const uint32_t v = of_warp<Config>(shared_address(shared_.v) + at_v_.stage * Traits::kVBytes);
#pragma unroll
    for (int step = 0; step < Config::kTileN / 16; ++step) {
      WgmmaRegisters<typename Config::In, Config::kWidth>::template issue<Config::kVAlongWidth>(
          r.o, r.p[step], Traits::V::operand(v, step), Traits::kScalesFirst || !first || step != 0);
    }
    wgmma_commit();
  }

  // Computes the scores of the first tile and their exponentials from the products. A plain tile needs no functor: its
  // scores are products times args.factor. But if the kernel has a functor for other tiles, the first tile uses it as
  // well, plain or not.
  __device__ void soften_first(Registers& r, const AttentionUnit& unit, int32_t row, int32_t col) const {
    const bool inside = !Config::kRagged || col + Traits::kTileN <= args_.n;
    if constexpr (kComputesScores<Config>) {
      if (inside) {
        apply_scores<true>(r, args_, scores_, unit.batch, row, col);
      } else {
        apply_scores<false>(r, args_, scores_, unit.batch, row, col);
      }
    }
    if (!inside) cut_scores<Config>(r, args_, col);
    exponentiate<!kComputesScores<Config>>(r, args_);
  }

  // Multiplies Q by a tile of keys. This product overlaps with the product of the previous tile's exponentials and
  // values.
  template <bool Plain>
  __device__ void step(Registers& r, const AttentionUnit& unit, uint32_t q, int32_t row, int32_t tile, bool first) {
    q = of_warp<Config>(q);  // so that no uniform register stays occupied from tile to tile
    shared_.k_full[at_k_.stage].wait(at_k_.phase);
    wgmma_fence();
    multiply_keys(r, q);
    if constexpr (Traits::kScalesFirst) fade_results<Config>(r);
    shared_.v_full[at_v_.stage].wait(at_v_.phase);
    wgmma_fence();
    multiply_values(r, first);
    wgmma_wait<1>();
    pin_all(r.s);
    release_keys();
    if constexpr (!Plain) apply_scores<true>(r, args_, scores_, unit.batch, row, tile * Traits::kTileN);
    exponentiate<Plain>(r, args_);
    wgmma_wait<0>();
    pin_all(r.o);
    release_values();
    if constexpr (!Traits::kScalesFirst) fade_results<Config>(r);
    pack_scores<Config>(r);
  }

  const AttentionArgs& args_;
  const Scores& scores_;
  const AttentionShared<Config>& shared_;
  const int group_;
  PipelineState<Traits::kStages> at_k_, at_v_;
};

template <typename Config, typename Scores, typename Sink, typename Epilogue>
__device__ inline void attention_compute(const AttentionArgs& args, const Scores& scores, const Sink& sink,
                                         const Epilogue& epilogue, const AttentionShared<Config>& shared) {
  using Traits = AttentionTraits<Config>;
  const int32_t own_row = static_cast<int32_t>(threadIdx.x) / 32 * 16 - 64;  // the warp's first row in the tile
  const int32_t lane_row = static_cast<int32_t>(threadIdx.x) % 32 / 4;
  AttentionGroup<Config, Scores> group(args, scores, shared);
  AttentionRegisters<Config> r;
  PipelineState<Traits::kQStages> at_q;
  for (;;) {
    shared.q_full[at_q.stage].wait(at_q.phase);
    const AttentionUnit unit = read_unit<Config>(shared.units[at_q.stage]);
    if (unit.number < 0) break;
    const int32_t row = unit.row + own_row;
    uint8_t* q = shared.q + at_q.stage * Traits::kQBytes;
    group.run(r, unit, shared_address(q) + group.group() * kAttentionGroupRows * kGemmRowBytes, row + lane_row);
    bool has_results = true;
    if constexpr (Config::kSplit == AttentionSplit::kCombine) {
      store_part<Config>(r, args, unit, group.group(), row + lane_row);
      has_results = false;
    } else if constexpr (Config::kSplit == AttentionSplit::kLastBlock) {
      has_results =
          add_parts<Config>(r, args, unit, shared.told, group.group(), args.m - unit.row - 64 * group.group());
    }
    if (has_results) {
      store_attention<Config>(r, args, sink, epilogue, q + own_row * kGemmRowBytes, unit, row);
    }
    fence_async_shared();
    __syncwarp();
    if (threadIdx.x % 32 == 0) shared.q_empty[at_q.stage].arrive();
    at_q.step();
  }
}

// The kernel. The tensor maps have rank 4, and their boxes are those that AttentionTile loads. If keys are stored in
// pages (pages.h), the outer dimension of the maps of K and V is the page, and a box has at most the keys of one page.
template <typename Config, typename Scores, typename Sink, typename Length, typename Epilogue,
          typename Pages = cuda::NoPages>
__device__ inline void attention(const TensorMap& map_q, const TensorMap& map_k, const TensorMap& map_v,
                                 const AttentionArgs& args, const Scores& scores, const Sink& sink,
                                 const Length& length, const Epilogue& epilogue, const Pages& pages = {}) {
  using Traits = AttentionTraits<Config>;
  extern __shared__ uint8_t raw_shared[];
  const AttentionShared<Config> shared(raw_shared);
  if (threadIdx.x == 0) {
    prefetch(map_q);
    prefetch(map_k);
    prefetch(map_v);
    shared.init();
  }
  __syncthreads();
  constexpr AttentionBudget kBudget =
      attention_budget(Traits::kConsumers, Config::kBlocks, Config::kDynamic || cuda::page_keys<Config> != 0);
  if (threadIdx.x < 128) {
    if constexpr (kBudget.consumer > kBudget.entry) warpgroup_reg_dealloc<kBudget.producer>();
    if (threadIdx.x == 0) load_tiles<Config>(map_q, map_k, map_v, args, length, pages, shared);
  } else {
    if constexpr (kBudget.consumer > kBudget.entry) warpgroup_reg_alloc<kBudget.consumer>();
    attention_compute<Config>(args, scores, sink, epilogue, shared);
  }
}

}  // namespace heddle::tile::sm90
