#include "lang/cuda/layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace heddle::lang::cuda {
namespace {

std::string print(const std::vector<int64_t>& shape, const std::vector<Digit>& digits) {
  std::string text = fmt::format("block::Layout<dims<{}>", fmt::join(shape, ", "));
  for (const Digit& d : digits) {
    const char* const name = d.part == Part::kRegister ? "reg" : d.part == Part::kLane ? "lane" : "warp";
    text += d.dim < 0 ? fmt::format(", block::{}<{}>", name, d.size)
                      : fmt::format(", block::{}<{}, {}, {}>", name, d.size, d.dim, d.stride);
  }
  return text + ">";
}

Layout named(std::vector<int64_t> shape, std::vector<Digit> digits) {
  Layout layout{std::move(shape), std::move(digits), {}};
  layout.type = print(layout.shape, layout.digits);
  return layout;
}

// Without a dimension: as detail::without in the tile library.
std::vector<Digit> without(const std::vector<Digit>& digits, int axis, int behind) {
  std::vector<Digit> left;
  for (const Digit& d : digits) {
    if (d.dim == axis) {
      left.push_back({d.part, d.part == Part::kRegister ? 1 : d.size, -1, 0});
    } else {
      left.push_back({d.part, d.size, d.dim > axis ? d.dim + behind : d.dim, d.stride});
    }
  }
  return left;
}

}  // namespace

int64_t Layout::size(Part part) const {
  int64_t n = 1;
  for (const Digit& d : digits) n *= d.part == part ? d.size : 1;
  return n;
}

int64_t Layout::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

int64_t Layout::coordinate(Part part, int64_t number, int dim) const {
  int64_t sum = 0;
  for (const Digit& d : digits) {
    if (d.part != part) continue;
    if (d.dim == dim) sum += number % d.size * d.stride;
    number /= d.size;
  }
  return sum;
}

int64_t Layout::run(int dim) const {
  const int64_t all = registers();
  int64_t n = 1;
  const auto continues = [&](int64_t r) {
    for (int d = 0; d < rank(); ++d) {
      if (coordinate(Part::kRegister, r, d) != (d == dim ? r : 0)) return false;
    }
    return true;
  };
  while (n < all && continues(n)) ++n;
  while (all % n != 0) --n;
  return n;
}

bool Layout::fits(int dim) const {
  int64_t last = 0;
  for (const Digit& d : digits) last += d.dim == dim ? (d.size - 1) * d.stride : 0;
  return last < shape[static_cast<size_t>(dim)];
}

bool Layout::replicated() const {
  return std::any_of(digits.begin(), digits.end(),
                     [](const Digit& d) { return d.part != Part::kRegister && d.dim < 0 && d.size > 1; });
}

bool Layout::crosses_warps(int dim) const {
  return std::any_of(digits.begin(), digits.end(),
                     [&](const Digit& d) { return d.part == Part::kWarp && d.dim == dim && d.size > 1; });
}

bool same_threads(const Layout& a, const Layout& b) {
  if (a.shape != b.shape || a.registers() != b.registers() || a.threads() != b.threads()) return false;
  for (int d = 0; d < a.rank(); ++d) {
    for (int64_t l = 0; l < 32; ++l) {
      if (a.coordinate(Part::kLane, l, d) != b.coordinate(Part::kLane, l, d)) return false;
    }
    for (int64_t w = 0; w < a.threads() / 32; ++w) {
      if (a.coordinate(Part::kWarp, w, d) != b.coordinate(Part::kWarp, w, d)) return false;
    }
  }
  const auto places = [](const Layout& of) {
    std::vector<std::vector<int64_t>> all;
    for (int64_t r = 0; r < of.registers(); ++r) {
      std::vector<int64_t> place;
      for (int d = 0; d < of.rank(); ++d) place.push_back(of.coordinate(Part::kRegister, r, d));
      all.push_back(std::move(place));
    }
    std::sort(all.begin(), all.end());
    return all;
  };
  return places(a) == places(b);
}

Layout blocked(const std::vector<int64_t>& shape, const std::vector<int>& order, int64_t vector, int64_t warps) {
  std::vector<Digit> digits;
  std::vector<int64_t> reached(shape.size(), 1);
  const auto add = [&](Part part, int64_t size, int dim) {
    if (size <= 1) return;
    digits.push_back({part, size, dim, reached[static_cast<size_t>(dim)]});
    reached[static_cast<size_t>(dim)] *= size;
  };
  const auto left = [&](int dim) {
    const auto d = static_cast<size_t>(dim);
    return (shape[d] + reached[d] - 1) / reached[d];
  };
  if (!order.empty()) add(Part::kRegister, vector, order[0]);
  for (const Part part : {Part::kLane, Part::kWarp}) {
    int64_t free = part == Part::kLane ? 32 : warps;
    for (const int dim : order) {
      const int64_t wanted = std::min(free, power_of_two_from(left(dim)));
      add(part, wanted, dim);
      free /= wanted;
    }
    if (free > 1) digits.push_back({part, free, -1, 0});
  }
  for (const int dim : order) add(Part::kRegister, left(dim), dim);
  return named(shape, std::move(digits));
}

std::string mma_type(const std::vector<int64_t>& shape, WarpGrid grid, int64_t warps) {
  const size_t rank = shape.size();
  return fmt::format("block::mma_layout<{}, {}, {}, {}, {}>", shape[rank - 2], shape[rank - 1], grid.m, grid.n, warps);
}

Layout mma(const std::vector<int64_t>& shape, WarpGrid grid, int64_t warps) {
  const size_t rank = shape.size();
  const int64_t m = shape[rank - 2], n = shape[rank - 1];
  const int64_t blocks_m = (m + 16 * grid.m - 1) / (16 * grid.m), blocks_n = (n + 8 * grid.n - 1) / (8 * grid.n);
  const std::vector<Digit> digits = {{Part::kRegister, 2, 1, 1},
                                     {Part::kLane, 4, 1, 2},
                                     {Part::kLane, 8, 0, 1},
                                     {Part::kRegister, 2, 0, 8},
                                     {Part::kRegister, blocks_n, 1, 8},
                                     {Part::kRegister, blocks_m, 0, 16},
                                     {Part::kWarp, grid.m, 0, 16 * blocks_m},
                                     {Part::kWarp, grid.n, 1, 8 * blocks_n},
                                     {Part::kWarp, warps / (grid.m * grid.n), -1, 0}};
  Layout one{{m, n}, digits, mma_type(shape, grid, warps) + "::type"};
  return rank == 3 ? batched(one, shape[0]) : one;
}

std::string warpgroup_type(const std::vector<int64_t>& shape, int64_t warps) {
  return fmt::format("block::warpgroup_layout<{}, {}, {}>", shape[0], shape[1], warps);
}

Layout warpgroup(const std::vector<int64_t>& shape, int64_t warps) {
  const int64_t groups = warps / 4, blocks = shape[0] / (64 * groups);
  std::vector<Digit> digits = {{Part::kRegister, 2, 1, 1},
                               {Part::kLane, 4, 1, 2},
                               {Part::kLane, 8, 0, 1},
                               {Part::kRegister, 2, 0, 8},
                               {Part::kRegister, shape[1] / 8, 1, 8},
                               {Part::kWarp, 4, 0, 16},
                               {Part::kRegister, blocks, 0, 64},
                               {Part::kWarp, groups, 0, 64 * blocks}};
  return {shape, std::move(digits), warpgroup_type(shape, warps) + "::type"};
}

Layout batched(const Layout& one, int64_t batch) {
  std::vector<int64_t> shape = one.shape;
  shape.insert(shape.begin(), batch);
  std::vector<Digit> digits;
  for (const Digit& d : one.digits) digits.push_back({d.part, d.size, d.dim < 0 ? -1 : d.dim + 1, d.stride});
  digits.push_back({Part::kRegister, batch, 0, 1});
  return named(std::move(shape), std::move(digits));
}

Layout slice(const Layout& of, int axis) {
  std::vector<int64_t> shape = of.shape;
  shape.erase(shape.begin() + axis);
  return {std::move(shape), without(of.digits, axis, -1), fmt::format("block::slice_t<{}, {}>", of.type, axis)};
}

Layout squeeze(const Layout& of, int axis) {
  std::vector<int64_t> shape = of.shape;
  shape[static_cast<size_t>(axis)] = 1;
  return {std::move(shape), without(of.digits, axis, 0), fmt::format("block::squeeze_t<{}, {}>", of.type, axis)};
}

Layout expand(const Layout& of, int axis) {
  std::vector<int64_t> shape = of.shape;
  shape.insert(shape.begin() + axis, 1);
  std::vector<Digit> digits = of.digits;
  for (Digit& d : digits) d.dim += d.dim >= axis ? 1 : 0;
  return {std::move(shape), std::move(digits), fmt::format("block::expand_t<{}, {}>", of.type, axis)};
}

Layout permute(const Layout& of, const std::vector<int64_t>& order) {
  std::vector<int64_t> shape;
  for (const int64_t d : order) shape.push_back(of.shape[static_cast<size_t>(d)]);
  std::vector<Digit> digits = of.digits;
  for (Digit& d : digits) {
    if (d.dim >= 0) d.dim = static_cast<int>(std::find(order.begin(), order.end(), d.dim) - order.begin());
  }
  return {std::move(shape), std::move(digits),
          fmt::format("block::permute_t<{}, {}>", of.type, fmt::join(order, ", "))};
}

Layout join(const Layout& of) {
  std::vector<int64_t> shape = of.shape;
  shape.push_back(2);
  std::vector<Digit> digits = of.digits;
  digits.insert(digits.begin(), {Part::kRegister, 2, of.rank(), 1});
  return {std::move(shape), std::move(digits), fmt::format("block::join_t<{}>", of.type)};
}

std::optional<Layout> reshape(const Layout& of, const std::vector<int64_t>& shape) {
  const auto strides_of = [](const std::vector<int64_t>& lengths) {
    std::vector<int64_t> strides(lengths.size(), 1);
    for (size_t d = lengths.size(); d-- > 1;) strides[d - 1] = strides[d] * lengths[d];
    return strides;
  };
  const std::vector<int64_t> from = strides_of(of.shape), to = strides_of(shape);
  for (int d = 0; d < of.rank(); ++d) {
    if (!of.fits(d)) return std::nullopt;
  }
  std::vector<Digit> digits;
  for (const Digit& d : of.digits) {
    if (d.dim < 0 || d.size == 1) {
      digits.push_back({d.part, d.size, -1, 0});
      continue;
    }
    int64_t step = d.stride * from[static_cast<size_t>(d.dim)], left = d.size;
    // From the fastest dimension on, parts of the digit.
    for (size_t dim = shape.size(); dim-- > 0 && left > 1;) {
      const int64_t end = to[dim] * shape[dim];
      if (step >= end) continue;
      if (step % to[dim] != 0 || end % step != 0) return std::nullopt;
      const int64_t here = std::min(left, end / step);
      if (left % here != 0) return std::nullopt;
      digits.push_back({d.part, here, static_cast<int>(dim), step / to[dim]});
      left /= here;
      step *= here;
    }
    if (left > 1) return std::nullopt;
  }
  return named(shape, std::move(digits));
}

int64_t convert_bytes(const Layout& from, const Layout& to, int64_t element) {
  if (from == to || same_threads(from, to)) return 0;
  int64_t most = 0;
  for (int d = 0; d < from.rank(); ++d) {
    const int64_t line = from.shape[static_cast<size_t>(d)];
    most = std::max(most, from.elements() / line * (line + 16 / std::min<int64_t>(element, 16)) * element);
  }
  return most;
}

int64_t over_axis_bytes(const Layout& of, int64_t registers, int axis, const std::vector<int64_t>& elements) {
  if (!of.crosses_warps(axis)) return 0;
  int64_t bytes = 0, alignment = 1;
  const auto add = [&](int64_t size) {
    bytes = (bytes + size - 1) / size * size + size;
    alignment = std::max(alignment, size);
  };
  for (const int64_t size : elements) add(size);
  bytes = (bytes + alignment - 1) / alignment * alignment;
  if (!of.fits(axis)) bytes += alignment;
  return registers * of.threads() * bytes;
}

}  // namespace heddle::lang::cuda
