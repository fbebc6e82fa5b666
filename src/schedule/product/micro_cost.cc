#include "schedule/product/micro_cost.h"

#include <algorithm>

#include "base/divide.h"

namespace heddle::schedule {

MicroCosts::MicroCosts(const Target& target)
    : cpu_(target.cpu),
      limits_(micro_limits(target)),
      lanes_(limits_.vector_bytes / static_cast<int64_t>(sizeof(float))),
      rate_(std::min(2.0, static_cast<double>(cpu_.fma_bytes_per_cycle) / static_cast<double>(limits_.vector_bytes))) {}

double MicroCosts::tile(int64_t rows, int64_t columns, int64_t k) const {
  const auto vectors = static_cast<double>(ceil_div(columns, lanes_));
  constexpr double kLoads = 2;  // a cycle
  const double step =
      std::max(static_cast<double>(rows) * vectors / rate_, (static_cast<double>(rows) + vectors) / kLoads);
  return static_cast<double>(k) * step + cpu_.model.micro_tile_cycles;
}

double MicroCosts::tiles(int64_t rows, int64_t columns, int64_t panel, int64_t k) const {
  double cycles = 0;
  for (int64_t at = 0; at < columns; at += panel) cycles += tile(rows, std::min(panel, columns - at), k);
  return cycles;
}

// Transforming costs about 240 instructions per tile and vector of input channels, 220 per vector of output channels
// (measured where one vector multiply-add starts in a cycle, which takes the time of an instruction).
double MicroCosts::transforms(double tiles, int64_t words, int64_t features) const {
  return tiles * (240 * vectors(words) + 220 * vectors(features)) / rate_;
}

}  // namespace heddle::schedule
