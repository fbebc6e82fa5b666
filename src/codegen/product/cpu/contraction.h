#pragma once

#include "codegen/codegen.h"
#include "codegen/text/writer.h"
#include "schedule/product/contraction.h"

namespace heddle::codegen {

// Whether a kernel is as fast where the sizes of the problem are no literals: it works in micro-kernels for long, or
// (Winograd) in transforms that do not depend on them.
bool sizes_are_free(const schedule::ContractionDesc& contraction);

// A contraction as an instantiation of its template with the epilogue as a functor.
KernelSource emit_contraction(const schedule::KernelDesc& desc, const schedule::ContractionDesc& contraction,
                              const schedule::Config& config, const Target& target, Marks marks = Marks::kNone);

// Where a contraction stands in a chain (tile/kernel/cpu/back_to_back.h).
struct ChainPlace {
  std::vector<std::string> operands;  // expressions over `all`, those of the kernel, and `part`
  int64_t images, rows, pixels;       // of its map; pixels of a row
  bool by_image;                      // images are the batches of a product, else their pixels are its rows
};

// A contraction as the function `make`, a tile::ChainMaker, behind what it needs for itself. `config` is for the most
// rows that it is to make at a time: tile_m of a product, rows or tiles of a convolution.
struct LinkText {
  std::vector<std::string> includes;
  std::vector<KernelText> others;  // its micro-kernels
  int64_t scratch_bytes;
};
LinkText emit_link(Writer& out, const schedule::KernelDesc& desc, const schedule::ContractionDesc& contraction,
                   const schedule::Config& config, const ChainPlace& place, const Target& target);

}  // namespace heddle::codegen
