#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/hash.h"

namespace heddle::jit {

struct EmbeddedHeader {
  std::string_view path;  // as in the #include: "tile/core/types.h"
  std::string_view text;
};

// Every header of tile/, as it was when Heddle was built.
std::span<const EmbeddedHeader> embedded_headers();
Hash128 headers_hash();

// Makes sure that `root` holds every embedded header with exactly its text. Writes missing and changed files. Throws
// kFile.
void materialise_headers(const std::string& root);

}  // namespace heddle::jit
