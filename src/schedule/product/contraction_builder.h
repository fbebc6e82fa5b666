#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/analysis/gated_product.h"
#include "ir/analysis/partial_reduction.h"
#include "schedule/config/config_source.h"
#include "schedule/expr/inline.h"
#include "schedule/expr/memory.h"
#include "schedule/product/contraction.h"

namespace heddle::schedule {

// The dtype in which a contraction with these operand and result types is computed. nullopt if no template supports the
// types.
std::optional<DType> contraction_compute(DType a, DType b, DType out);

// The words in which a CPU multiplies operands of these types. kNone if it has no instructions for them.
Words words_for(DType a, DType b, const Target& target);

// The operands' types for the label of a product of small integers: " u8 x i8"; empty for others.
std::string words_label(Words words, DType a, DType b);

// The registers of a target that the templates may use: the vector size, and the rows of a register tile.
struct MicroLimits {
  int64_t vector_bytes, rows;
};
MicroLimits micro_limits(const Target& target);

// True if products of these words with `rows` rows of A use the target's matrix registers
// (tile/kernel/cpu/micro_matrix.h).
bool uses_matrices(const Target& target, Words words, int64_t rows);
// The most rows of their register tiles.
int64_t micro_rows(const Target& target, Words words, int64_t rows);

// The number of columns in a panel of packed weights: one or two vectors, whichever leaves fewer columns unused.
int64_t panel_width(const Target& target, DType compute, int64_t columns);

// The result of a prologue as a view of the value that the prologue reads from outside of the group, or of packed
// weights, as if their integers were floats in memory.
struct View {
  ir::ValueId value = 0;
  bool affine = false;
  int64_t offset = 0;
  std::vector<int64_t> strides;  // by dimension of the operand, in elements
};

// Collects the operands, the epilogue and the bindings of one kernel of a contraction group.
class ContractionBuilder {
 public:
  // `configs` may be null.
  ContractionBuilder(const ir::Graph& graph, const ir::Group& group, const Target& target, ConfigSource* configs);
  // A builder for another contraction of the same kernel. Its operands are added to the operands of `before`.
  ContractionBuilder(const ContractionBuilder& before, const ir::Group& group);

  const ir::Graph& graph() const { return graph_; }
  const ir::Group& group() const { return group_; }
  const Target& target() const { return target_; }
  ConfigSource* configs() const { return configs_; }
  bool for_any_extents() const { return configs_ != nullptr && configs_->for_any_extents(); }
  // If kernels should also support other extents, inserts common(c) in front of the candidates, where c is the first
  // candidate (the choice of the cost model). A choice that a tuner measured is not changed.
  std::vector<Config> for_extents(std::vector<Config> candidates, const std::function<Config(Config)>& common) const;
  const ir::Node& anchor() const { return graph_.node(group_.anchor); }
  bool is_input(ir::ValueId value) const;

  // The memory in which the kernel reads or stores a value.
  ValueMemory memory_of(ir::ValueId value) const;

  // Adds an input and returns its operand number. Adding a value again with the same layout returns the same number.
  uint32_t input(ir::ValueId value, const Packing& packing = {});
  uint32_t workspace(uint32_t index, DType dtype, int64_t elements, Operand::Role role);

  // Returns the expression for the element at indices `at` of an operand of the anchor. The ops of the prologue are
  // inlined into it. Each value that they read from outside of the group becomes an operand of the kernel. If `outside`
  // is not null, the value's id is instead stored in *outside, and the expression reads the value as buffer 0.
  ExprId inline_operand(ExprPool& pool, ir::ValueId operand, const std::vector<Index>& at, ir::ValueId* outside);
  View view_of(ir::ValueId operand);
  // Makes the epilogue use the value `as` in place of `value`.
  void set_same(ir::ValueId value, ir::ValueId as) { same_[value] = as; }

  // Sets the value that one contraction passes to another inside the kernel. Its operand number is kInner.
  void set_inner(ir::ValueId value) { inner_ = value; }
  static constexpr uint32_t kInner = UINT32_MAX;

  // Sets the direction of the epilogue's lanes: along rows if `rows` is true, else along columns.
  void set_lanes_along_rows(bool rows) { lanes_along_rows_ = rows; }

  void set_run(int64_t columns) { run_ = columns; }  // the number of columns that are adjacent in memory when stored
  // Keeps the rows of a dot's first operand as the rows of the product, even if the dot has few columns.
  void keep_rows() { keeps_rows_ = true; }
  bool keeps_rows() const { return keeps_rows_; }

  // Builds the epilogue. `coordinates` returns the indices of the anchor's result at (batch, row, column).
  using Coordinates =
      std::function<std::vector<Index>(IndexPool&, const Index& batch, const Index& row, const Index& column)>;
  void make_epilogue(int64_t batches, int64_t rows, int64_t columns, int64_t lanes, const Coordinates& coordinates);
  // Like make_epilogue(), if each group of `interleaved` columns holds neighbouring results of one row
  // (Epilogue::interleaved). There are `rows` rows with `results` results each, and `columns` groups of columns.
  // Returns false if the results do not have this layout.
  bool make_interleaved_epilogue(int64_t interleaved, int64_t rows, int64_t results, int64_t columns,
                                 const Coordinates& coordinates);

  ContractionDesc& desc() { return desc_; }
  const std::vector<Operand>& operands() const { return kernel_.operands; }
  // The operations of the epilogue, for the kernel's label: " + add, erf".
  std::string epilogue_label() const;
  ScheduledKernel finish(Config config, std::string label, double flops);

 private:
  void add_reduction(const ir::PartialReduction& found, ir::ValueId output, const ir::ResultMatrix& matrix,
                     ExprId value);
  void find_gate();
  uint32_t output(ir::ValueId value);
  bool try_epilogue(int64_t batches, int64_t rows, int64_t columns, int64_t split, const Coordinates& coordinates);
  // Replaces the values that the epilogue reads, but does not compute, by loads and constants.
  void bind(Inliner& inliner, const std::function<std::optional<ExprId>(ir::ValueId)>& sum_of);

  const ir::Graph& graph_;
  const ir::Group& group_;
  const Target& target_;
  ConfigSource* configs_;
  std::optional<ir::GatedProduct> gate_;  // set if the group contains the whole gated product
  ContractionDesc desc_;
  KernelDesc kernel_;
  std::vector<Binding> bindings_;
  std::map<std::pair<ir::ValueId, std::vector<int64_t>>, uint32_t> operands_;
  std::map<ir::ValueId, ir::ValueId> same_;
  std::optional<ir::ValueId> inner_;
  bool keeps_rows_ = false, lanes_along_rows_ = false;
  int64_t interleaved_ = 1, run_ = 1;
};

// True if the group contains the `dequantize` node of a value, whose operands the kernel can read in packed form.
bool has_packed_weights(const ContractionBuilder& builder, ir::ValueId value);

}  // namespace heddle::schedule
