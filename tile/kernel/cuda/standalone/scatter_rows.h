// The destination of each update of a scatter, and the launch that copies or fills y before any update.
#pragma once

#include "tile/kernel/cuda/row.h"
#include "tile/kernel/cuda/standalone/scatter.h"

namespace heddle::tile::cuda {

// Calling an object of these types returns the row of y that an update changes, or -1 if the update is dropped.
template <typename I>
struct SliceRows {
  const ScatterUpdatesArgs& args;
  __device__ int64_t operator()(int64_t number) const {
    const I* tuple = static_cast<const I*>(args.common.indices) + number * args.dims;
    int64_t row = 0;
    for (int d = 0; d < args.dims; ++d) row = row * args.dim[d].extent + wrap_index(tuple[d], args.dim[d].extent);
    return row;
  }
};

template <typename I, bool kDrop>
struct ElementRows {
  const ScatterUpdatesArgs& args;
  __device__ int64_t operator()(int64_t number) const {
    int64_t rest = number, at = 0, index_at = 0;
    for (int d = 0; d < args.dims; ++d) {
      const ScatterStep& dim = args.dim[d];
      const int64_t next = quotient(rest, dim.extent), c = rest - next * dim.extent;
      at += c * dim.stride;
      index_at += c * dim.index_stride;
      rest = next;
    }
    const I index = static_cast<const I*>(args.common.indices)[index_at];
    if constexpr (kDrop) {
      if (!(index >= I(0) && static_cast<uint64_t>(index) < static_cast<uint64_t>(args.axis_extent))) return -1;
    }
    return at + wrap_index(index, args.axis_extent) * args.axis_stride;
  }
};

// Thread `number` of `threads` copies its part of the data to y, or fills the part with one value.
template <ScatterFrom kFrom>
__device__ inline void scatter_begin(const ScatterUpdatesArgs& args, int64_t number, int64_t threads) {
  using Packet = Neighbours<uint64_t, 2>;
  constexpr bool kCopies = kFrom == ScatterFrom::kData;
  auto* to = static_cast<Packet*>(args.common.y);
  const auto* from = static_cast<const Packet*>(args.common.data);
  const Packet value = {{args.common.fill[0], args.common.fill[1]}};
  const int64_t packets = args.bytes / 16;
#pragma unroll 4
  for (int64_t i = number; i < packets; i += threads) to[i] = kCopies ? from[i] : value;
  for (int64_t i = packets * 16 + number; i < args.bytes; i += threads) {
    reinterpret_cast<uint8_t*>(to)[i] = kCopies ? reinterpret_cast<const uint8_t*>(from)[i]
                                                : static_cast<uint8_t>(args.common.fill[0] >> (8 * (i % 8)));
  }
}

}  // namespace heddle::tile::cuda
