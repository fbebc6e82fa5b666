#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/product/contraction_builder.h"
#include "schedule/product/cuda/tile.h"
#include "schedule/product/cuda/wgmma/wgmma.h"

namespace heddle::schedule {

// The reason why a GPU kernel cannot compute a product or window; empty if it can. One reason is that kernels count
// rows, columns and tiles in 32 bits.
std::string cuda_contraction_obstacle(const ir::Graph& graph, const ir::Node& node);

// The reason why storing a value at a placement would be slow: the placement reduces the alignment of the value's rows.
// Empty if storing would not be slow.
std::string cuda_placement_cost(const ir::TensorType& type, const ir::Placement& place);

// Schedule contraction groups on a GPU. schedule_contraction() calls these functions for GPU targets.
ScheduledGroup schedule_cuda_contraction(ContractionBuilder& builder);
ScheduledGroup schedule_cuda_dot(ContractionBuilder& builder);
ScheduledGroup schedule_cuda_conv(ContractionBuilder& builder);
ScheduledGroup schedule_cuda_window(ContractionBuilder& builder);

// A contraction as a product, for kernels that compute several contractions. `builder` has the contraction's operands
// and epilogue.
struct CudaProduct {
  ContractionBuilder builder;
  Product product;
  std::string label;  // the kernel's label without the epilogue
  double operations;
};
// Throws kUnsupportedOperator for depthwise convolutions and windows.
CudaProduct cuda_product(const ContractionBuilder& builder);
CudaProduct cuda_dot_product(const ContractionBuilder& builder);
CudaProduct cuda_conv_product(const ContractionBuilder& builder);

// All configurations of all families for a product, in the order of predicted time. Configurations that cannot run come
// last, each with the reason. Throws kUnsupportedType for types without arithmetic.
std::vector<CudaCandidate> cuda_candidates(const ProductTask& task, const GpuTarget& target);

// True if some family can run a product. The builder must contain operands and epilogue.
bool has_cuda_kernel(ContractionBuilder& builder, const Product& product);
// The configuration with the lowest predicted time, and its prediction. The builder must contain operands and epilogue.
Config fastest_config(ContractionBuilder& builder, const Product& product);

// The peak rate of the whole device for this kind of product, in operations per second.
double cuda_peak(const ContractionDesc& desc, const GpuTarget& target);

// Chooses the configuration and completes the kernel. The builder must contain operands and epilogue.
ScheduledGroup finish_cuda_gemm(ContractionBuilder& builder, Product desc, std::string label, double operations);

// The predicted time of a dot's kernel. packed_dot_us() predicts a kernel that reads packed weights; nullopt if there
// is none.
double cuda_dot_us(const ContractionBuilder& builder);
std::optional<double> packed_dot_us(const ContractionBuilder& builder);

// Like finish_cuda_gemm(), for windows. `coordinates` has the same meaning as in ContractionBuilder::make_epilogue().
ScheduledGroup finish_cuda_window(ContractionBuilder& builder, WindowDesc desc, std::string label, double operations,
                                  const ContractionBuilder::Coordinates& coordinates);

// The launch of a window kernel, with one thread per work item. The epilogue's arguments are not included.
CudaLaunch plan_launch(const WindowDesc& window, const Config& config);

// Sets the types in which a product multiplies a node's two operands. If both operands have the same 16-bit float type,
// or both have 8-bit integer types, these are the operands' own types. Otherwise both types are `compute`.
void set_multiply(Product& product, const ir::Graph& graph, const ir::Node& node, DType compute);
// Creates the loop variables (batch, line, k) of an operand that is computed element by element and has `lines` lines.
std::vector<Index> loops_of(OperandView& operand, Product& product, int64_t lines);

// Returns the packing of the elements of `source` as rows of `pitch` elements, per group. Dimension n of the source is
// the row; outer and inner are k. Padding is zero.
Packing rows_packing(const tile::PanelSource& source, int64_t offset, int64_t pitch);

}  // namespace heddle::schedule
