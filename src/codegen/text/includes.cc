#include "codegen/text/includes.h"

#include <map>

namespace heddle::codegen {

std::string_view header_of(std::string_view identifier) {
  static const std::map<std::string_view, std::string_view> headers = {
      {"load_rows", "tile/op/rows.h"},
      {"load_rows_of", "tile/op/rows.h"},
      {"store_rows", "tile/op/rows.h"},
      {"store_rows_of", "tile/op/rows.h"},
      {"transpose_block", "tile/op/transpose.h"},
      {"gather_lanes", "tile/op/gather.h"},
      {"gather_at", "tile/op/gather.h"},
      {"gather_near", "tile/op/gather.h"},
      {"wrap_lanes", "tile/op/gather.h"},
      {"look_up_bytes", "tile/arch/cpu/look_up.h"},
      {"look_up_cached", "tile/op/cuda/look_up.h"},
      {"float_of_bytes", "tile/op/cuda/bytes.h"},
      {"philox_normal", "tile/op/random.h"},
      {"philox_uniform", "tile/op/random.h"},
      {"f8e4m3", "tile/op/narrow.h"},
      {"f8e4m3fnuz", "tile/op/narrow.h"},
      {"f8e5m2", "tile/op/narrow.h"},
      {"f8e5m2fnuz", "tile/op/narrow.h"},
      {"f8e8m0", "tile/op/narrow.h"},
      {"f4e2m1", "tile/op/narrow.h"},
      {"round_storage", "tile/op/narrow.h"},
      {"cast_bits", "tile/op/narrow.h"},
      {"fast", "tile/op/cuda/fast.h"},  // a namespace
      {"wait_copies", "tile/arch/sm80/cp_async.h"},
      {"shared_address", "tile/arch/sm80/shared.h"},
  };
  const auto found = headers.find(identifier);
  return found == headers.end() ? "" : found->second;
}

}  // namespace heddle::codegen
