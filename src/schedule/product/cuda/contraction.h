#pragma once

#include <string>
#include <vector>

#include "schedule/product/contraction_builder.h"
#include "schedule/product/cuda/tile.h"
#include "schedule/product/cuda/wgmma/wgmma.h"

namespace heddle::schedule {

// The reason why a GPU kernel cannot compute a product or window, for example since it counts rows, columns and tiles
// in 32 bits. Empty: it can.
std::string cuda_contraction_obstacle(const ir::Graph& graph, const ir::Node& node);

// The reason why a placement is slow: it reduces the alignment of a value's rows. Empty: it does not.
std::string cuda_placement_cost(const ir::TensorType& type, const ir::Placement& place);

// Schedules contraction groups on a GPU; schedule_contraction() calls these for GPU targets.
ScheduledGroup schedule_cuda_contraction(ContractionBuilder& builder);
ScheduledGroup schedule_cuda_dot(ContractionBuilder& builder);
ScheduledGroup schedule_cuda_conv(ContractionBuilder& builder);
ScheduledGroup schedule_cuda_window(ContractionBuilder& builder);

// A contraction as a product, for kernels with more than one. Operands and epilogue are in the builder.
struct CudaProduct {
  ContractionBuilder builder;
  Product product;
  std::string label;  // without the epilogue
  double operations;
};
// Throws kUnsupportedOperator for depthwise convolutions and windows.
CudaProduct cuda_product(const ContractionBuilder& builder);
CudaProduct cuda_dot_product(const ContractionBuilder& builder);
CudaProduct cuda_conv_product(const ContractionBuilder& builder);

// All configurations of all families for a product, the fastest by the model first. Those that cannot run come last,
// each with its reason. Throws kUnsupportedType for types without arithmetic.
std::vector<CudaCandidate> cuda_candidates(const ProductTask& task, const CudaTarget& target);

// The configuration that the model prefers, with its prediction; operands and epilogue are in the builder.
Config fastest_config(ContractionBuilder& builder, const Product& product);

// Peak operations per second of a whole device for this kind of product.
double cuda_peak(const ContractionDesc& desc, const CudaTarget& target);

// Chooses the configuration and finishes a kernel. Operands and epilogue are in the builder.
ScheduledGroup finish_cuda_gemm(ContractionBuilder& builder, Product desc, std::string label, double operations);

// The same for windows; `coordinates` as in ContractionBuilder::make_epilogue().
ScheduledGroup finish_cuda_window(ContractionBuilder& builder, WindowDesc desc, std::string label, double operations,
                                  const ContractionBuilder::Coordinates& coordinates);

// The launch of a window kernel, with one thread per item and without the epilogue's arguments.
CudaLaunch plan_launch(const WindowDesc& window, const Config& config);

// Sets the multiplied types for a node's operands: their own if both are the same 16-bit float or both 8-bit integers,
// else `compute`.
void set_multiply(Product& product, const ir::Graph& graph, const ir::Node& node, DType compute);
// The loops (batch, line, k) of an operand with `lines` lines that is computed element by element.
std::vector<Index> loops_of(OperandView& operand, Product& product, int64_t lines);

// The elements of `source` (n: rows, outer and inner: k), per group, as rows of `pitch` elements. Padding is zero.
Packing rows_packing(const tile::PanelSource& source, int64_t offset, int64_t pitch);

}  // namespace heddle::schedule
