#pragma once

#include "schedule/product/contraction_builder.h"

namespace heddle::schedule {

// What micro-kernels of f32 cost, in cycles of a core, as far as memory does not limit them.
class MicroCosts {
 public:
  explicit MicroCosts(const Target& target);

  int64_t lanes() const { return lanes_; }
  double vectors(int64_t elements) const { return static_cast<double>(elements) / static_cast<double>(lanes_); }
  // A micro tile of `rows` rows times `columns` columns, a panel's at most, over `k`.
  double tile(int64_t rows, int64_t columns, int64_t k) const;
  // The same for any number of columns, in panels of `panel`.
  double tiles(int64_t rows, int64_t columns, int64_t panel, int64_t k) const;
  // Elements copied to where micro-kernels read them.
  double packing(int64_t elements) const { return vectors(elements) * cpu_.model.pack_cycles; }
  double microseconds(double cycles) const { return cycles / (cpu_.ghz * 1e3); }

 private:
  const CpuTarget& cpu_;
  const MicroLimits limits_;
  const int64_t lanes_;
};

}  // namespace heddle::schedule
