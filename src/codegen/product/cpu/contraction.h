#pragma once

#include "codegen/codegen.h"
#include "codegen/text/writer.h"
#include "schedule/product/contraction.h"

namespace heddle::codegen {

// True if the kernel is equally fast when the problem sizes are run-time arguments. This is so if the kernel spends its
// time in long micro-kernels or, for Winograd, in transforms that do not depend on the sizes.
bool sizes_are_free(const schedule::ContractionDesc& contraction);

// Emits a contraction kernel: an instantiation of the kernel template, with the epilogue as a functor.
KernelSource emit_cpu_contraction(const schedule::KernelDesc& desc, const schedule::ContractionDesc& contraction,
                                  const schedule::Config& config, const Target& target, Marks marks = Marks::kNone);

// How a contraction is embedded in a chain of contractions (tile/kernel/cpu/back_to_back.h).
struct ChainPlace {
  std::vector<std::string> operands;  // C++ expressions that use `all` (the kernel's operands) and `part`
  int64_t images, rows, pixels;       // of the contraction's feature map: images, rows per image, pixels per row
  // True: each image is one batch of the product. False: all pixels together are its rows.
  bool by_image;
};

// Emits a contraction as the function `make`, a tile::ChainMaker, preceded by the declarations that it needs. `config`
// is chosen for the largest number of rows in one call of `make`: tile_m for a product, rows or tiles for a
// convolution.
struct LinkText {
  std::vector<std::string> includes;
  std::vector<KernelText> others;  // the micro-kernels that it calls
  int64_t scratch_bytes;
};
LinkText emit_link(Writer& out, const schedule::KernelDesc& desc, const schedule::ContractionDesc& contraction,
                   const schedule::Config& config, const ChainPlace& place, const Target& target);

}  // namespace heddle::codegen
