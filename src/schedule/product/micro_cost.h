#pragma once

#include "schedule/product/contraction_builder.h"

namespace heddle::schedule {

// The costs of f32 micro-kernels in core cycles, under the assumption that memory is not the bottleneck.
class MicroCosts {
 public:
  explicit MicroCosts(const Target& target);

  int64_t lanes() const { return lanes_; }
  double vectors(int64_t elements) const { return static_cast<double>(elements) / static_cast<double>(lanes_); }
  // The cost of a micro tile of `rows` rows and `columns` columns whose sums have `k` terms. `columns` is at most the
  // number of columns of a panel.
  double tile(int64_t rows, int64_t columns, int64_t k) const;
  // The cost of micro tiles of `rows` rows over any number of columns, in panels of `panel` columns.
  double tiles(int64_t rows, int64_t columns, int64_t panel, int64_t k) const;
  // Vector multiply-adds that start in a cycle.
  double rate() const { return rate_; }
  // The cost of transforming the images and the results of `tiles` tiles of Winograd's form, with `words` words of
  // channels.
  double transforms(double tiles, int64_t words, int64_t features) const;
  // The cost of copying elements to the packed buffer that micro-kernels read.
  double packing(int64_t elements) const { return vectors(elements) * cpu_.model.pack_cycles; }
  double microseconds(double cycles) const { return cycles / (cpu_.ghz * 1e3); }

 private:
  const CpuTarget& cpu_;
  const MicroLimits limits_;
  const int64_t lanes_;
  const double rate_;
};

}  // namespace heddle::schedule
