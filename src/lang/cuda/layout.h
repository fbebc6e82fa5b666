#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// The layouts of tile/block/layout.h as data, with the C++ type that each is. They are chosen here and checked there.
namespace heddle::lang::cuda {

// The least power of two that is not below n.
constexpr int64_t power_of_two_from(int64_t n) {
  return n <= 1 ? 1 : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
}

enum class Part : uint8_t { kRegister, kLane, kWarp };

// As in the tile library: `size` values that move by `stride` along `dim`, or along none (-1).
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
  std::string type;  // C++, of a few layouts that have names

  int rank() const { return static_cast<int>(shape.size()); }
  int64_t size(Part part) const;
  int64_t registers() const { return size(Part::kRegister); }
  int64_t threads() const { return 32 * size(Part::kWarp); }
  int64_t elements() const;
  int64_t coordinate(Part part, int64_t number, int dim) const;
  // Registers from number 0 on that are neighbours along `dim`.
  int64_t run(int dim) const;
  bool fits(int dim) const;  // no digit reaches beyond the shape
  bool replicated() const;   // several threads hold an element
  bool crosses_warps(int dim) const;

  bool operator==(const Layout& other) const { return type == other.type; }
};

// Whether each thread holds the same elements in both.
bool same_threads(const Layout& a, const Layout& b);

// Neighbouring elements along order[0] in `vector` registers, then lanes and warps along order[0], order[1], ..., and
// what is left of the tile in registers.
Layout blocked(const std::vector<int64_t>& shape, const std::vector<int>& order, int64_t vector, int64_t warps);
// The sums of tensor cores, the last two dimensions of the shape; a first one is in registers.
struct WarpGrid {
  int64_t m = 1, n = 1;
};
Layout mma(const std::vector<int64_t>& shape, WarpGrid grid, int64_t warps);
// mma_layout<...> of its last two dimensions.
std::string mma_type(const std::vector<int64_t>& shape, WarpGrid grid, int64_t warps);
// Those of warpgroups, whose blocks have 64 rows and all columns.
Layout warpgroup(const std::vector<int64_t>& shape, int64_t warps);
std::string warpgroup_type(const std::vector<int64_t>& shape, int64_t warps);
// A first dimension of a batch in registers outside of all others.
Layout batched(const Layout& one, int64_t batch);

Layout slice(const Layout& of, int axis);
Layout squeeze(const Layout& of, int axis);
Layout expand(const Layout& of, int axis);
Layout permute(const Layout& of, const std::vector<int64_t>& order);
Layout join(const Layout& of);
// What a tile in row-major order has under another shape, where digits are digits there as well.
std::optional<Layout> reshape(const Layout& of, const std::vector<int64_t>& shape);

// Bytes of shared memory that operators of the tile library use.
int64_t convert_bytes(const Layout& from, const Layout& to, int64_t element);
int64_t over_axis_bytes(const Layout& of, int64_t registers, int axis, const std::vector<int64_t>& elements);

}  // namespace heddle::lang::cuda
