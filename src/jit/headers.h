#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/hash.h"

namespace heddle::jit {

struct EmbeddedHeader {
  std::string_view path;  // as in an #include: "tile/core/types.h"
  std::string_view text;
};

// All headers of tile/ as of the build of Heddle.
std::span<const EmbeddedHeader> embedded_headers();
Hash128 headers_hash();

// Ensures that the folder `root` contains every embedded header with exactly the embedded text. Writes only missing and
// changed files. Throws kFile.
void materialise_headers(const std::string& root);

}  // namespace heddle::jit
