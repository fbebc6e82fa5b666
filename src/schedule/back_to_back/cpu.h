#pragma once

#include <vector>

#include "schedule/back_to_back/back_to_back.h"
#include "tile/core/cpu_back_to_back.h"

namespace heddle::schedule {

// A contraction of a chain. Its map is an image's rows of `pixels`, each of so many bytes; a product that is no image
// has rows of one pixel.
struct CpuLink {
  static constexpr uint32_t kBefore = UINT32_MAX, kMade = UINT32_MAX - 1;

  KernelDesc desc;                 // as a kernel of its own; the maps beside it lie as in scratch
  std::vector<uint32_t> operands;  // of the chain's operands those that its own are, or the map before it or its own
  Config config;                   // as a kernel of its own: its kind and its panels
  tile::ChainLink rows;
  int64_t pixels = 1;
  bool by_image = false;  // images are the batches of a product, else their pixels are its rows

  const ContractionDesc& body() const { return *std::get<std::shared_ptr<const ContractionDesc>>(desc.body); }
};

// Contractions as one kernel of a CPU (tile/kernel/cpu/back_to_back.h).
struct CpuBackToBackDesc {
  std::vector<CpuLink> links;
  int64_t images = 1, unit = 1;  // tile::ChainShape
};

// What code generation needs of a chain that is blocked by a configuration: each link's own configuration for the most
// rows that it makes at a time, and the shape, with the maps between in scratch one behind the other; the links' own
// scratch begins behind them.
struct CpuChain {
  tile::ChainShape shape;
  std::vector<Config> links;
};
CpuChain blocked_chain(const CpuBackToBackDesc& desc, const CpuBackToBackConfig& config, const Target& target);

// Back to back on a CPU: a strip of rows goes through all contractions, and what they hand on stays in the second-level
// cache.
const BackToBackBackend& cpu_back_to_back();

}  // namespace heddle::schedule
