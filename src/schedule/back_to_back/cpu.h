#pragma once

#include <vector>

#include "schedule/back_to_back/back_to_back.h"
#include "tile/core/cpu_back_to_back.h"

namespace heddle::schedule {

// A contraction of a chain. Its map consists of an image's rows of `pixels` pixels of equal size in bytes. If a product
// has no image, its rows have one pixel.
struct CpuLink {
  static constexpr uint32_t kBefore = UINT32_MAX, kMade = UINT32_MAX - 1;

  KernelDesc desc;                 // as a separate kernel, with its input and output maps laid out as in scratch
  std::vector<uint32_t> operands;  // by own operand: the chain's operand, or kBefore (input map), kMade (output)
  Config config;                   // as a separate kernel: its kind and panels
  tile::ChainLink rows;
  int64_t pixels = 1;
  bool by_image = false;  // images are the product's batches; else their pixels are its rows

  const ContractionDesc& body() const { return *std::get<std::shared_ptr<const ContractionDesc>>(desc.body); }
};

// Several contractions as one CPU kernel (tile/kernel/cpu/back_to_back.h).
struct CpuBackToBackDesc {
  std::vector<CpuLink> links;
  int64_t images = 1, unit = 1;  // tile::ChainShape
};

// A chain blocked by a configuration, as input of code generation: each link's own configuration for the most rows that
// it computes at a time, and the shape. The maps between links follow each other in scratch; the links' own scratch
// comes after them.
struct CpuChain {
  tile::ChainShape shape;
  std::vector<Config> links;
};
CpuChain blocked_chain(const CpuBackToBackDesc& desc, const CpuBackToBackConfig& config, const Target& target);

// Back to back on a CPU: a strip of rows goes through all contractions, so that the maps between them stay in the
// second-level cache.
const BackToBackBackend& cpu_back_to_back();

}  // namespace heddle::schedule
