#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "schedule/expr/expr.h"
#include "schedule/kernel_desc.h"
#include "schedule/product/cuda/desc.h"
#include "tile/core/shape.h"
#include "tile/core/winograd.h"

namespace heddle::schedule {

// Computation on finished accumulators: expressions over the output coordinates of a template (batch, row, column). The
// accumulator itself is local 0. Loads name operands of the kernel by position. If the innermost dimension of a result
// is only a part of the columns (heads of an attention), col = outer * split + inner, and lanes run along `inner`.
struct Epilogue {
  struct Store {
    uint32_t operand;
    Index at;
    ExprId value;
  };
  // Set if the results are only a part of the template's output (phases of a transposed convolution).
  struct Bound {
    Index index;
    int64_t end;
  };
  // On a GPU: reduces ir::kPartialColumns neighbours of a row, or ir::kPartialRows of a column, to one f32.
  struct Reduction {
    uint32_t operand;
    std::string kind;  // "sum", "prod", "max", "min"
    bool rows;         // neighbours of a column, else of a row
    Index at;          // `row` (`col` if not split) counts groups of neighbours in it
    ExprId value;      // the reduced value
  };
  // On a GPU, if columns of B come in pairs (ir/analysis/gated_product.h) and each pair makes one column of D. Locals 1
  // and 2 are the sums of a pair; the accumulator (local 0) is computed from them. `col` counts columns of D.
  struct Gate {
    ExprId value;
    DType sums;
  };
  ExprPool pool;
  VarId batch = 0, row = 0, col_outer = 0, col = 0;
  int64_t split = 0;        // extent of `col`; all columns if they are not split
  bool along_rows = false;  // lanes run along rows, else along columns
  // For a convolution on a CPU: if above 1, this many neighbouring columns are neighbouring results of a row. Then
  // `batch` counts rows of outputs, `row` the results of a row (there are `results`), and `col` groups of columns.
  int64_t interleaved = 1;
  bool panel_phases = false;  // each of the interleaved columns has its own panels
  std::array<int64_t, 2> results = {0, 0};
  DType accumulator = DType::kF32;
  std::vector<Store> stores;  // may be empty if there are reductions
  std::vector<Reduction> reductions;
  std::optional<Gate> gate;
  std::vector<Bound> bounds;  // nothing is loaded or stored unless all indices lie in [0, end)

  // The values of the stores and reductions, and that of the gate, from which the accumulator is computed.
  std::vector<ExprId> values() const;
  // True if a bound may cut through a vector, so that only some of its lanes are stored.
  bool bounds_lanes() const;
  VarId lane() const { return along_rows ? row : col; }
};

// An index as batch * [0] + row * [1] + column * [2] + [3]; nullopt if it does not have this form.
std::optional<std::array<int64_t, 4>> affine_place(const Epilogue& epilogue, const Index& at);

// The source of a GEMM operand, in the terms of tile/kernel/cpu/gemm.h.
struct GemmOperand {
  enum class Form : uint8_t { kDirect, kCopied, kComputed, kPacked };
  Form form = Form::kDirect;
  uint32_t operand = 0;
  DType dtype = DType::kF32;
  int64_t offset = 0;
  int64_t batch[tile::kBatchDims] = {0, 0, 0, 0};
  int64_t row = 0, col = 0;  // A: row and k; B: k and column
  // kComputed: the element as an expression, for A over (batch, row, k), for B over (batch, k, column).
  ExprId element = 0;
  VarId vars[3] = {0, 0, 0};
};

struct GemmDesc {
  tile::GemmShape shape;  // without blocking
  GemmOperand a, b;
  ExprPool pool;  // of computed operands
};

struct ConvDesc {
  tile::ConvShape shape;  // without blocking
  DType x = DType::kF32, w = DType::kF32;
  bool direct = false;               // the input can be read in place
  bool planar = false;               // the image has the channels first, and lanes run along its pixels
  std::vector<tile::ConvTaps> taps;  // for each panel of each group; empty: all taps
  // Location of the input, in elements: a prologue may have changed it.
  int64_t offset = 0, batch = 0, stride[3] = {0, 0, 0}, channel = 1;
};

// 3x3 convolution through F(4x4, 3x3).
struct WinogradDesc {
  tile::WinogradShape shape;  // without blocking
  DType x = DType::kF32;
  int64_t offset = 0;  // of the images in their operand
};

// Depthwise convolution (`filters`) or pooling.
struct WindowDesc {
  tile::WindowShape shape;
  DType x = DType::kF32, w = DType::kF32;
  int64_t offset = 0;  // of the images in their operand
  bool filters = false;
  uint32_t filter_operand = 1;
  bool packed = true;  // filters are stored [tap][channel]; else [channel][tap] (GPU only)
  std::string kind;    // pooling: "sum", "prod", "max", "min"
  // Lanes run along a row. Pooling on a CPU: of (pixel, channel) (tile/kernel/cpu/window_rows.h). On a GPU: of images
  // of one channel (tile/kernel/cuda/window/planar.h), where each of `channels` neighbouring images has its own
  // filters.
  bool rows = false;
  int64_t channels = 1;
};

// Packs an operand that is constant-like but not a constant. Its one input is dense.
struct PackDesc {
  DType dtype = DType::kF32;
  tile::PanelSource source;
  int64_t offset = 0, width = 0;
};

// Operands, in order: a (image), b (filters; absent for pooling), the loads of the epilogue, results.
struct ContractionDesc {
  DType compute = DType::kF32;  // f32, f64, i32, i64
  std::variant<GemmDesc, ConvDesc, WinogradDesc, WindowDesc, PackDesc, Product> problem;
  Epilogue epilogue;  // of all but packing
};

// Schedules one contraction group (the contract is in passes/fusion/README.md) as kernels; `configs` as in schedule().
// Throws kUnsupportedOperator.
ScheduledGroup schedule_contraction(const ir::Graph& graph, const ir::Group& group, const Target& target,
                                    ConfigSource* configs = nullptr);

// True if `node` can be the anchor of a contraction group.
bool can_compile_contraction(const ir::Graph& graph, const ir::Node& node, std::string* reason);

}  // namespace heddle::schedule
