#pragma once

#include "schedule/product/contraction_builder.h"

namespace heddle::schedule {

// Costs of f32 micro-kernels in core cycles, as long as memory is not the limit.
class MicroCosts {
 public:
  explicit MicroCosts(const Target& target);

  int64_t lanes() const { return lanes_; }
  double vectors(int64_t elements) const { return static_cast<double>(elements) / static_cast<double>(lanes_); }
  // A micro tile of `rows` rows and `columns` columns (at most a panel's) over `k`.
  double tile(int64_t rows, int64_t columns, int64_t k) const;
  // The same for any number of columns, in panels of `panel` columns.
  double tiles(int64_t rows, int64_t columns, int64_t panel, int64_t k) const;
  // Copying elements to the packed buffer that micro-kernels read.
  double packing(int64_t elements) const { return vectors(elements) * cpu_.model.pack_cycles; }
  double microseconds(double cycles) const { return cycles / (cpu_.ghz * 1e3); }

 private:
  const CpuTarget& cpu_;
  const MicroLimits limits_;
  const int64_t lanes_;
};

}  // namespace heddle::schedule
