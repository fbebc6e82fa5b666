#pragma once

#include <vector>

#include "schedule/back_to_back/back_to_back.h"
#include "tile/core/cpu_back_to_back.h"

namespace heddle::schedule {

// One contraction of a chain. Its input and output maps consist of rows; a row has `pixels` pixels, each of the same
// size in bytes. A product that has no image has one pixel per row.
struct CpuLink {
  static constexpr uint32_t kBefore = UINT32_MAX, kMade = UINT32_MAX - 1;

  KernelDesc desc;                 // the contraction as a separate kernel whose maps are laid out as in scratch
  std::vector<uint32_t> operands;  // per operand: the chain's operand, or kBefore (input map), kMade (output map)
  Config config;                   // its configuration as a separate kernel: kind and panels
  tile::ChainLink rows;
  int64_t pixels = 1;
  bool by_image = false;  // true: images are the product's batches; false: all pixels are its rows

  const ContractionDesc& body() const { return *std::get<std::shared_ptr<const ContractionDesc>>(desc.body); }
};

// Several contractions as one CPU kernel (tile/kernel/cpu/back_to_back.h).
struct CpuBackToBackDesc {
  std::vector<CpuLink> links;
  int64_t images = 1, unit = 1;  // tile::ChainShape
};

// A chain with its blocking for a configuration, as input of code generation. `links` holds, for each link, the
// configuration for the largest number of rows that the link computes at a time. In scratch, the maps between links are
// stored one after another, followed by the scratch memory of the links' kernels.
struct CpuChain {
  tile::ChainShape shape;
  std::vector<Config> links;
};
CpuChain blocked_chain(const CpuBackToBackDesc& desc, const CpuBackToBackConfig& config, const Target& target);

// Back-to-back kernels for a CPU. A strip of rows passes through all contractions before the next strip starts, so that
// the maps between them stay in the second-level cache.
const BackToBackBackend& cpu_back_to_back();

}  // namespace heddle::schedule
