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

// The dtype in which a contraction of these operands runs; nullopt where no template does it.
std::optional<DType> contraction_compute(DType a, DType b, DType out);

// Registers of a target as the templates see them.
struct MicroLimits {
  int64_t vector_bytes, rows;
};
MicroLimits micro_limits(const Target& target);

// Columns of a panel of packed weights: one or two vectors, whichever wastes less.
int64_t panel_width(const Target& target, DType compute, int64_t columns);

// The view of an outside value that a prologue makes of an operand.
struct View {
  ir::ValueId value = 0;
  bool affine = false;
  int64_t offset = 0;
  std::vector<int64_t> strides;  // by dimension of the operand, in elements
};

// Collects operands, epilogue and bindings of one kernel of a contraction group.
class ContractionBuilder {
 public:
  // `configs` may be null.
  ContractionBuilder(const ir::Graph& graph, const ir::Group& group, const Target& target, ConfigSource* configs);
  // Another contraction of the same kernel: its operands are added to those of `before`.
  ContractionBuilder(const ContractionBuilder& before, const ir::Group& group);

  const ir::Graph& graph() const { return graph_; }
  const ir::Group& group() const { return group_; }
  const Target& target() const { return target_; }
  ConfigSource* configs() const { return configs_; }
  bool for_any_extents() const { return configs_ != nullptr && configs_->for_any_extents(); }
  // Where kernels are to serve other extents: the candidates behind the form of the cost model's pick that does. What a
  // tuner measured stays as it is.
  std::vector<Config> for_extents(std::vector<Config> candidates, const std::function<Config(Config)>& common) const;
  const ir::Node& anchor() const { return graph_.node(group_.anchor); }
  bool is_input(ir::ValueId value) const;

  // Where the kernel finds a value, or stores it.
  ValueMemory memory_of(ir::ValueId value) const;

  // Operand numbers. The same value in the same layout is one operand.
  uint32_t input(ir::ValueId value, const Packing& packing = {});
  uint32_t workspace(uint32_t index, DType dtype, int64_t elements, Operand::Role role);

  // An operand of the anchor at some indices, through the prologue. The outside value is read as an operand of the
  // kernel, or (`outside` given) stored there and read as buffer 0.
  ExprId inline_operand(ExprPool& pool, ir::ValueId operand, const std::vector<Index>& at, ir::ValueId* outside);
  View view_of(ir::ValueId operand);
  // A value of the epilogue is another one, whatever it is computed from.
  void set_same(ir::ValueId value, ir::ValueId as) { same_[value] = as; }

  // A value that one contraction hands to another one inside of the kernel: it is no operand, and kInner where one is
  // named.
  void set_inner(ir::ValueId value) { inner_ = value; }
  static constexpr uint32_t kInner = UINT32_MAX;

  // Whether the lanes of the epilogue run along rows, else along columns.
  void set_lanes_along_rows(bool rows) { lanes_along_rows_ = rows; }

  void set_run(int64_t columns) { run_ = columns; }  // that are neighbours where they are stored
  // A dot's rows stay those of its first operand, however few columns it has.
  void keep_rows() { keeps_rows_ = true; }
  bool keeps_rows() const { return keeps_rows_; }

  // Builds the epilogue. `coordinates` gives the indices of the anchor's result at (batch, row, column).
  using Coordinates =
      std::function<std::vector<Index>(IndexPool&, const Index& batch, const Index& row, const Index& column)>;
  void make_epilogue(int64_t batches, int64_t rows, int64_t columns, int64_t lanes, const Coordinates& coordinates);
  // The same where `interleaved` neighbouring columns are neighbours of a row (Epilogue::interleaved): `rows` rows of
  // `results` each, `columns` groups of columns. False where that is not how the results lie.
  bool make_interleaved_epilogue(int64_t interleaved, int64_t rows, int64_t results, int64_t columns,
                                 const Coordinates& coordinates);

  ContractionDesc& desc() { return desc_; }
  const std::vector<Operand>& operands() const { return kernel_.operands; }
  // Operations of the epilogue, for the label: " + add, erf".
  std::string epilogue_label() const;
  ScheduledKernel finish(Config config, std::string label, double flops);

 private:
  void add_reduction(const ir::PartialReduction& found, ir::ValueId output, const ir::ResultMatrix& matrix,
                     ExprId value);
  void find_gate();
  uint32_t output(ir::ValueId value);
  bool try_epilogue(int64_t batches, int64_t rows, int64_t columns, int64_t split, const Coordinates& coordinates);
  // Binds what an epilogue reads but does not compute to loads and constants.
  void bind(Inliner& inliner, const std::function<std::optional<ExprId>(ir::ValueId)>& sum_of);

  const ir::Graph& graph_;
  const ir::Group& group_;
  const Target& target_;
  ConfigSource* configs_;
  std::optional<ir::GatedProduct> gate_;  // where the group has all of it
  ContractionDesc desc_;
  KernelDesc kernel_;
  std::vector<Binding> bindings_;
  std::map<std::pair<ir::ValueId, std::vector<int64_t>>, uint32_t> operands_;
  std::map<ir::ValueId, ir::ValueId> same_;
  std::optional<ir::ValueId> inner_;
  bool keeps_rows_ = false, lanes_along_rows_ = false;
  int64_t interleaved_ = 1, run_ = 1;
};

}  // namespace heddle::schedule
