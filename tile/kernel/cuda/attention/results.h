// The last phase of the attention kernels warps.h and sm90.h, for 64 rows of O. It adds partial sums over the keys,
// divides each row by its sum of exponentials, and passes the rows to the epilogue.
#pragma once

#include "tile/arch/sm80/named_barrier.h"
#include "tile/core/swizzle.h"
#include "tile/kernel/cuda/attention/softmax.h"
#include "tile/kernel/cuda/attention/units.h"

namespace heddle::tile::cuda {

// Synchronises the four warps that share a group of rows, with the group's named barrier.
template <int First = 1>
__device__ inline void sync_group(int group) {
  if (group == 0) {
    named_barrier_sync<First>(128);
  } else if (group == 1) {
    named_barrier_sync<First + 1>(128);
  } else if (group == 2) {
    named_barrier_sync<First + 2>(128);
  } else {
    named_barrier_sync<First + 3>(128);
  }
}

// The partial sums of a group of rows, in memory. The keys are divided into parts, and each part of the keys has an
// array [float4][thread]. A thread's first float4s are O of the thread's rows. Its last float4 has the maxima and the
// sums of exponentials of its two rows. Threads is the number of threads of an array: 128 in global memory.
template <typename Config, int Threads = 128>
class AttentionParts {
 public:
  // `rows`: the index of the group of rows among all groups.
  __device__ AttentionParts(const AttentionArgs& args, int32_t rows)
      : AttentionParts(args.partial + static_cast<int64_t>(rows) * args.splits * kFloats * Threads, args.splits) {}
  __device__ AttentionParts(float* floats, int32_t splits) : splits_(splits), floats_(floats) {}

  __device__ void store(const AttentionRegisters<Config>& r, int32_t split, int32_t thread) const {
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
      store(split, i, thread, {r.o[4 * i], r.o[4 * i + 1], r.o[4 * i + 2], r.o[4 * i + 3]});
    }
    store(split, kFours, thread, {r.max[0], r.max[1], r.sum[0], r.sum[1]});
  }
  __device__ void store(int32_t split, int i, int32_t thread, float4 x) const {
    *at(split, i, thread) = x;
  }
  // Adds O of all parts and stores the sums in part 0 of `to`, which may be this object. Sets the maxima and sums of
  // exponentials in `r`. Used if the group has few rows, which belong to its first `threads` (at most 32) threads.
  // `Adders` threads divide the additions: each adds some of the float4s of one of the first `threads` threads. Parts
  // are read once, so that a batch of parts takes one latency.
  template <int Adders, typename To>
  __device__ void add_for(AttentionRegisters<Config>& r, const To& to, int32_t threads, int32_t thread) const {
    constexpr int kWarps = Adders / 32, kOwn = kFours > kWarps ? 2 : 1;  // float4s at a time: more would spill
    const int32_t of = thread % 32;
    if (of >= threads) return;
#pragma unroll 1
    for (int32_t first = thread / 32; first < kFours; first += kOwn * kWarps) {
      float4 sums[kOwn] = {};
      r.max[0] = r.max[1] = -__builtin_inff();
      r.sum[0] = r.sum[1] = 0;
      for_parts([&](const int32_t(&parts)[kAtOnce], int32_t count) {
        float4 rows[kAtOnce], fours[kOwn][kAtOnce];
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          rows[j] = load(parts[j], kFours, of);
#pragma unroll
          for (int own = 0; own < kOwn; ++own) {
            const int32_t i = first + own * kWarps;
            fours[own][j] = load(parts[j], i < kFours ? i : first, of);
          }
        }
        const float2 before{r.max[0], r.max[1]};
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) r.max[0] = fmaxf(r.max[0], rows[j].x), r.max[1] = fmaxf(r.max[1], rows[j].y);
        const float2 fade{weight(before.x, r.max[0]), weight(before.y, r.max[1])};
        r.sum[0] *= fade.x, r.sum[1] *= fade.y;
#pragma unroll
        for (int own = 0; own < kOwn; ++own) {
          sums[own] = {sums[own].x * fade.x, sums[own].y * fade.x, sums[own].z * fade.y, sums[own].w * fade.y};
        }
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          const float low = j < count ? weight(rows[j].x, r.max[0]) : 0,
                      high = j < count ? weight(rows[j].y, r.max[1]) : 0;
          r.sum[0] = fmaf(rows[j].z, low, r.sum[0]), r.sum[1] = fmaf(rows[j].w, high, r.sum[1]);
#pragma unroll
          for (int own = 0; own < kOwn; ++own) {
            const float4& four = fours[own][j];
            sums[own].x = fmaf(four.x, low, sums[own].x), sums[own].y = fmaf(four.y, low, sums[own].y);
            sums[own].z = fmaf(four.z, high, sums[own].z), sums[own].w = fmaf(four.w, high, sums[own].w);
          }
        }
      });
#pragma unroll
      for (int own = 0; own < kOwn; ++own) {
        if (first + own * kWarps < kFours) to.store(0, first + own * kWarps, of, sums[own]);
      }
    }
  }
  __device__ void load_sums(AttentionRegisters<Config>& r, int32_t thread) const {
    const float2 max = most(thread);
    r.max[0] = max.x, r.max[1] = max.y;
    r.sum[0] = r.sum[1] = 0;
    for_parts([&](const int32_t(&parts)[kAtOnce], int32_t count) {
      float4 rows[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) rows[j] = load(parts[j], kFours, thread);
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        r.sum[0] += j < count ? rows[j].z * weight(rows[j].x, max.x) : 0;
        r.sum[1] += j < count ? rows[j].w * weight(rows[j].y, max.y) : 0;
      }
    });
  }
  __device__ void load_first(AttentionRegisters<Config>& r, int32_t thread) const {
#pragma unroll
    for (int i = 0; i < kFours; ++i) put(r, i, load(0, i, thread));
  }
  // Sums over all parts of the keys. `four` is the i-th float4 of a thread, with two columns of each of the thread's
  // two rows. `max` and `sum` are the maxima and the sums of exponentials of these rows.
  struct Sums {
    float4 four;
    float max[2], sum[2];
  };
  __device__ Sums sums_of(int i, int32_t thread) const {
    const float2 max = most(thread);
    Sums r{{0, 0, 0, 0}, {max.x, max.y}, {0, 0}};
#pragma unroll 8
    for (int32_t split = 0; split < splits_; ++split) {
      const float4 row = load(split, kFours, thread), four = load(split, i, thread);
      const float low = weight(row.x, max.x), high = weight(row.y, max.y);
      r.sum[0] = fmaf(row.z, low, r.sum[0]), r.sum[1] = fmaf(row.w, high, r.sum[1]);
      r.four.x = fmaf(four.x, low, r.four.x), r.four.y = fmaf(four.y, low, r.four.y);
      r.four.z = fmaf(four.z, high, r.four.z), r.four.w = fmaf(four.w, high, r.four.w);
    }
    return r;
  }
  // Resets the registers of a thread without valid rows, so that they need not stay live while other threads add.
  __device__ static void clear(AttentionRegisters<Config>& r) {
#pragma unroll
    for (float& x : r.o) x = 0;
    r.sum[0] = r.sum[1] = 1;
    r.max[0] = r.max[1] = 0;
  }
  // Adds O of all parts for the thread's own rows. All threads of a warp must call this function. The function limits
  // the number of loads in flight to save registers.
  __device__ void load_all(AttentionRegisters<Config>& r, int32_t thread) const {
    const float2 max = most(thread);
#pragma unroll
    for (int i = 0; i < Config::kWidth / 2; ++i) r.o[i] = 0;
    for (int32_t split = 0; split < splits_; ++split) {
      const float4 row = load(split, kFours, thread);
      const float low = weight(row.x, max.x), high = weight(row.y, max.y);
#pragma unroll
      for (int i = 0; i < kFours; ++i) {
        if (i % 8 == 0) __syncwarp();
        const float4 four = load(split, i, thread);
        put(r, i,
            {fmaf(four.x, low, r.o[4 * i]), fmaf(four.y, low, r.o[4 * i + 1]), fmaf(four.z, high, r.o[4 * i + 2]),
             fmaf(four.w, high, r.o[4 * i + 3])});
      }
    }
  }

 private:
  static constexpr int kFloats = attention_partial_floats(Config::kWidth), kFours = Config::kWidth / 8, kAtOnce = 8;

  __device__ float4* at(int32_t split, int i, int32_t thread) const {
    return reinterpret_cast<float4*>(floats_ + (static_cast<int64_t>(split) * kFloats + 4 * i) * Threads) + thread;
  }
  __device__ float4 load(int32_t split, int i, int32_t thread) const {
    return *at(split, i, thread);
  }
  // Returns the weight of one part of the keys in the sums over all parts. `max` is the maximum score of the part, and
  // `of_all` that of all parts. A part whose scores are all minus infinity has the weight 0 if another part has a
  // score.
  __device__ static float weight(float max, float of_all) {
    return max == of_all ? 1.0f : exp2_approx((max - of_all) * kAttentionLog2e);
  }
  __device__ float2 most(int32_t thread) const {
    float2 max{-__builtin_inff(), -__builtin_inff()};
    for_parts([&](const int32_t(&parts)[kAtOnce], int32_t) {
      float4 rows[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) rows[j] = load(parts[j], kFours, thread);
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) max.x = fmaxf(max.x, rows[j].x), max.y = fmaxf(max.y, rows[j].y);
    });
    return max;
  }
  // Calls f(parts, number of remaining parts) for batches of kAtOnce parts. The loads of a batch overlap, which hides
  // their latency. A last batch with fewer parts repeats its last part.
  template <typename F>
  __device__ void for_parts(F f) const {
#pragma unroll 1
    for (int32_t first = 0; first < splits_; first += kAtOnce) {
      int32_t parts[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) parts[j] = first + j < splits_ ? first + j : splits_ - 1;
      f(parts, splits_ - first);
    }
  }
  __device__ static void put(AttentionRegisters<Config>& r, int i, float4 four) {
    r.o[4 * i] = four.x, r.o[4 * i + 1] = four.y, r.o[4 * i + 2] = four.z, r.o[4 * i + 3] = four.w;
  }

  const int32_t splits_;
  float* const floats_;
};

// Writes a group's sums over one part of the keys to global memory. The last block to do so adds the sums of all parts,
// in the order of the parts, into its registers `r` and returns true; the other blocks return false. `told` is shared
// memory with one word per group. Through this word, one thread tells the others how many parts were already finished.
// `left` is the number of rows from the group's first row to the last row of Q. If the warps of the block share their
// rows, `floats` is shared memory with few_rows_sums_bytes().
template <typename Config>
__device__ inline bool add_parts(AttentionRegisters<Config>& r, const AttentionArgs& args, const AttentionUnit& unit,
                                 int32_t* told, int group, int32_t left, uint8_t* floats = nullptr) {
  constexpr int kAdders = key_warps<Config> != 0 ? 32 * key_warps<Config> : 128;
  const auto sync = [&] {
    if constexpr (key_warps<Config> != 0) {
      __syncthreads();
    } else {
      sync_group(group);
    }
  };
  const auto thread = static_cast<int32_t>(threadIdx.x) % kAdders;
  const int32_t rows = args.by_splits.divide(unit.number) * Config::kConsumers + group;
  // Each group of four threads shares a row i < 8 and the row i + 8.
  const int32_t threads_with_rows = left < 8 ? 4 * left : 32;
  const bool are_few = key_warps<Config> != 0 || left <= 16, has_rows = !are_few || thread < threads_with_rows;
  const AttentionParts<Config> parts(args, rows);
  if (has_rows) parts.store(r, unit.split, thread);
  __threadfence();
  sync();
  if (thread == 0) {
    uint32_t* done = args.counters + kAttentionWalkCounters + rows;
    const auto before = static_cast<int32_t>(atomicAdd(done, 1u));
    if (before == args.splits - 1) atomicExch(done, 0u);
    told[group] = before;
  }
  sync();
  const bool is_last = told[group] == args.splits - 1;
  sync();  // all threads have read `told`
  if (!is_last) return false;
  __threadfence();
  const auto add_few = [&](const auto& sums) {
    parts.template add_for<kAdders>(r, sums, threads_with_rows, thread);
    sync();
    if (has_rows) {
      sums.load_first(r, thread);
    } else {
      parts.clear(r);
    }
  };
  if constexpr (key_warps<Config> != 0) {
    add_few(AttentionParts<Config, 32>(reinterpret_cast<float*>(floats), 1));
  } else if (are_few) {
    add_few(parts);
  } else {
    parts.load_sums(r, thread);
    parts.load_all(r, thread);
  }
  return true;
}

// Writes a group's sums over one part of the keys to global memory, for attention_combine(). `row` is the thread's
// first row.
template <typename Config>
__device__ inline void store_part(const AttentionRegisters<Config>& r, const AttentionArgs& args,
                                  const AttentionUnit& unit, int group, int32_t row) {
  if (row >= args.m) return;
  const AttentionParts<Config> parts(args, args.by_splits.divide(unit.number) * Config::kConsumers + group);
  parts.store(r, unit.split, static_cast<int32_t>(threadIdx.x) % 128);
}

// Adds the sums of the warps of a block that process the same 16 rows and different keys. The first warp gets the sums
// over all keys in its registers; the other warps get zeros. `floats` is shared memory with few_rows_sums_bytes() for
// each warp. When all warps have entered this function, no warp may still be reading the old content of `floats`.
template <typename Config, int Warps>
__device__ inline void add_warps(AttentionRegisters<Config>& r, uint8_t* floats) {
  const auto thread = static_cast<int32_t>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const AttentionParts<Config, 32> parts(reinterpret_cast<float*>(floats), Warps);
  __syncthreads();
  parts.store(r, warp, lane);
  __syncthreads();
  parts.template add_for<32 * Warps>(r, parts, 32, thread);
  __syncthreads();
  if (warp == 0) {
    parts.load_first(r, lane);
  } else {
    parts.clear(r);
  }
}

// The sink of kernels without an attention sink, which is an additional score that belongs to no key.
struct NoSink {};

// Returns the factor by which a row of O is multiplied: the reciprocal of the row's sum of exponentials, or 0 if that
// sum is 0 and kZeroIfEmpty is set. `sum` is the thread's part of the row's sum. All lanes of a warp must call this
// function.
template <typename Config, typename Lanes = MmaLanes, typename Sink>
__device__ inline float row_factor(float sum, float max, const AttentionArgs& args, const Sink& sink, int32_t batch,
                                   int32_t row) {
  sum = over_row<Lanes>(
      sum, [](float x, float y) __attribute__((always_inline)) { return x + y; });
  if constexpr (!is_same<Sink, NoSink>) {
    float score[1] = {0};
    sink(score, batch, row < args.m ? row : args.m - 1, 0, 1);
    const float base = max == -__builtin_inff() ? 0.0f : max;  // 0 for a row without visible keys
    sum += exp2_approx((score[0] - base) * kAttentionLog2e);
  }
  return Config::kZeroIfEmpty && sum == 0 ? 0.0f : 1.0f / sum;
}

// Returns the byte offset of element (row, col) in a warp's staged results. The tile is stored in pieces of `Piece`
// bytes; a row of a piece has 128 bytes.
template <typename In, int Piece>
__device__ inline uint32_t result_place(int row, int col) {
  constexpr int kElement = sizeof(In), kColumns = kGemmRowBytes / kElement;
  return col / kColumns * Piece + swizzle<128>(static_cast<uint32_t>(row * kGemmRowBytes + col % kColumns * kElement));
}

// Neighbouring results, converted to the operand type In; for a 32-bit In, as floats.
template <typename In, int Count>
struct alignas(sizeof(In) * Count) ResultRun {
  uint32_t words[sizeof(In) * Count / 4];

  __device__ explicit ResultRun(const float (&x)[Count]) {
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      if constexpr (sizeof(In) == 4) {
        words[i] = __float_as_uint(x[i]);
      } else if (i % 2 == 0) {
        words[i / 2] = pack<In>(x[i], x[i + 1]);
      }
    }
  }
};

// Passes the warp's 16 rows of O through shared memory to the epilogue. `rows` points to the warp's rows in the block's
// tile in shared memory. `row` is the index in O of the warp's first row.
template <typename Config, typename Lanes, typename Sink, typename Epilogue>
__device__ inline void store_attention(AttentionRegisters<Config, Lanes>& r, const AttentionArgs& args,
                                       const Sink& sink, const Epilogue& epilogue, uint8_t* rows,
                                       const AttentionUnit& unit, int32_t row) {
  using In = typename Config::In;
  using Run = ResultRun<In, Lanes::kRun>;
  constexpr int kRows = key_warps<Config> != 0 ? kAttentionFewRows : kAttentionGroupRows * Config::kConsumers;
  constexpr int kPiece = kRows * kGemmRowBytes;
  const int lane = threadIdx.x % Lanes::kLanes;
#pragma unroll
  for (int h = 0; h < Lanes::kRows; ++h) {
    const int line = Lanes::row() + 8 * h;
    const float factor = row_factor<Config, Lanes>(r.sum[h], r.max[h], args, sink, unit.batch, row + line);
#pragma unroll
    for (int j = 0; j < Config::kWidth / Lanes::kStride; ++j) {
      float x[Lanes::kRun];
#pragma unroll
      for (int i = 0; i < Lanes::kRun; ++i) x[i] = r.o[4 * j + Lanes::kRun * h + i] * factor;
      uint8_t* to = rows + result_place<In, kPiece>(line, Lanes::kStride * j + Lanes::column());
      *reinterpret_cast<Run*>(to) = Run(x);
    }
  }
  __syncwarp();
  // Eight lanes process 64 columns of a row.
#pragma unroll
  for (int first = 0; first < Config::kWidth; first += 64) {
    const int32_t own = first + lane % 8 * 8, col = first_column<Config>(unit) + own;
#pragma unroll
    for (int i = 0; i < 128 / Lanes::kLanes; ++i) {
      const int32_t r16 = Lanes::kLanes / 8 * i + lane / 8;
      if (row + r16 >= args.m || own >= Config::kWidth || col >= args.width) continue;
      constexpr int kChunk = 16 / static_cast<int>(sizeof(In));
      struct alignas(16) Some {
        In x[kChunk];
      };
      float v[8];
#pragma unroll
      for (int c = 0; c < 8; c += kChunk) {
        const Some some = *reinterpret_cast<const Some*>(rows + result_place<In, kPiece>(r16, own + c));
#pragma unroll
        for (int e = 0; e < kChunk; ++e) v[c + e] = to_float(some.x[e]);
      }
      epilogue(v, unit.batch, row + r16, col, args.width - col < 8 ? args.width - col : 8);
    }
  }
}

}  // namespace heddle::tile::cuda
