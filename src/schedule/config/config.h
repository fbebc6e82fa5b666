#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"

namespace heddle::schedule {

// The choices for a kernel: one struct per family of kernels, whose name is kName. `fields` passes each member with its
// name to a visitor; printing, parsing and reflection use only this list. `tile` passes the members that define the
// tile. The fastest configurations of a problem seldom differ in these.
//
// "splits" are parts of k, whose sums a second kernel adds in order.

// A kernel without choices, by its name. GPU stitch kernels have no name.
struct NoChoice {
  std::string name;

  static void tile(auto&, auto&&) {}
  static void fields(auto&, auto&&) {}
  bool operator==(const NoChoice&) const = default;
};

// A loop nest on a CPU: lanes of its vectors.
struct LoopConfig {
  static constexpr std::string_view kName = "";
  int64_t lanes = 1;

  static void tile(auto&, auto&&) {}
  static void fields(auto& c, auto&& f) { f("lanes", c.lanes); }
  bool operator==(const LoopConfig&) const = default;
};

// A scatter of single elements: threads that share a column; threads of a block.
struct ScatterElementsConfig {
  static constexpr std::string_view kName = "scatter_elements";
  int64_t sharers = 1, threads = 0;

  static void tile(auto&, auto&&) {}
  static void fields(auto& c, auto&& f) { f("sharers", c.sharers), f("threads", c.threads); }
  bool operator==(const ScatterElementsConfig&) const = default;
};

// A scatter of slices: rows and columns per warp.
struct ScatterSlicesConfig {
  static constexpr std::string_view kName = "scatter_nd";
  static constexpr int64_t kThreads = 256;  // of a block
  int64_t rows = 0, columns = 0;

  static void tile(auto&, auto&&) {}
  static void fields(auto& c, auto&& f) { f("rows", c.rows), f("columns", c.columns); }
  bool operator==(const ScatterSlicesConfig&) const = default;
};

// A top-k selection: threads of a block. A block processes one column.
struct SelectConfig {
  static constexpr std::string_view kName = "topk";
  int64_t threads = 0;

  static void tile(auto&, auto&&) {}
  static void fields(auto& c, auto&& f) { f("threads", c.threads); }
  bool operator==(const SelectConfig&) const = default;
};

// A product on a CPU: rows of A and columns of B per block; rows and columns of the register tile.
struct CpuGemmConfig {
  static constexpr std::string_view kName = "gemm";
  int64_t tile_m = 0, tile_n = 0, micro_m = 0, micro_n = 0;

  static void tile(auto& c, auto&& f) {
    f("tile_m", c.tile_m), f("tile_n", c.tile_n), f("micro_m", c.micro_m), f("micro_n", c.micro_n);
  }
  static void fields(auto& c, auto&& f) { tile(c, f); }
  bool operator==(const CpuGemmConfig&) const = default;
};
// A product with few rows, limited by memory bandwidth.
struct CpuGemvConfig : CpuGemmConfig {
  static constexpr std::string_view kName = "gemv";
};

// A direct convolution: output rows and filters (columns) per block.
struct CpuConvConfig {
  static constexpr std::string_view kName = "direct";
  int64_t rows = 0, tile_n = 0, micro_m = 0, micro_n = 0;

  static void tile(auto& c, auto&& f) {
    f("rows", c.rows), f("tile_n", c.tile_n), f("micro_m", c.micro_m), f("micro_n", c.micro_n);
  }
  static void fields(auto& c, auto&& f) { tile(c, f); }
  bool operator==(const CpuConvConfig&) const = default;
};

// A convolution by F(4x4, 3x3): 4x4 tiles and filters (columns) per block.
struct CpuWinogradConfig {
  static constexpr std::string_view kName = "winograd";
  int64_t tiles = 0, tile_n = 0, micro_m = 0, micro_n = 0;

  static void tile(auto& c, auto&& f) {
    f("tiles", c.tiles), f("tile_n", c.tile_n), f("micro_m", c.micro_m), f("micro_n", c.micro_n);
  }
  static void fields(auto& c, auto&& f) { tile(c, f); }
  bool operator==(const CpuWinogradConfig&) const = default;
};

// A direct convolution with lanes along pixels: output rows and pixels per block; channels, pixels and rows of the
// register tile.
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

// A window of any shape: channels per thread.
struct CudaWindowConfig {
  static constexpr std::string_view kName = "generic_window";
  static constexpr int64_t kThreads = 256;  // of a block
  int64_t channels = 0;

  static void tile(auto&, auto&&) {}
  static void fields(auto& c, auto&& f) { f("channels", c.channels); }
  bool operator==(const CudaWindowConfig&) const = default;
};

// A window that a thread slides over the image: channels, outputs down and outputs across per thread.
struct RegisterTiledWindowConfig {
  static constexpr std::string_view kName = "register_tiled_window";
  static constexpr int64_t kThreads = 128;  // of a block
  int64_t channels = 0, down = 1, across = 1;

  static void tile(auto&, auto&&) {}
  static void fields(auto& c, auto&& f) { f("channels", c.channels), f("down", c.down), f("across", c.across); }
  bool operator==(const RegisterTiledWindowConfig&) const = default;
};

// A window whose pixels a thread keeps in a ring of registers: channels and outputs across per thread.
struct RegisterRingWindowConfig {
  static constexpr std::string_view kName = "register_ring_window";
  static constexpr int64_t kThreads = 128;  // of a block
  int64_t channels = 0, across = 1;

  static void tile(auto&, auto&&) {}
  static void fields(auto& c, auto&& f) { f("channels", c.channels), f("across", c.across); }
  bool operator==(const RegisterRingWindowConfig&) const = default;
};

// A window over rows of adjacent pixels: outputs per thread, taps of a row that are processed at a time, pixels per
// load.
struct PlanarWindowConfig {
  static constexpr std::string_view kName = "planar_window";
  static constexpr int64_t kThreads = 128;  // of a block
  int64_t across = 1, taps = 1, vector = 1;

  // Pixels of the first load that precede a thread's first pixel, if `low` pixels of a row are padding.
  int64_t lead(int64_t low) const { return (vector - low % vector) % vector; }
  int64_t width() const { return across < 8 ? across : 8; }  // outputs per call of the epilogue
  static void tile(auto&, auto&&) {}
  static void fields(auto& c, auto&& f) { f("across", c.across), f("taps", c.taps), f("vector", c.vector); }
  bool operator==(const PlanarWindowConfig&) const = default;
};

// Attention: warpgroups of 64 rows; keys per tile; buffers of K and V, and of Q; blocks per SM; parts of the keys,
// computed by different blocks; heads whose keys should be in the L2 together.
struct CudaAttentionConfig {
  static constexpr std::string_view kName = "attention";
  int64_t consumers = 1, tile_n = 0, stages = 0, q_stages = 0, blocks = 1, splits = 1, section = 1;
  int64_t panels = 1;     // parts of the columns of V and O: the units of each compute all scores again
  int64_t key_warps = 0;  // few rows: warps of a block that share rows and divide the keys
  bool dynamic = false;   // each block takes the next unit not yet taken
  bool combines = false;  // if keys are split: a second launch adds the parts; else the last block of each row does

  int64_t tile_m() const { return 64 * consumers; }
  static void tile(auto& c, auto&& f) {
    f("consumers", c.consumers), f("tile_n", c.tile_n), f("blocks", c.blocks), f("splits", c.splits);
  }
  static void fields(auto& c, auto&& f) {
    tile(c, f), f("stages", c.stages), f("q_stages", c.q_stages), f("section", c.section), f("dynamic", c.dynamic);
    f("combines", c.combines), f("key_warps", c.key_warps), f("panels", c.panels);
  }
  bool operator==(const CudaAttentionConfig&) const = default;
};

// Attention on a CPU: rows per task, keys per block, rows of the register tile.
struct CpuAttentionConfig {
  static constexpr std::string_view kName = "blocked_attention";
  int64_t tile_m = 0, tile_n = 0, micro_m = 0;

  static void tile(auto& c, auto&& f) { f("tile_m", c.tile_m), f("tile_n", c.tile_n), f("micro_m", c.micro_m); }
  static void fields(auto& c, auto&& f) { tile(c, f); }
  bool operator==(const CpuAttentionConfig&) const = default;
};

// Contractions back to back on a CPU: strips of rows per image, steps per strip.
struct CpuBackToBackConfig {
  static constexpr std::string_view kName = "blocked_back_to_back";
  int64_t strips = 1, steps = 1;

  static void tile(auto& c, auto&& f) { f("strips", c.strips), f("steps", c.steps); }
  static void fields(auto& c, auto&& f) { tile(c, f); }
  bool operator==(const CpuBackToBackConfig&) const = default;
};

// wgmma on operands that TMA loads.
struct WgmmaConfig {
  static constexpr std::string_view kName = "wgmma";
  int tile_m = 128, tile_n = 128, consumers = 2;  // consumers: warpgroups that multiply
  bool ping_pong = false;                         // each warpgroup has its own tile
  bool swapped = false;  // D^T = B^T A^T: the long side of D goes along the instruction's 64 rows
  int stages = 4;
  int cluster_m = 1, cluster_n = 1, splits = 1;
  bool stream_k = false;  // all blocks share the last tiles evenly and pass sums on in order

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
// ... on windows of a convolution, which TMA gathers.
struct WgmmaIm2colConfig : WgmmaConfig {
  static constexpr std::string_view kName = "wgmma_im2col";
};
// ... on operands that threads load.
struct WgmmaGatherConfig : WgmmaConfig {
  static constexpr std::string_view kName = "wgmma_gather";
};

// wgmma for small sides: the blocks of a cluster divide the k of a tile.
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
// ... on operands that threads load.
struct GatherSplitKConfig : ClusterSplitKConfig {
  static constexpr std::string_view kName = "gather_splitk";
};
// ... on windows of a convolution, which TMA gathers.
struct Im2colSplitKConfig : ClusterSplitKConfig {
  static constexpr std::string_view kName = "im2col_splitk";
};
// ... on rows that begin at any address, one class of rows at a time.
struct MisalignedConfig : ClusterSplitKConfig {
  static constexpr std::string_view kName = "misaligned";
};

// mma.sync on tiles in shared memory.
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
// Ordinary arithmetic on the same tiles.
struct SimtConfig : MmaConfig {
  static constexpr std::string_view kName = "simt";
};

// A product with at most eight rows (swapped: columns), the `few` side: each warp has `rows` of the other side.
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

// mma.sync on rows along k with any alignment. Warps and the blocks of a cluster divide the k of a tile.
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

// mma.sync on fragments that lanes load directly from memory. Each of the warps along k processes its share in
// `chunks`.
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

// Few results with a long k: each thread has a sum for every element of a tile. It processes `width` elements of k at a
// time and keeps `chunks` of these in flight.
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

// Two products in a row by mma.sync: `warps_n` warps divide the columns of the first; those of the second come `tile_n`
// at a time.
struct CudaBackToBackConfig {
  static constexpr std::string_view kName = "back_to_back";
  int tile_m = 128, tile_n = 64, tile_k = 32, warps_m = 4, warps_n = 1, stages = 3;
  bool in_registers = false;  // holds the first one's result in registers; else in shared memory

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
#define HEDDLE_CONFIG_FAMILIES(F)                                                                                 \
  F(LoopConfig)                                                                                                   \
  F(ScatterElementsConfig)                                                                                        \
  F(ScatterSlicesConfig)                                                                                          \
  F(SelectConfig)                                                                                                 \
  F(CpuGemmConfig)                                                                                                \
  F(CpuGemvConfig) F(CpuConvConfig) F(CpuWinogradConfig) F(CpuPlanarConfig) F(CudaWindowConfig)                   \
      F(RegisterTiledWindowConfig) F(RegisterRingWindowConfig) F(PlanarWindowConfig) F(CudaAttentionConfig)       \
          F(CpuAttentionConfig) F(CpuBackToBackConfig) F(WgmmaConfig) F(WgmmaIm2colConfig) F(WgmmaGatherConfig)   \
              F(ClusterSplitKConfig) F(GatherSplitKConfig) F(Im2colSplitKConfig) F(MisalignedConfig) F(MmaConfig) \
                  F(SimtConfig) F(SkinnyConfig) F(UnalignedConfig) F(RegisterDirectConfig) F(KReductionConfig)    \
                      F(CudaBackToBackConfig)

// One of the structs above: its family and its members. Copies share the immutable value. This is not a std::variant:
// code to copy and compare so many types would be a tenth of the code of each translation unit that has a Config.
class Choice {
 public:
  Choice() = default;  // a NoChoice without a name
  template <typename C>
  requires requires(C& c) { C::fields(c, c); }
  Choice(C c);

  // The value if it is a T or derived from one, else null.
  template <typename T>
  const T* get() const;

  bool operator==(const Choice& other) const;

 private:
  friend struct ChoiceReader;
  struct Value;
  std::shared_ptr<const Value> value_;
};

// The choices for a kernel, separate from its computation. The tuner may make them, else the cost model does.
struct Config {
  Choice choice;
  int64_t tasks = 0;        // tasks of the outer loop; blocks of a grid
  std::string reason = {};  // why the cost model chose this, with its numbers
  double predicted_us = 0;  // by the cost model; 0: no prediction

  // The choice if it is a T or derived from one, else null.
  template <typename T>
  const T* get() const {
    return choice.get<T>();
  }
  // The choice, which must be a T.
  template <typename T>
  const T& as() const;
};

// The family's name: "wgmma"; "" for stitch kernels.
std::string_view family_of(const Config& config);

// A text that identifies a configuration of a problem, "direct rows=4 tile_n=64 micro_m=14 micro_n=32": the family and
// the members that differ from their initial values. It excludes the reason.
std::string name_of(const Config& config);
// The part of name_of() that describes the tile.
std::string tile_name(const Config& config);
// Parses the text of name_of(); nullopt if it is invalid.
std::optional<Choice> parse_choice(std::string_view name);

template <typename T>
const T& Config::as() const {
  const T* found = get<T>();
  HEDDLE_CHECK(found != nullptr, "\"{}\" is read as a configuration of \"{}\"", name_of(*this), T::kName);
  return *found;
}

}  // namespace heddle::schedule
