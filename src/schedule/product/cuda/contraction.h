#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "schedule/product/contraction_builder.h"
#include "schedule/product/cuda/gemm.h"
#include "schedule/product/cuda/tile.h"

namespace heddle::schedule {

// Contraction groups on a GPU; schedule_contraction() comes here for such a target.
ScheduledGroup schedule_cuda_contraction(ContractionBuilder& builder);
ScheduledGroup schedule_cuda_dot(ContractionBuilder& builder);
ScheduledGroup schedule_cuda_conv(ContractionBuilder& builder);
ScheduledGroup schedule_cuda_window(ContractionBuilder& builder);

// A way to run a product, or why it cannot run that way.
struct CudaCandidate {
  Config config;
  double predicted_us = 0;
  std::string rejected;  // empty: it can
};

// Every instance of every family ("sm90", "sm90w", "sm90v", for small sides "sm90p", "sm90vp" and "sm90c"; those of
// schedule/product/cuda/engine.h) for a product, the fastest by the model first, those that cannot run last, each with
// its reason.
std::vector<CudaCandidate> cuda_candidates(const CudaGemmDesc& desc, const Epilogue& epilogue,
                                           const std::vector<Operand>& operands, const Target& target);

// A product as TMA and wgmma see it; nullopt where they cannot, and `why` says so. Its D is the epilogue's
// first result where that is a matrix that TMA writes, else it has none (epilogue_stores).
std::optional<CudaGemmProblem> sm90_problem(const CudaGemmDesc& desc, const Epilogue& epilogue,
                                            const std::vector<Operand>& operands, std::string* why);
// The same with operands that threads load ("sm90v"); nullopt where wgmma does not multiply the types.
std::optional<CudaGemmProblem> sm90_views_problem(const CudaGemmDesc& desc, const Epilogue& epilogue,
                                                  const std::vector<Operand>& operands, std::string* why);
// The same with the windows of a convolution ("sm90w"); nullopt where TMA does not gather them.
std::optional<CudaGemmProblem> sm90_windows_problem(const CudaGemmDesc& desc, const Epilogue& epilogue,
                                                    const std::vector<Operand>& operands, std::string* why);
CudaGemmConfig sm90_config(const Config& config, const CudaGemmProblem& problem);

// An index as batch * [0] + row * [1] + column * [2] + [3]; nullopt where it is none such.
std::optional<std::array<int64_t, 4>> affine_place(const Epilogue& epilogue, const Index& at);

// The same as the kernels over views see it. Its operands say what the model needs; those of form kImage are complete,
// the others get their text and block from code generation.
CudaTileProblem tile_problem(const CudaGemmDesc& desc, const Epilogue& epilogue, const std::vector<Operand>& operands);
CudaTileConfig tile_config(const Config& config);

// Operations a second of a whole device at this kind of product.
double cuda_peak(const ContractionDesc& desc, const CudaTarget& target);

// Finishes a kernel: operands and epilogue are in the builder. Chooses the configuration.
ScheduledGroup finish_cuda_gemm(ContractionBuilder& builder, CudaGemmDesc desc, std::string label, double operations);

// The same for windows; `coordinates` as in ContractionBuilder::make_epilogue().
ScheduledGroup finish_cuda_window(ContractionBuilder& builder, WindowDesc desc, std::string label, double operations,
                                  const ContractionBuilder::Coordinates& coordinates);

// The elements of `source` (n: rows, outer and inner: k) for each group as rows of `pitch` elements, what pads them
// zero.
Packing rows_packing(const tile::PanelSource& source, int64_t offset, int64_t pitch);

}  // namespace heddle::schedule
