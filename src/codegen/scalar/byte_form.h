#pragma once

#include <array>
#include <map>

#include "codegen/scalar/fast_math.h"

namespace heddle::codegen {

// Short forms of quantised numbers, for the kernel that computes them.
class ByteForms {
 public:
  explicit ByteForms(const schedule::ExprPool& pool) : pool_(pool) {}

  // The short form of a number of 8 bits that is perhaps widened, less a zero point; nullopt for other expressions. The
  // widened number is never a vector of narrow elements.
  // - An integral f32 that is saturated: bounds are applied before it is rounded and converted, and include the zero
  //   point. On a CPU, one instruction rounds and converts. A GPU rounds by additions.
  // - A loaded number as an f32: a GPU converts it by a permutation of bytes and a subtraction.
  // - A function of one other number of 8 bits whose operations cost more than a table of its 256 values: the table.
  std::optional<ShortForm> find(schedule::ExprId id, bool on_cpu);
  // The short form of a number of 8 bits for a GPU's store that saturates 32-bit integers: an entry of a table, or a
  // rounded integer that need not be saturated. nullopt for other expressions.
  std::optional<ShortForm> stored_by_gpu(schedule::ExprId byte);

 private:
  using Values = std::array<uint8_t, 256>;

  // A format of 32-bit integers, and its argument. The number of 8 bits is their value plus an offset.
  struct Integers {
    std::string format;
    schedule::ExprId argument;
    int64_t offset;
  };
  // A number of 8 bits, widened, plus an offset.
  struct Widened {
    schedule::ExprId byte;
    int64_t offset;
  };
  std::optional<Widened> widened(schedule::ExprId id) const;
  int64_t source_of(schedule::ExprId id);
  int64_t find_source(const schedule::Expr& e, schedule::ExprId id) const;
  bool pays(schedule::ExprId from, schedule::ExprId to) const;
  Values values(schedule::ExprId from, schedule::ExprId to) const;
  Integers integers(schedule::ExprId byte, bool on_cpu) const;
  std::optional<Integers> looked_up(schedule::ExprId byte, bool on_cpu);

  const schedule::ExprPool& pool_;
  std::vector<int64_t> sources_;  // by expression, as far as source_of() has looked
};

}  // namespace heddle::codegen
