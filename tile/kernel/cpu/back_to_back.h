// Back-to-back contractions, which form a chain of links. Each link reads rows that the previous link has just computed
// and that are still in the L2 cache. A generated function (ChainMaker) computes the rows of a link; it calls
// gemm_rows(), conv_rows(), winograd_rows() or window().
#pragma once

#include "tile/core/cpu_back_to_back.h"

namespace heddle::tile {

// The rows of an image that one link must compute. `in` is the address where row 0 of image 0 of the link's input would
// be if the whole input were in memory; it is null for the first link, which reads the operands. `out` is the
// corresponding address for the link's output.
struct ChainPart {
  int64_t image, row, rows;
  void *in, *out;
  void* scratch;
};
using ChainMaker = void (*)(void* const* operands, const ChainPart& part);

// Runs tasks [begin, end) of s.tasks(). `makers` has one function per link; each receives `operands`.
inline void chain(const ChainShape& s, const ChainMaker* makers, void* const* operands, void* scratch, int64_t begin,
                  int64_t end) {
  char* const base = static_cast<char*>(scratch);
  for (int64_t task = begin; task < end; ++task) {
    const int64_t image = task / s.strips;
    void* in = nullptr;
    s.for_parts(task, [&](int i, const RowRange& have, const RowRange& need, const RowRange& make) {
      const int64_t bytes = s.link[i].row_bytes;
      char* const buffer = base + s.buffer[i];
      const int64_t kept = have.last - need.first, passed = need.first - have.first;
      if (kept > 0 && passed > 0) __builtin_memmove(buffer, buffer + passed * bytes, uint64_t(kept * bytes));
      // Integer arithmetic, since the result need not point into scratch. The makers add the offset of the rows.
      const int64_t above = (image * s.link[i].rows + need.first) * bytes;
      void* const out = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(buffer) - uintptr_t(above));
      if (i == 0) in = nullptr;
      if (make.count() > 0) {
        makers[i](operands, {image, make.first, make.count(), in, out, base + s.buffer[s.links - 1]});
      }
      in = out;
    });
  }
}

}  // namespace heddle::tile
