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

// Stand-ins for the headers of the C library that tile/ includes, for compilers of GPU code, which have none.
struct SystemHeader {
  const char* path;
  const char* text;
};
inline constexpr SystemHeader kSystemHeaders[] = {
    {"stdint.h",
     "#pragma once\n"
     "typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;\n"
     "typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned uint32_t;\n"
     "typedef unsigned long uint64_t; typedef unsigned long uintptr_t;\n"},
    {"stddef.h", "#pragma once\ntypedef decltype(sizeof(0)) size_t;\n"}};

// Ensures that the folder `root` contains every embedded header with exactly the embedded text. Writes only missing and
// changed files. Throws kFile.
void materialise_headers(const std::string& root);
// Returns a folder with the headers: in the user's cache if `use_cache` and the cache is writable, else `fallback`.
std::string header_folder(const std::string& fallback, bool use_cache);

}  // namespace heddle::jit
