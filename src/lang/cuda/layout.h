#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// The layouts of tile/block/layout.h as data, each with its C++ type. Layouts are chosen here and checked by the tile
// library.
namespace heddle::lang::cuda {

// The smallest power of two that is at least n.
constexpr int64_t power_of_two_from(int64_t n) {
  return n <= 1 ? 1 : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
}

enum class Part : uint8_t { kRegister, kLane, kWarp };

// A digit of a layout, as in the tile library. It has `size` values. Each step of the digit moves `stride` elements
// along dimension `dim`. If `dim` is -1, the digit does not move along any dimension.
struct Digit {
  Part part = Part::kRegister;
  int64_t size = 1;
  int dim = -1;
  int64_t stride = 0;
  bool operator==(const Digit&) const = default;
};

struct Layout {
  std::vector<int64_t> shape;
  std::vector<Digit> digits;
  std::string type;  // the C++ type, composed of a few named layouts

  int rank() const { return static_cast<int>(shape.size()); }
  int64_t size(Part part) const;
  int64_t registers() const { return size(Part::kRegister); }
  int64_t threads() const { return 32 * size(Part::kWarp); }
  int64_t elements() const;
  int64_t coordinate(Part part, int64_t number, int dim) const;
  // The number of registers, counted from register 0, that hold consecutive elements along `dim`. Divides registers().
  int64_t run(int dim) const;
  bool fits(int dim) const;  // true if no digit along `dim` exceeds the shape
  bool replicated() const;   // true if several threads hold the same element
  bool crosses_warps(int dim) const;

  bool operator==(const Layout& other) const { return type == other.type; }
};

// True if each thread holds the same elements in both layouts.
bool same_threads(const Layout& a, const Layout& b);

// The blocked layout: `vector` neighbouring elements along order[0] are in the registers of a thread. Lanes and warps
// follow along order[0], order[1], ... Registers hold the remaining elements of the tile.
Layout blocked(const std::vector<int64_t>& shape, const std::vector<int>& order, int64_t vector, int64_t warps);
// The number of warps along each of the last two dimensions. mma() returns the layout of tensor-core accumulators
// in these two dimensions. The elements along a leading dimension are in the registers of one thread.
struct WarpGrid {
  int64_t m = 1, n = 1;
};
Layout mma(const std::vector<int64_t>& shape, WarpGrid grid, int64_t warps);
// The C++ type of the layout of the last two dimensions: mma_layout<...>.
std::string mma_type(const std::vector<int64_t>& shape, WarpGrid grid, int64_t warps);
// The layout of the accumulators of warpgroup products. A warpgroup's block has 64 rows and all columns of the tile.
Layout warpgroup(const std::vector<int64_t>& shape, int64_t warps);
std::string warpgroup_type(const std::vector<int64_t>& shape, int64_t warps);
// Adds a leading batch dimension to a layout. The batch index is the slowest digit of the registers.
Layout batched(const Layout& one, int64_t batch);

Layout slice(const Layout& of, int axis);
Layout squeeze(const Layout& of, int axis);
Layout expand(const Layout& of, int axis);
Layout permute(const Layout& of, const std::vector<int64_t>& order);
Layout join(const Layout& of);
// The layout of a row-major tile after a reshape. nullopt if a digit of the layout is not representable as digits in
// the new shape.
std::optional<Layout> reshape(const Layout& of, const std::vector<int64_t>& shape);

// Bytes of shared memory that the tile library needs for a layout conversion, and for an operation along an axis.
int64_t convert_bytes(const Layout& from, const Layout& to, int64_t element);
int64_t over_axis_bytes(const Layout& of, int64_t registers, int axis, const std::vector<int64_t>& elements);

}  // namespace heddle::lang::cuda
