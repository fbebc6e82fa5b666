#pragma once

#include <cstdint>
#include <vector>

#include "schedule/region/stitch.h"

namespace heddle::schedule {

// The variable along which neighbouring threads lie. `extent` must be a multiple of the elements per access. `streams`:
// only operands whose address varies with these variables limit the bytes of an access; 0: all operands do.
struct LaneVariable {
  VarId var;
  int64_t extent;
  uint64_t streams = 0;
};

// Returns the best number of elements per access along `lane`, for the loads in `values` and for `stores`. Candidates
// are powers of two. The value of the lane variable at the first element of an access is assumed to be a multiple of
// the candidate. An access to the operand with the widest elements has at most 16 bytes; exactly 16 bytes pay off if
// most accesses are aligned and contiguous. Accesses to scratch buffers (buffer numbers >= `scratch`) may be wider.
int vector_length(const ExprPool& pool, const std::vector<GridDim>& grid, const LaneVariable& lane,
                  const std::vector<ExprId>& values, const std::vector<Store>& stores, uint32_t scratch = ~0u);

}  // namespace heddle::schedule
