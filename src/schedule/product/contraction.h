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

// The computation on finished accumulators, as expressions over the output coordinates of a kernel template: batch, row
// and column. The accumulator is local 0. Loads refer to operands of the kernel by index. If the innermost dimension of
// a result has only a part of the columns (heads of an attention), the columns are split: column = col_outer * split +
// col, and vector lanes run along `col`.
struct Epilogue {
  struct Store {
    uint32_t operand;
    Index at;
    ExprId value;
  };
  // A condition 0 <= index < end on elements to be stored. Used if the results are only a part of the template's output
  // (phases of a transposed convolution).
  struct Bound {
    Index index;
    int64_t end;
  };
  // GPU only: reduces groups of ir::kPartialColumns neighbours in a row, or of ir::kPartialRows neighbours in a column.
  // Each group gives one f32.
  struct Reduction {
    uint32_t operand;
    std::string kind;  // "sum", "prod", "max", "min"
    bool rows;         // True: groups of neighbours in a column. False: groups of neighbours in a row.
    Index at;          // the result's index; here `row` (or an unsplit `col`) is the index of the group
    ExprId value;      // the value to reduce
  };
  // Combines the two columns of a pair. Only for GPUs, if the columns of B form pairs (ir/analysis/gated_product.h) and
  // each pair gives one column of D. In `value`, locals 1 and 2 are the accumulated sums of the pair's first and second
  // column. The result of `value` is the accumulator (local 0 of the other expressions). `col` is a column of D.
  struct Gate {
    ExprId value;
    DType sums;
  };
  ExprPool pool;
  VarId batch = 0, row = 0, col_outer = 0, col = 0;
  int64_t split = 0;        // the extent of `col`: all columns if they are not split
  bool along_rows = false;  // True: lanes run along `row`. False: lanes run along `col`.
  // Convolutions on a CPU only: the number of neighbouring columns whose values are neighbouring results in a row of
  // outputs. If this number is above 1, `batch` is the index of a row of outputs, `row` the index of a result in that
  // row (with the extents `results`), and `col` the index of a group of columns.
  int64_t interleaved = 1;
  bool panel_phases = false;  // True if each of the interleaved columns has separate panels.
  std::array<int64_t, 2> results = {0, 0};
  DType accumulator = DType::kF32;
  std::vector<Store> stores;  // may be empty if there are reductions
  std::vector<Reduction> reductions;
  std::optional<Gate> gate;
  std::vector<Bound> bounds;  // an element is loaded and stored only if it satisfies all bounds

  // The values of the stores, of the reductions, and of the gate.
  std::vector<ExprId> values() const;
  // True if a vector may have both elements that satisfy the bounds and elements that do not. Only a part of such a
  // vector is stored.
  bool bounds_lanes() const;
  VarId lane() const { return along_rows ? row : col; }
};

// The coefficients c of an index of the form batch * c[0] + row * c[1] + column * c[2] + c[3]; nullopt if the index
// does not have this form.
std::optional<std::array<int64_t, 4>> affine_place(const Epilogue& epilogue, const Index& at);

// The words of small elements whose products a CPU kernel adds in 32 bits (tile/kernel/cpu/words.h).
enum class Words : uint8_t { kNone, kBytes, kShorts, kBfloats };
// The number of elements of a word; 1 for kNone.
int64_t elements_of(Words words);
// The type of a word's elements, in A (the image) and in B (the filters).
DType element_of(Words words, bool is_a);

// The source of a GEMM operand. The forms are those of tile/kernel/cpu/gemm.h.
struct GemmOperand {
  enum class Form : uint8_t { kDirect, kCopied, kComputed, kPacked, kBits };
  Form form = Form::kDirect;
  uint32_t operand = 0;
  DType dtype = DType::kF32;
  int64_t offset = 0;
  int64_t batch[tile::kBatchDims] = {0, 0, 0, 0};
  int64_t row = 0, col = 0;  // strides: for A, of row and k; for B, of k and column
  // kComputed only: the element as an expression over `vars`. For A, these are (batch, row, k); for B, (batch, k,
  // column).
  ExprId element = 0;
  VarId vars[3] = {0, 0, 0};
};

struct GemmDesc {
  tile::GemmShape shape;  // The blocking members are unset here; the Config has the blocking. `k` is in words.
  GemmOperand a, b;
  Words words = Words::kNone;
  int64_t terms = 0;                    // the elements along k
  std::optional<PackedWeights> packed;  // if b has the form kBits
  ExprPool pool;                        // the expressions of computed operands
};

struct ConvDesc {
  tile::ConvShape shape;  // The blocking members are unset here; the Config has the blocking. `c` is in words.
  Words words = Words::kNone;
  int64_t channels = 0;  // the input channels of a group
  DType x = DType::kF32, w = DType::kF32;
  bool direct = false;               // True if the kernel can read the input in place.
  bool planar = false;               // True if the image is channels-first; lanes then run along pixels.
  std::vector<tile::ConvTaps> taps;  // for each panel of each group; empty: every panel uses all taps
  // The offset and the strides of the input, in elements. Views in a prologue may have changed them.
  int64_t offset = 0, batch = 0, stride[3] = {0, 0, 0}, channel = 1;
};

// A 3x3 convolution by the Winograd algorithm F(4x4, 3x3), in f32 or, if a word of the shape has two elements, in
// 16-bit integers with exact sums of 32 bits.
struct WinogradDesc {
  tile::WinogradShape shape;  // The blocking members are unset here; the Config has the blocking.
  DType x = DType::kF32;
  int64_t offset = 0;  // the offset of the images in their operand
};

// A depthwise convolution (if `filters`) or pooling.
struct WindowDesc {
  tile::WindowShape shape;
  DType x = DType::kF32, w = DType::kF32;
  Words words = Words::kNone;  // of channels
  int64_t offset = 0;          // the offset of the images in their operand
  bool filters = false;
  uint32_t filter_operand = 1;
  bool packed = true;  // True: filters are stored as [tap][channel]. False: as [channel][tap] (GPU only).
  std::string kind;    // for pooling: "sum", "prod", "max", "min"
  // True if lanes run along rows. For pooling on a CPU, these are rows of (pixel, channel)
  // (tile/kernel/cpu/window_rows.h). On a GPU, they are rows of single-channel images
  // (tile/kernel/cuda/window/planar.h), and each of `channels` neighbouring images has its own filters.
  bool rows = false;
  int64_t channels = 1;
};

// Packs filters that are not constants into panels, at run time. The filters are the only input and are dense.
struct PackDesc {
  DType dtype = DType::kF32;
  tile::PanelSource source;
  int64_t offset = 0, width = 0;
};

// The operands of the kernel are, in order: a (the image), b (the filters; absent for pooling), the operands that the
// epilogue loads, and the results.
struct ContractionDesc {
  DType compute = DType::kF32;  // f32, f64, i32, i64
  std::variant<GemmDesc, ConvDesc, WinogradDesc, WindowDesc, PackDesc, Product> problem;
  Epilogue epilogue;  // for all problems except PackDesc
  // So many equal products over different operands in one launch on a GPU. The operands of the first one are followed
  // by those of the second one, and so on. `problem` and `epilogue` refer to those of the first one.
  int copies = 1;

  // The problem if its type is Problem, else null.
  template <typename Problem>
  const Problem* get() const {
    return std::get_if<Problem>(&problem);
  }
  // Calls the one of `functions` that accepts the problem's type.
  template <typename... Functions>
  auto visit(Functions... functions) const {
    return std::visit(Overloaded<Functions...>{std::move(functions)...}, problem);
  }
};

// Schedules one contraction group as kernels. passes/fusion/README.md specifies the groups. `configs` has the same
// meaning as in schedule(). Throws kUnsupportedOperator.
ScheduledGroup schedule_contraction(const ir::Graph& graph, const ir::Group& group, const Target& target,
                                    ConfigSource* configs = nullptr);

// True if `node` can be the anchor of a contraction group. Otherwise sets `*reason`.
bool can_compile_contraction(const ir::Graph& graph, const ir::Node& node, std::string* reason);

}  // namespace heddle::schedule
