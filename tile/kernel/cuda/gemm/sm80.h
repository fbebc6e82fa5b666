// D = epilogue(A B) on sm_80 and later. Each warp multiplies a part of the block's tile by mma.sync, while cp.async
// fills a ring of shared-memory tiles in advance. Operands are views, so the same kernel multiplies matrices with any
// strides and convolutions of images. Operands may be converted or computed while they are loaded.
//
// A generated unit provides Config, two operands and an epilogue. Config has these fields:
//
//   struct Config {
//     using InA = tile::half, InB = tile::half;   // multiplied types: any pair that sm80::Mma has, of equal size
//     static constexpr int kNeighbours = 8;       // elements of a row per epilogue call: a multiple of 4
//     static constexpr int kTileM = 128, kTileN = 128;
//     static constexpr int kTileK = 32;           // in elements; 32, 64 or 128 bytes
//     static constexpr int kWarpsM = 2, kWarpsN = 2;   // a warp's part: 16, 32 or 64 rows; 16, 32, 64 or 128 columns
//     static constexpr int kStages = 4;           // at least 2
//     static constexpr auto kStore = tile::GemmStore::kEpilogue;   // or kPartial
//   };
//
// Operand A has the rows of D. Operand B has the columns of D as its "rows". An operand is a Matrix or Image of
// operand.h, or a class with a view, or a computed operand:
//
//   struct OperandA {
//     using Element = tile::half;                 // type in memory; if not InA, converted in registers
//     __device__ auto view(int batch) const;      // TensorView<const Element, Chain> with dimensions [row][k]
//     // Optional: changes elements while they are loaded. v contains elements of `row` from k on, or elements of k
//     // from `row` on if memory is contiguous along rows. All elements in v are valid: missing elements are 0 and are
//     // not passed. V is double if Element or InA is double, InA if both are integers, and float otherwise.
//     template <typename V, int W> __device__ void apply(V (&v)[W], int batch, int row, int k) const;
//   };
//   struct ComputedA {  // has no view; load() sets v[0..n) to elements k .. k + n - 1 of `row`
//     static constexpr int kWidth = 8;            // W; W elements of InA are 1 to 16 bytes
//     __device__ int rows() const;
//     __device__ int depth() const;
//     template <typename V, int W> __device__ void load(V (&v)[W], int batch, int row, int k, int n) const;
//   };
//
// The epilogue is that of tile/kernel/cuda/gemm/sm90.h; it is called for W neighbours of a row of D. The fields of
// GemmArgs have the same meaning as in sm90.h, except that each block computes one unit of work. The grid has tiles_m *
// tiles_n * splits * batch blocks along x.
#pragma once

#include "tile/arch/sm80/mma.h"
#include "tile/core/cuda_gemm.h"
#include "tile/kernel/cuda/gemm/fragments_to_rows.h"
#include "tile/kernel/cuda/gemm/reduce_fragments.h"
#include "tile/kernel/cuda/operand/fragment.h"
#include "tile/kernel/cuda/operand/ring.h"
#include "tile/kernel/cuda/operand/split_tf32.h"

namespace heddle::tile::sm80 {

template <typename Config, typename A, typename B>
struct GemmTraits {
  using Instruction = Mma<typename Config::InA, typename Config::InB>;
  using Acc = typename Instruction::Acc;
  static constexpr int kTileM = Config::kTileM, kTileN = Config::kTileN, kTileK = Config::kTileK;
  static constexpr int kStages = Config::kStages, kThreads = 32 * Config::kWarpsM * Config::kWarpsN;
  static constexpr int kWarpM = kTileM / Config::kWarpsM, kWarpN = kTileN / Config::kWarpsN;
  static constexpr int kBlocksM = kWarpM / 16, kBlocksN = kWarpN / 8;  // blocks of a warp's part, one instruction each
  static constexpr int kSteps = kTileK / Instruction::kK;              // steps of the instruction's k per k-tile
  // True if the lines of a shared-memory tile are along k. Fragments of 8-bit elements can only be read along k.
  // Fragments of 32-bit elements can be read along rows only if lines have 128 bytes.
  template <typename Operand, typename In, int Rows>
  static constexpr bool kAlongK = cuda::OperandTraits<Operand, In>::kMemoryAlongK || sizeof(In) == 1 ||
                                  (sizeof(In) == 4 && Rows < 32);
  template <typename Operand, typename In, int Rows>
  using TileOf = SwizzledTile<In, Rows, kTileK, kAlongK<Operand, In, Rows>>;
  template <typename Operand, typename In, int Rows>
  using LoaderOf = cuda::TileLoader<Operand, In, TileOf<Operand, In, Rows>, Rows, kTileK, kThreads>;
  using LoaderA = LoaderOf<A, typename Config::InA, kTileM>;
  using LoaderB = LoaderOf<B, typename Config::InB, kTileN>;
  static constexpr int kStageBytes = LoaderA::Tile::kBytes + LoaderB::Tile::kBytes;
  static constexpr int kSharedBytes = gemm_sm80_shared_bytes(kTileM, kTileN, kTileK* int(sizeof(typename Config::InA)),
                                                             kStages, Config::kWarpsM, Config::kWarpsN);
  static_assert(sizeof(typename Config::InA) == sizeof(typename Config::InB));
  static_assert(is_power_of_two(kWarpM) && kWarpM >= 16 && kWarpN % 16 == 0);
  static_assert(is_power_of_two(kWarpN) || LoaderB::Tile::kAlongK, "lines along rows are cut at powers of two");
  static_assert(kTileK % Instruction::kK == 0 && kStages >= 2);
};

// The operand fragments of a warp for one step of k.
template <typename Traits>
struct Fragments {
  uint32_t a[Traits::kBlocksM][4];
  uint32_t b[Traits::kBlocksN][2];
};

template <typename Config, typename A, typename B>
class GemmMainLoop {
 public:
  using Traits = GemmTraits<Config, A, B>;
  using Acc = typename Traits::Acc;
  using LoaderA = typename Traits::LoaderA;
  using LoaderB = typename Traits::LoaderB;
  using Accumulators = Acc[Traits::kBlocksM][Traits::kBlocksN][4];

  __device__ GemmMainLoop(uint8_t* shared, int warp_row, int warp_column)
      : shared_(shared), address_(cuda::shared_address(shared)), a_(warp_row), b_(warp_column) {}

  // acc += A B over `count` tiles of k. Afterwards the shared memory can be reused.
  __device__ void run(Accumulators& acc, LoaderA& a, LoaderB& b, int32_t count) {
    cuda::Ring<Traits::kStages, LoaderA, LoaderB> ring(shared_, a, b, count);
    Fragments<Traits> fragments[2];
    load_fragments(fragments[0], ring.current(), 0);
#pragma unroll 1
    for (int32_t tile = 0; tile < count; ++tile) {
#pragma unroll
      for (int step = 0; step < Traits::kSteps; ++step) {
        const bool last = step == Traits::kSteps - 1;
        if (step == 0) ring.begin_load();
        if (last) ring.step();
        load_fragments(fragments[(step + 1) % 2], ring.current(), last ? 0 : step + 1);
        multiply(acc, fragments[step % 2]);
      }
      if constexpr (Traits::kSteps % 2 == 1) fragments[0] = fragments[1];
    }
    ring.drain();
  }

 private:
  using TileA = typename LoaderA::Tile;
  using TileB = typename LoaderB::Tile;
  using InA = typename Config::InA;
  using InB = typename Config::InB;
  static constexpr int kDepth = Traits::Instruction::kK;

  __device__ void load_fragments(Fragments<Traits>& f, uint32_t at, int step) const {
#pragma unroll
    for (int i = 0; i < Traits::kBlocksM; ++i) {
      a_.read(f.a[i], shared_ + at, address_ + at, i, step);
#pragma unroll
      for (int j = 0; j < 4; ++j) round_fragment<InA>(f.a[i][j]);
    }
#pragma unroll
    for (int i = 0; i < Traits::kBlocksN / 2; ++i) {
      uint32_t r[4];
      b_.read(r, shared_ + at + TileA::kBytes, address_ + at + TileA::kBytes, i, step);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        round_fragment<InB>(r[j]);
        f.b[2 * i + j / 2][j % 2] = r[j];
      }
    }
  }

  __device__ static void multiply(Accumulators& acc, const Fragments<Traits>& f) {
    if constexpr (is_same<InA, cuda::tf32x2>) {
      if (__builtin_expect(leave_range(f), 0)) return multiply_by_fma(acc, f.a, f.b);
    }
#pragma unroll
    for (int i = 0; i < Traits::kBlocksM; ++i) {
#pragma unroll
      for (int j = 0; j < Traits::kBlocksN; ++j) {
        const int column = i % 2 == 0 ? j : Traits::kBlocksN - 1 - j;  // zigzag, so that one operand is reused
        Traits::Instruction::issue(acc[i][column], f.a[i], f.b[column]);
      }
    }
  }

  __device__ static bool leave_range(const Fragments<Traits>& f) {
    float a = 0, b = 0;
#pragma unroll
    for (int i = 0; i < Traits::kBlocksM; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) a = cuda::larger_magnitude(a, f.a[i][j]);
    }
#pragma unroll
    for (int i = 0; i < Traits::kBlocksN; ++i) {
#pragma unroll
      for (int j = 0; j < 2; ++j) b = cuda::larger_magnitude(b, f.b[i][j]);
    }
    return cuda::leaves_range(a) || cuda::leaves_range(b);
  }

  uint8_t* shared_;
  uint32_t address_;
  FragmentReader<InA, TileA, kDepth, TileA::kAlongK, false> a_;
  FragmentReader<InB, TileB, kDepth, TileB::kAlongK, true> b_;
};

// Combines pairs of sums in 16 rows of a warp by epilogue.gate(). The first result is element (row, column) of D.
template <typename Acc, int Blocks, typename Epilogue>
__device__ inline void gate_fragments(Acc (&to)[Blocks][4], const Acc (&acc)[2 * Blocks][4], const Epilogue& epilogue,
                                      const GemmArgs& args, int batch, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int j = 0; j < Blocks; ++j) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      Acc v[2] = {acc[2 * j][2 * h], acc[2 * j][2 * h + 1]};
      const Acc w[2] = {acc[2 * j + 1][2 * h], acc[2 * j + 1][2 * h + 1]};
      const int r = row + lane / 4 + 8 * h, c = column + 8 * j + 2 * (lane % 4);
      if (r < args.m && c < args.n) epilogue.gate(v, w, batch, r, c, 2);
      to[j][2 * h] = v[0], to[j][2 * h + 1] = v[1];
    }
  }
}

// The kernel. Launch it with GemmTraits<...>::kThreads threads and kSharedBytes bytes of dynamic shared memory.
template <typename Config, typename A, typename B, typename Epilogue>
__device__ inline void gemm(const GemmArgs& args, const A& operand_a, const B& operand_b, const Epilogue& epilogue) {
  using Traits = GemmTraits<Config, A, B>;
  extern __shared__ __align__(128) uint8_t raw_shared[];

  // The block's tile and part of k, and the warp's part of the tile.
  const GemmUnit unit = gemm_unit(args, static_cast<int32_t>(blockIdx.x), Config::kTileM, Config::kTileN);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_row = warp / Config::kWarpsN * Traits::kWarpM, warp_column = warp % Config::kWarpsN * Traits::kWarpN;

  // Main loop.
  typename Traits::Acc acc[Traits::kBlocksM][Traits::kBlocksN][4] = {};
  typename Traits::LoaderA a(operand_a, unit.batch, unit.m, unit.k.first * Config::kTileK);
  typename Traits::LoaderB b(operand_b, unit.batch, unit.n, unit.k.first * Config::kTileK);
  GemmMainLoop<Config, A, B>(raw_shared, warp_row, warp_column).run(acc, a, b, unit.k.last - unit.k.first);

  // The epilogue processes one band of 16 rows of each warp at a time.
  if constexpr (cuda::Reduces<Epilogue>::value) {
#pragma unroll
    for (int i = 0; i < Traits::kBlocksM; ++i) {
      const auto sums = [&](int j, int h, int of) -> auto& {
        return acc[i][j][2 * h + of];
      };
      cuda::reduce_fragments<Traits::kWarpN>(sums, epilogue, args, unit.batch, unit.m + warp_row + 16 * i,
                                             unit.n + warp_column);
    }
    if (!cuda::Reduces<Epilogue>::stores) return;
  }
  constexpr int kPair = cuda::kColumnsOfPair<Epilogue>;
  const int column = (unit.n + warp_column) / kPair;
  cuda::StagedStore<Config, typename Traits::Acc, Traits::kWarpN / kPair> store(args, unit, raw_shared, warp);
#pragma unroll
  for (int i = 0; i < Traits::kBlocksM; ++i) {
    const int row = unit.m + warp_row + 16 * i;
    if constexpr (kPair == 2) {
      typename Traits::Acc gated[Traits::kBlocksN / 2][4];
      gate_fragments(gated, acc[i], epilogue, args, unit.batch, row, column);
      store.template band<Traits::kBlocksN / 2>(gated, epilogue, row, column);
    } else {
      store.template band<Traits::kBlocksN>(acc[i], epilogue, row, column);
    }
  }
}

}  // namespace heddle::tile::sm80
