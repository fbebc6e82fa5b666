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

// What happens to a finished accumulator: expressions over the output coordinates of a template (batch, row, column).
// The accumulator itself is local 0. Loads name operands of the kernel by position. Where the innermost dimension of a
// result is a part of the columns (heads of an attention), col = outer * split + inner and lanes run along `inner`.
struct Epilogue {
  struct Store {
    uint32_t operand;
    Index at;
    ExprId value;
  };
  // Where the results are a part of what a template computes (of the phases of a transposed convolution).
  struct Bound {
    Index index;
    int64_t end;
  };
  // On a GPU: ir::kPartialColumns neighbours of a row, or ir::kPartialRows of a column, become one f32.
  struct Reduction {
    uint32_t operand;
    std::string kind;  // "sum", "prod", "max", "min"
    bool rows;         // neighbours of a column, else of a row
    Index at;          // where `row` (`col`, where that is not split) counts the groups of neighbours
    ExprId value;      // what is reduced
  };
  // On a GPU, where columns of B come in pairs (ir/analysis/gated_product.h) of which each makes one of D: the
  // accumulator is what the sums of a pair, local 1 and local 2, become. `col` counts columns of D.
  struct Gate {
    ExprId value;
    DType sums;
  };
  ExprPool pool;
  VarId batch = 0, row = 0, col_outer = 0, col = 0;
  int64_t split = 0;        // extent of `col`; the columns where they are not split
  bool along_rows = false;  // lanes run along rows, else along columns
  // Of a convolution on a CPU, where above 1: so many neighbouring columns are neighbouring results of a row. `batch`
  // counts rows of outputs then, `row` results of one, of which `results` are there, and `col` such groups of columns.
  int64_t interleaved = 1;
  std::array<int64_t, 2> results = {0, 0};
  DType accumulator = DType::kF32;
  std::vector<Store> stores;  // may be empty where there are reductions
  std::vector<Reduction> reductions;
  std::optional<Gate> gate;
  std::vector<Bound> bounds;  // nothing is loaded or stored unless all indices lie in [0, end)

  // What is computed from the accumulators, and what these are computed from.
  std::vector<ExprId> values() const;
  // Whether some lanes of a vector are within the bounds and others are not.
  bool bounds_lanes() const;
  VarId lane() const { return along_rows ? row : col; }
};

// An index as batch * [0] + row * [1] + column * [2] + [3]; nullopt where it is none such.
std::optional<std::array<int64_t, 4>> affine_place(const Epilogue& epilogue, const Index& at);

// Where an operand of a GEMM comes from, in the vocabulary of tile/kernel/cpu/gemm.h.
struct GemmOperand {
  enum class Form : uint8_t { kDirect, kCopied, kComputed, kPacked };
  Form form = Form::kDirect;
  uint32_t operand = 0;
  DType dtype = DType::kF32;
  int64_t offset = 0;
  int64_t batch[tile::kBatchDims] = {0, 0, 0, 0};
  int64_t row = 0, col = 0;  // A: row and k; B: k and column
  // kComputed: the element as an expression; A over (batch, row, k), B over (batch, k, column).
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
  bool direct = false;  // the input can be read where it lies
  bool planar = false;  // the image has the channels first, and lanes run along its pixels
  // Where the input lies, in elements: a prologue may have changed it.
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
  bool packed = true;  // filters lie [tap][channel], else [channel][tap] (on a GPU only)
  std::string kind;    // pooling: "sum", "prod", "max", "min"
  // Lanes run along a row: of pooling on a CPU (pixel, channel) (tile/kernel/cpu/window_rows.h), on a GPU of images of
  // one channel (tile/kernel/cuda/window/planar.h), where the filters of `channels` neighbouring images differ.
  bool rows = false;
  int64_t channels = 1;
};

// Writes a constant-like operand that is not a constant in packed form; its one input is dense.
struct PackDesc {
  DType dtype = DType::kF32;
  tile::PanelSource source;
  int64_t offset = 0, width = 0;
};

// Operands are: a (image), b (filters; absent for pooling), what the epilogue loads, results.
struct ContractionDesc {
  DType compute = DType::kF32;  // f32, f64, i32, i64
  std::variant<GemmDesc, ConvDesc, WinogradDesc, WindowDesc, PackDesc, Product> problem;
  Epilogue epilogue;  // of all but packing
};

// One contraction group (the contract is in passes/fusion/README.md) as kernels; `configs` as in schedule(). Throws
// kUnsupportedOperator.
ScheduledGroup schedule_contraction(const ir::Graph& graph, const ir::Group& group, const Target& target,
                                    ConfigSource* configs = nullptr);

// Whether `node` can be the anchor of a contraction group.
bool can_compile_contraction(const ir::Graph& graph, const ir::Node& node, std::string* reason);

}  // namespace heddle::schedule
