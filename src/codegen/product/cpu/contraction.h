#pragma once

#include "codegen/codegen.h"
#include "codegen/text/writer.h"
#include "schedule/product/contraction.h"

namespace heddle::codegen {

// True if a kernel is as fast with the problem sizes as run-time arguments. Such a kernel spends its time in long
// micro-kernels or (Winograd) in transforms that do not depend on the sizes.
bool sizes_are_free(const schedule::ContractionDesc& contraction);

// Emits a contraction: an instantiation of its template, with the epilogue as a functor.
KernelSource emit_cpu_contraction(const schedule::KernelDesc& desc, const schedule::ContractionDesc& contraction,
                                  const schedule::Config& config, const Target& target, Marks marks = Marks::kNone);

// The place of a contraction in a chain of contractions (tile/kernel/cpu/back_to_back.h).
struct ChainPlace {
  std::vector<std::string> operands;  // C++ expressions of `all` (the operands of the kernel) and `part`
  int64_t images, rows, pixels;       // of its map: images, rows per image, pixels per row
  bool by_image;                      // each image is a batch of the product; else all pixels are its rows
};

// Emits a contraction as the function `make`, a tile::ChainMaker, after the declarations that it needs. `config` is for
// the most rows that one call makes: tile_m of a product, rows or tiles of a convolution.
struct LinkText {
  std::vector<std::string> includes;
  std::vector<KernelText> others;  // its micro-kernels
  int64_t scratch_bytes;
};
LinkText emit_link(Writer& out, const schedule::KernelDesc& desc, const schedule::ContractionDesc& contraction,
                   const schedule::Config& config, const ChainPlace& place, const Target& target);

}  // namespace heddle::codegen
