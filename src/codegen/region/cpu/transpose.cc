#include "codegen/region/cpu/transpose.h"

#include "base/divide.h"

namespace heddle::codegen {

using schedule::TransposedLoad;
using schedule::TransposedStore;

namespace {

constexpr int64_t kLanes = 16;  // at most: transpositions write whole vectors

// Of a row in scratch, which holds the values of `v` that an iteration has.
int64_t width_of(const StitchContext& c, VarId v) {
  const GridDim* d = c.body.blocked(v);
  return round_up(d != nullptr ? d->block : c.extent(v), kLanes);
}

// Short rows between a buffer and scratch, where they are columns.
void load_rows(StitchContext& c, VarId v, const TransposedLoad& t) {
  const std::string from = c.place(t.from, t.at);
  const int64_t rows = c.extent(t.along);
  if (c.marked) {
    c.out.line("tile::load_rows_of({}, {}, {}, {}, {}, {});", c.any_number(rows), c.buffer(t.scratch),
               c.number(width_of(c, v)), from, c.number(t.stride), c.count_of(v));
    return;
  }
  const std::string readable = fmt::format("{} - {}", c.number(c.extent(v)), c.bounds(v).first);
  c.out.line("tile::load_rows<{}>({}, {}, {}, {}, {}, {});", rows, c.buffer(t.scratch), c.number(width_of(c, v)), from,
             c.number(t.stride), c.count_of(v), readable);
}

}  // namespace

void write_transposed(StitchContext& c, const Stage& stage, const TransposedStore& t) {
  const VarId v = stage.loops.back();
  const std::string to = c.place(t.to, t.at);
  const int64_t rows = c.extent(t.along);
  if (c.marked) {
    c.out.line("tile::store_rows_of({}, {}, {}, {}, {}, {});", c.any_number(rows), to, c.number(t.stride),
               c.buffer(t.scratch), c.number(width_of(c, v)), c.count_of(v));
    return;
  }
  c.out.line("tile::store_rows<{}, {}>({}, {}, {}, {}, {});", rows, t.stream, to, c.number(t.stride),
             c.buffer(t.scratch), c.number(width_of(c, v)), c.count_of(v));
  c.streams = c.streams || t.stream;
}

void write_transposed(StitchContext& c, const Stage& stage, const TransposedLoad& t) {
  const VarId v = stage.loops.back();
  if (stage.packed) return load_rows(c, v, t);
  const GridDim& d = *c.body.blocked(v);
  const std::string rows = c.count_of(t.along), from = c.place(t.from, t.at);
  c.out.line("tile::transpose_block({}, {}, {}, {}, {}, {});", c.buffer(t.scratch), c.number(width_of(c, v)), from,
             c.number(t.stride), rows, c.count_of(v));
  if (c.body.blocks_of(d) > 1) {
    c.out.line("tile::prefetch_block({} + {}, {}, {}, tile::smaller({} - {}, {}));", from, c.number(d.block * t.stride),
               c.number(t.stride), rows, c.number(c.extent(v) - d.block), c.bounds(v).first, c.number(d.block));
  }
}

}  // namespace heddle::codegen
