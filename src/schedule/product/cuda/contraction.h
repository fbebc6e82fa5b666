#pragma once

#include <string>
#include <vector>

#include "schedule/product/contraction_builder.h"
#include "schedule/product/cuda/tile.h"
#include "schedule/product/cuda/wgmma/wgmma.h"

namespace heddle::schedule {

// Why the kernel of a product or window cannot serve a node: it counts rows, columns and tiles in 32 bits. Empty: it
// can.
std::string cuda_contraction_obstacle(const ir::Graph& graph, const ir::Node& node);

// Why rows of a value would begin at addresses of less alignment at a place than alone; empty: they would not.
std::string cuda_placement_cost(const ir::TensorType& type, const ir::Placement& place);

// Contraction groups on a GPU; schedule_contraction() comes here for such a target.
ScheduledGroup schedule_cuda_contraction(ContractionBuilder& builder);
ScheduledGroup schedule_cuda_dot(ContractionBuilder& builder);
ScheduledGroup schedule_cuda_conv(ContractionBuilder& builder);
ScheduledGroup schedule_cuda_window(ContractionBuilder& builder);

// A contraction as a product, for kernels that have more than one; operands and epilogue are in the builder.
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

// Every configuration of every family for a product, the fastest by the model first, those that cannot run last, each
// with its reason. Throws kUnsupportedType on types that have no arithmetic.
std::vector<CudaCandidate> cuda_candidates(const ProductTask& task, const CudaTarget& target);

// The configuration that the model prefers, with its prediction; operands and epilogue are in the builder.
Config fastest_config(ContractionBuilder& builder, const Product& product);

// Operations a second of a whole device at this kind of product.
double cuda_peak(const ContractionDesc& desc, const CudaTarget& target);

// Finishes a kernel: operands and epilogue are in the builder. Chooses the configuration.
ScheduledGroup finish_cuda_gemm(ContractionBuilder& builder, Product desc, std::string label, double operations);

// The same for windows; `coordinates` as in ContractionBuilder::make_epilogue().
ScheduledGroup finish_cuda_window(ContractionBuilder& builder, WindowDesc desc, std::string label, double operations,
                                  const ContractionBuilder::Coordinates& coordinates);

// The launch of a window's kernel, one thread an item, without the block of the epilogue.
CudaLaunch plan_launch(const WindowDesc& window, const Config& config);

// What is multiplied for a node's operands: the tensor cores' types where both are one, else what both become.
void set_multiply(Product& product, const ir::Graph& graph, const ir::Node& node, DType compute);
// The loops (batch, line, k) of an operand that is computed element by element, of which there are so many lines.
std::vector<Index> loops_of(OperandView& operand, Product& product, int64_t lines);

// The elements of `source` (n: rows, outer and inner: k) for each group as rows of `pitch` elements, what pads them
// zero.
Packing rows_packing(const tile::PanelSource& source, int64_t offset, int64_t pitch);

}  // namespace heddle::schedule
