#include "codegen/text/includes.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace heddle::codegen {
namespace {

struct Named {
  std::string_view text, header;
};

constexpr Named kNamed[] = {
    {"tile::load_rows", "tile/op/rows.h"},
    {"tile::store_rows", "tile/op/rows.h"},
    {"transpose_block", "tile/op/transpose.h"},
    {"philox", "tile/op/random.h"},
    {"tile::f8", "tile/op/narrow.h"},
    {"tile::f4", "tile/op/narrow.h"},
    {"round_storage", "tile/op/narrow.h"},
    {"cast_bits", "tile/op/narrow.h"},
    {"tile::fast::", "tile/op/cuda/fast.h"},
    {"tile::sm80::wait_copies", "tile/arch/sm80/cp_async.h"},
    {"shared_address", "tile/arch/sm80/shared.h"},
};

}  // namespace

void add_named_headers(KernelText& source) {
  for (const Named& named : kNamed) {
    // find() stops at each first letter.
    const std::string& text = source.text;
    if (::memmem(text.data(), text.size(), named.text.data(), named.text.size()) == nullptr) continue;
    const auto at = std::find(source.includes.begin(), source.includes.end(), named.header);
    if (at == source.includes.end()) source.includes.emplace_back(named.header);
  }
}

}  // namespace heddle::codegen
