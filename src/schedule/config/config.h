#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"

namespace heddle::schedule {

// The choices for a kernel. Each family of kernels has one struct, whose kName is the name of the family. `fields`
// passes each member and its name to a visitor. Printing, parsing and reflection use only `fields`. `tile`, if
// there is one, passes only the members that define the tile. The fastest configurations of a problem rarely differ in
// these members.
//
// "splits" is the number of parts of k. A second kernel adds the sums of the parts in order.

// A kernel without choices, and its name. GPU stitch kernels have no name.
struct NoChoice {
  std::string name;

  static void fields(auto&, auto&&) {}
  bool operator==(const NoChoice&) const = default;
};

// A loop nest on a CPU. `lanes`: lanes per vector.
struct LoopConfig {
  static constexpr std::string_view kName = "";
  int64_t lanes = 1;

  static void fields(auto& c, auto&& f) { f("lanes", c.lanes); }
  bool operator==(const LoopConfig&) const = default;
};

// A scatter of single elements. `sharers`: threads per column; `threads`: threads per block.
struct ScatterElementsConfig {
  static constexpr std::string_view kName = "scatter_elements";
  int64_t sharers = 1, threads = 0;

  static void fields(auto& c, auto&& f) { f("sharers", c.sharers), f("threads", c.threads); }
  bool operator==(const ScatterElementsConfig&) const = default;
};

// A scatter of slices. `rows` and `columns`: rows and columns per warp, or per task of a CPU.
struct ScatterSlicesConfig {
  static constexpr std::string_view kName = "scatter_nd";
  static constexpr int64_t kThreads = 256;  // threads per block
  int64_t rows = 0, columns = 0;

  static void fields(auto& c, auto&& f) { f("rows", c.rows), f("columns", c.columns); }
  bool operator==(const ScatterSlicesConfig&) const = default;
};

// A scatter that adds with atomic operations, divided by updates. `vector`: neighbouring columns per thread. `run`:
// consecutive updates per thread.
struct ScatterAtomicConfig {
  static constexpr std::string_view kName = "scatter_atomic";
  static constexpr int64_t kThreads = 256;  // threads per block
  int64_t vector = 1, run = 1;

  static void tile(auto&, auto&&) {}
  static void fields(auto& c, auto&& f) { f("vector", c.vector), f("run", c.run); }
  bool operator==(const ScatterAtomicConfig&) const = default;
};

// A scatter whose updates are sorted by row. `vector`: neighbouring columns per thread. `run`: sorted updates per
// thread.
struct ScatterSortedConfig {
  static constexpr std::string_view kName = "scatter_sorted";
  static constexpr int64_t kThreads = 256;  // threads per block that combines updates
  int64_t vector = 1, run = 8;

  static void tile(auto&, auto&&) {}
  static void fields(auto& c, auto&& f) { f("vector", c.vector), f("run", c.run); }
  bool operator==(const ScatterSortedConfig&) const = default;
};

// A top-k selection. `threads`: threads per block. A block processes one column.
struct SelectConfig {
  static constexpr std::string_view kName = "topk";
  int64_t threads = 0;

  static void fields(auto& c, auto&& f) { f("threads", c.threads); }
  bool operator==(const SelectConfig&) const = default;
};

// A product on a CPU. `tile_m` and `tile_n`: rows of A and columns of B per block. `micro_m` and `micro_n`: rows and
// columns of the register tile.
struct CpuGemmConfig {
  static constexpr std::string_view kName = "gemm";
  int64_t tile_m = 0, tile_n = 0, micro_m = 0, micro_n = 0;

  static void tile(auto& c, auto&& f) {
    f("tile_m", c.tile_m), f("tile_n", c.tile_n), f("micro_m", c.micro_m), f("micro_n", c.micro_n);
  }
  static void fields(auto& c, auto&& f) { tile(c, f); }
  bool operator==(const CpuGemmConfig&) const = default;
};
// A product with few rows, which is limited by memory bandwidth.
struct CpuGemvConfig : CpuGemmConfig {
  static constexpr std::string_view kName = "gemv";
};

// A direct convolution. `rows` and `tile_n`: output rows and filters (columns) per block.
struct CpuConvConfig {
  static constexpr std::string_view kName = "direct";
  int64_t rows = 0, tile_n = 0, micro_m = 0, micro_n = 0;

  static void tile(auto& c, auto&& f) {
    f("rows", c.rows), f("tile_n", c.tile_n), f("micro_m", c.micro_m), f("micro_n", c.micro_n);
  }
  static void fields(auto& c, auto&& f) { tile(c, f); }
  bool operator==(const CpuConvConfig&) const = default;
};

// A Winograd convolution F(4x4, 3x3). `tiles`: the number of output tiles (4x4) per block. `tile_n`: the number of
// filters per block.
struct CpuWinogradConfig {
  static constexpr std::string_view kName = "winograd";
  int64_t tiles = 0, tile_n = 0, micro_m = 0, micro_n = 0;

  static void tile(auto& c, auto&& f) {
    f("tiles", c.tiles), f("tile_n", c.tile_n), f("micro_m", c.micro_m), f("micro_n", c.micro_n);
  }
  static void fields(auto& c, auto&& f) { tile(c, f); }
  bool operator==(const CpuWinogradConfig&) const = default;
};

// A direct convolution with lanes along pixels. `rows` and `pixels`: output rows and pixels per block. `micro_m`,
// `micro_n` and `micro_rows`: channels, pixels and rows of the register tile.
struct CpuPlanarConfig {
  static constexpr std::string_view kName = "planar";
  int64_t rows = 0, pixels = 0, micro_m = 0, micro_n = 0, micro_rows = 1;

  static void tile(auto& c, auto&& f) {
    f("rows", c.rows), f("pixels", c.pixels), f("micro_m", c.micro_m), f("micro_n", c.micro_n);
    f("micro_rows", c.micro_rows);
  }
  static void fields(auto& c, auto&& f) { tile(c, f); }
  bool operator==(const CpuPlanarConfig&) const = default;
};

// A window of any shape. `channels`: channels per thread.
struct CudaWindowConfig {
  static constexpr std::string_view kName = "generic_window";
  static constexpr int64_t kThreads = 256;  // threads per block
  int64_t channels = 0;

  static void fields(auto& c, auto&& f) { f("channels", c.channels); }
  bool operator==(const CudaWindowConfig&) const = default;
};

// A window that a thread slides over the image. `channels`, `down` and `across`: channels, output rows and output
// columns per thread.
struct RegisterTiledWindowConfig {
  static constexpr std::string_view kName = "register_tiled_window";
  static constexpr int64_t kThreads = 128;  // threads per block
  int64_t channels = 0, down = 1, across = 1;

  static void fields(auto& c, auto&& f) { f("channels", c.channels), f("down", c.down), f("across", c.across); }
  bool operator==(const RegisterTiledWindowConfig&) const = default;
};

// A window whose pixels a thread keeps in a ring of registers. `channels` and `across`: channels and output columns per
// thread.
struct RegisterRingWindowConfig {
  static constexpr std::string_view kName = "register_ring_window";
  static constexpr int64_t kThreads = 128;  // threads per block
  int64_t channels = 0, across = 1;

  static void fields(auto& c, auto&& f) { f("channels", c.channels), f("across", c.across); }
  bool operator==(const RegisterRingWindowConfig&) const = default;
};

// A window over rows of adjacent pixels. `across`: outputs per thread. `taps`: taps of a row that are processed at a
// time. `vector`: pixels per load.
struct PlanarWindowConfig {
  static constexpr std::string_view kName = "planar_window";
  static constexpr int64_t kThreads = 128;  // threads per block
  int64_t across = 1, taps = 1, vector = 1;

  // The number of pixels in the first load that precede the thread's first pixel, if a row has `low` pixels of padding.
  int64_t lead(int64_t low) const { return (vector - low % vector) % vector; }
  int64_t width() const { return across < 8 ? across : 8; }  // outputs per call of the epilogue
  static void fields(auto& c, auto&& f) { f("across", c.across), f("taps", c.taps), f("vector", c.vector); }
  bool operator==(const PlanarWindowConfig&) const = default;
};

// Attention on a GPU. `consumers`: warpgroups of 64 rows each. `tile_n`: keys per tile. `stages`: buffers for K and for
// V. `q_stages`: buffers for Q. `blocks`: blocks per SM. `splits`: parts into which the keys are split; different
// blocks process them. `section`: heads whose keys should be in the L2 at the same time.
struct CudaAttentionConfig {
  static constexpr std::string_view kName = "attention";
  int64_t consumers = 1, tile_n = 0, stages = 0, q_stages = 0, blocks = 1, splits = 1, section = 1;
  int64_t panels = 1;     // parts of the columns of V and O; each part computes all scores again
  int64_t key_warps = 0;  // if there are few rows: warps that share the rows and divide the keys
  bool dynamic = false;   // blocks fetch their next unit dynamically
  bool combines = false;  // a second launch adds the parts of split keys; else the last block of each row does
  bool mfma = false;      // by waves of 64 lanes that multiply with MFMA

  int64_t tile_m() const { return 64 * consumers; }
  static void tile(auto& c, auto&& f) {
    f("consumers", c.consumers), f("tile_n", c.tile_n), f("blocks", c.blocks), f("splits", c.splits);
  }
  static void fields(auto& c, auto&& f) {
    tile(c, f), f("stages", c.stages), f("q_stages", c.q_stages), f("section", c.section), f("dynamic", c.dynamic);
    f("combines", c.combines), f("key_warps", c.key_warps), f("panels", c.panels), f("mfma", c.mfma);
  }
  bool operator==(const CudaAttentionConfig&) const = default;
};

// Attention on a CPU. `tile_m`: rows per task. `tile_n`: keys per block. `micro_m`: rows of the register tile.
struct CpuAttentionConfig {
  static constexpr std::string_view kName = "blocked_attention";
  int64_t tile_m = 0, tile_n = 0, micro_m = 0;

  static void tile(auto& c, auto&& f) { f("tile_m", c.tile_m), f("tile_n", c.tile_n), f("micro_m", c.micro_m); }
  static void fields(auto& c, auto&& f) { tile(c, f); }
  bool operator==(const CpuAttentionConfig&) const = default;
};

// Back-to-back contractions on a CPU. `strips`: strips of rows per image. `steps`: steps per strip.
struct CpuBackToBackConfig {
  static constexpr std::string_view kName = "blocked_back_to_back";
  int64_t strips = 1, steps = 1;

  static void tile(auto& c, auto&& f) { f("strips", c.strips), f("steps", c.steps); }
  static void fields(auto& c, auto&& f) { tile(c, f); }
  bool operator==(const CpuBackToBackConfig&) const = default;
};

// wgmma, with operands that TMA loads.
struct WgmmaConfig {
  static constexpr std::string_view kName = "wgmma";
  int tile_m = 128, tile_n = 128, consumers = 2;  // consumers: warpgroups that multiply
  bool ping_pong = false;                         // each warpgroup has its own tile
  bool swapped = false;  // computes D^T = B^T A^T, so that the long side of D is along the instruction's 64 rows
  int stages = 4;
  int cluster_m = 1, cluster_n = 1, splits = 1;
  bool stream_k = false;  // all blocks share the last tiles evenly and pass on partial sums in order

  static void tile(auto& c, auto&& f) {
    f("tile_m", c.tile_m), f("tile_n", c.tile_n), f("consumers", c.consumers);
    f("ping_pong", c.ping_pong), f("swapped", c.swapped);
  }
  static void fields(auto& c, auto&& f) {
    tile(c, f), f("stages", c.stages), f("cluster_m", c.cluster_m), f("cluster_n", c.cluster_n);
    f("splits", c.splits), f("stream_k", c.stream_k);
  }
  bool operator==(const WgmmaConfig&) const = default;
};
// wgmma, with operands from the windows of a convolution, which TMA gathers.
struct WgmmaIm2colConfig : WgmmaConfig {
  static constexpr std::string_view kName = "wgmma_im2col";
};
// wgmma for the gradients of a convolution's filters: TMA gathers the windows, which are summed.
struct WgmmaWgradConfig : WgmmaConfig {
  static constexpr std::string_view kName = "wgmma_wgrad";
};
// wgmma, with operands that threads load.
struct WgmmaGatherConfig : WgmmaConfig {
  static constexpr std::string_view kName = "wgmma_gather";
};

// wgmma for products in which D has few rows, few columns or few elements. The blocks of a cluster compute one tile of
// D together: they split its sum over k.
struct ClusterSplitKConfig {
  static constexpr std::string_view kName = "cluster_splitk";
  int tile_m = 64, tile_n = 64, consumers = 1;
  bool swapped = false;
  int stages = 4, cluster_k = 1, splits = 1;

  static void tile(auto& c, auto&& f) {
    f("tile_m", c.tile_m), f("tile_n", c.tile_n), f("consumers", c.consumers), f("swapped", c.swapped);
  }
  static void fields(auto& c, auto&& f) {
    tile(c, f), f("stages", c.stages), f("cluster_k", c.cluster_k), f("splits", c.splits);
  }
  bool operator==(const ClusterSplitKConfig&) const = default;
};
// As ClusterSplitKConfig, with operands that threads load.
struct GatherSplitKConfig : ClusterSplitKConfig {
  static constexpr std::string_view kName = "gather_splitk";
};
// As ClusterSplitKConfig, with operands from the windows of a convolution, which TMA gathers.
struct Im2colSplitKConfig : ClusterSplitKConfig {
  static constexpr std::string_view kName = "im2col_splitk";
};
// As ClusterSplitKConfig, for rows that start at any address. All rows of a tile have the same alignment.
struct MisalignedConfig : ClusterSplitKConfig {
  static constexpr std::string_view kName = "misaligned";
};

// mma.sync, with tiles in shared memory.
struct MmaConfig {
  static constexpr std::string_view kName = "mma";
  int tile_m = 128, tile_n = 128, tile_k = 32, warps_m = 2, warps_n = 2, stages = 3, splits = 1;

  int threads() const { return 32 * warps_m * warps_n; }
  static void tile(auto& c, auto&& f) { f("tile_m", c.tile_m), f("tile_n", c.tile_n), f("warps_m", c.warps_m); }
  static void fields(auto& c, auto&& f) {
    tile(c, f), f("tile_k", c.tile_k), f("warps_n", c.warps_n), f("stages", c.stages), f("splits", c.splits);
  }
  bool operator==(const MmaConfig&) const = default;
};
// Ordinary arithmetic instead of tensor cores, with the tiles of MmaConfig.
struct SimtConfig : MmaConfig {
  static constexpr std::string_view kName = "simt";
};

// MFMA by waves of 64 lanes, with the tiles of MmaConfig.
struct MfmaConfig : MmaConfig {
  static constexpr std::string_view kName = "mfma";

  int threads() const { return 64 * warps_m * warps_n; }
};
// The same kernel in waves of 32 lanes, with WMMA.
struct WmmaConfig : MmaConfig {
  static constexpr std::string_view kName = "wmma";
};

// A product with at most eight rows or, if `swapped`, at most eight columns. `few` is their number. Each warp computes
// `rows` columns of D at a time or, if `swapped`, `rows` rows.
struct SkinnyConfig {
  static constexpr std::string_view kName = "skinny";
  int few = 1, tile_n = 0;
  bool swapped = false;
  int tile_k = 0, warps = 8, rows = 1, splits = 1;

  int threads() const { return 32 * warps; }
  static void tile(auto& c, auto&& f) { f("few", c.few), f("tile_n", c.tile_n), f("swapped", c.swapped); }
  static void fields(auto& c, auto&& f) {
    tile(c, f), f("tile_k", c.tile_k), f("warps", c.warps), f("rows", c.rows), f("splits", c.splits);
  }
  bool operator==(const SkinnyConfig&) const = default;
};

// mma.sync, with operands that are contiguous along k and have any alignment. The warps, and the blocks of a cluster,
// divide the k of a tile.
struct UnalignedConfig {
  static constexpr std::string_view kName = "unaligned";
  int tile_m = 0, tile_n = 0, warps_m = 1;
  bool swapped = false;
  int tile_k = 0, warps_k = 1, stages = 2, cluster_k = 1, splits = 1;

  int threads() const { return 32 * warps_m * warps_k; }
  static void tile(auto& c, auto&& f) {
    f("tile_m", c.tile_m), f("tile_n", c.tile_n), f("warps_m", c.warps_m), f("swapped", c.swapped);
  }
  static void fields(auto& c, auto&& f) {
    tile(c, f), f("tile_k", c.tile_k), f("warps_k", c.warps_k), f("stages", c.stages), f("cluster_k", c.cluster_k);
    f("splits", c.splits);
  }
  bool operator==(const UnalignedConfig&) const = default;
};

// mma.sync, with fragments that lanes load directly from memory. Each of the `warps_k` warps along k processes its part
// of k in `chunks` chunks.
struct RegisterDirectConfig {
  static constexpr std::string_view kName = "register_direct";
  int tile_m = 0, tile_n = 0, warps_m = 1, warps_n = 1, warps_k = 1, chunks = 1;

  int threads() const { return 32 * warps_m * warps_n * warps_k; }
  static void tile(auto& c, auto&& f) { f("tile_m", c.tile_m), f("tile_n", c.tile_n), f("warps_m", c.warps_m); }
  static void fields(auto& c, auto&& f) {
    tile(c, f), f("warps_n", c.warps_n), f("warps_k", c.warps_k), f("chunks", c.chunks);
  }
  bool operator==(const RegisterDirectConfig&) const = default;
};

// mma.sync, with constant weights of few bits as B, which lanes load from memory and widen in registers. `stages`:
// fragments along k that a warp has in flight.
struct PackedConfig {
  static constexpr std::string_view kName = "packed";
  int tile_m = 0, tile_n = 0, warps_n = 1, warps_k = 1, stages = 2, splits = 1;

  int threads() const { return 32 * warps_n * warps_k; }
  static void tile(auto& c, auto&& f) { f("tile_m", c.tile_m), f("tile_n", c.tile_n), f("warps_n", c.warps_n); }
  static void fields(auto& c, auto&& f) {
    tile(c, f), f("warps_k", c.warps_k), f("stages", c.stages), f("splits", c.splits);
  }
  bool operator==(const PackedConfig&) const = default;
};

// A product with few results and a long k. Each thread has a partial sum for every element of a tile. It processes
// `width` elements of k at a time, and keeps `chunks` such loads in flight.
struct KReductionConfig {
  static constexpr std::string_view kName = "k_reduction";
  int tile_m = 1, tile_n = 1, warps = 1, width = 1, chunks = 1, splits = 1;

  int threads() const { return 32 * warps; }
  static void tile(auto& c, auto&& f) { f("tile_m", c.tile_m), f("tile_n", c.tile_n), f("warps", c.warps); }
  static void fields(auto& c, auto&& f) {
    tile(c, f), f("width", c.width), f("chunks", c.chunks), f("splits", c.splits);
  }
  bool operator==(const KReductionConfig&) const = default;
};

// The gradients of the filters of a depthwise convolution. Each thread has the sums of all taps of `width` neighbouring
// channels. A block has the threads of `pieces` such pieces, for `rows` rows of pixels at a time.
struct DepthwiseWgradConfig {
  static constexpr std::string_view kName = "depthwise_wgrad";
  int width = 1, pieces = 1, rows = 1, splits = 1;

  static void tile(auto& c, auto&& f) { f("width", c.width); }
  static void fields(auto& c, auto&& f) { tile(c, f), f("pieces", c.pieces), f("rows", c.rows), f("splits", c.splits); }
  bool operator==(const DepthwiseWgradConfig&) const = default;
};

// Two successive products by mma.sync. The columns of the first product are divided among `warps_n` warps. The columns
// of the second product are computed `tile_n` at a time.
struct CudaBackToBackConfig {
  static constexpr std::string_view kName = "back_to_back";
  int tile_m = 128, tile_n = 64, tile_k = 32, warps_m = 4, warps_n = 1, stages = 3;
  bool in_registers = false;  // the first product's result is in registers; else in shared memory

  int threads() const { return 32 * warps_m * warps_n; }
  static void tile(auto& c, auto&& f) {
    f("tile_m", c.tile_m), f("tile_n", c.tile_n), f("in_registers", c.in_registers);
  }
  static void fields(auto& c, auto&& f) {
    tile(c, f), f("tile_k", c.tile_k), f("warps_m", c.warps_m), f("warps_n", c.warps_n), f("stages", c.stages);
  }
  bool operator==(const CudaBackToBackConfig&) const = default;
};

// Expands F(C) for each struct C above except NoChoice.
#define HEDDLE_CONFIG_FAMILIES(F)                                                                                     \
  F(LoopConfig)                                                                                                       \
  F(ScatterElementsConfig)                                                                                            \
  F(ScatterSlicesConfig)                                                                                              \
  F(ScatterAtomicConfig)                                                                                              \
  F(ScatterSortedConfig)                                                                                              \
  F(SelectConfig)                                                                                                     \
  F(CpuGemmConfig)                                                                                                    \
  F(CpuGemvConfig)                                                                                                    \
  F(CpuConvConfig)                                                                                                    \
  F(CpuWinogradConfig)                                                                                                \
  F(CpuPlanarConfig)                                                                                                  \
  F(CudaWindowConfig)                                                                                                 \
  F(RegisterTiledWindowConfig)                                                                                        \
  F(RegisterRingWindowConfig)                                                                                         \
  F(PlanarWindowConfig)                                                                                               \
  F(CudaAttentionConfig) F(CpuAttentionConfig) F(CpuBackToBackConfig) F(WgmmaConfig) F(WgmmaIm2colConfig)             \
      F(WgmmaGatherConfig) F(ClusterSplitKConfig) F(GatherSplitKConfig) F(Im2colSplitKConfig) F(MisalignedConfig)     \
          F(MmaConfig) F(SimtConfig) F(MfmaConfig) F(WmmaConfig) F(SkinnyConfig) F(UnalignedConfig)                   \
              F(RegisterDirectConfig) F(PackedConfig) F(KReductionConfig) F(CudaBackToBackConfig) F(WgmmaWgradConfig) \
                  F(DepthwiseWgradConfig)

// One of the structs above: its family and its members. Copies share the immutable value. The class is not a
// std::variant, because the code that copies and compares so many types would be a tenth of the code of each
// translation unit that uses Config.
class Choice {
 public:
  Choice() = default;  // a NoChoice without a name
  template <typename C>
  requires requires(C& c) { C::fields(c, c); }
  Choice(C c);

  // The value if its type is T or derived from T, else null.
  template <typename T>
  const T* get() const;

  bool operator==(const Choice& other) const;

 private:
  friend struct ChoiceReader;
  struct Value;
  std::shared_ptr<const Value> value_;
};

// The choices for a kernel, separate from the kernel's computation. They are made by the tuner or by the cost model.
struct Config {
  Choice choice;
  int64_t tasks = 0;        // tasks of the outer loop; blocks of a grid
  std::string reason = {};  // why the cost model chose this configuration, with its numbers
  double predicted_us = 0;  // time predicted by the cost model; 0: no prediction

  // The choice if its type is T or derived from T, else null.
  template <typename T>
  const T* get() const {
    return choice.get<T>();
  }
  // The choice, which must be a T.
  template <typename T>
  const T& as() const;
};

// The name of the choice's family, such as "wgmma"; "" for stitch kernels.
std::string_view family_of(const Config& config);

// A text that identifies a configuration of a problem: the family, and the members that differ from their initial
// values. For example "direct rows=4 tile_n=64 micro_m=14 micro_n=32". The reason is not included.
std::string name_of(const Config& config);
// The part of name_of() that describes the tile.
std::string tile_name(const Config& config);
// Parses a result of name_of(). nullopt if the text is invalid.
std::optional<Choice> parse_choice(std::string_view name);

template <typename T>
const T& Config::as() const {
  const T* found = get<T>();
  HEDDLE_CHECK(found != nullptr, "\"{}\" is read as a configuration of \"{}\"", name_of(*this), T::kName);
  return *found;
}

}  // namespace heddle::schedule
