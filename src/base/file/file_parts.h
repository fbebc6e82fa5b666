#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/file/file.h"

namespace heddle {

// Like write_file(), for a file of `size` bytes whose parts are computed during the write. write(put) calls put(offset,
// part) for each part, in any order and from any thread. Bytes that no part covers are zero. If `path` is a device, the
// content is collected in memory and written at the end.
using PutPart = std::function<void(uint64_t offset, std::span<const std::byte> part)>;
void write_file(const std::string& path, uint64_t size, const std::function<void(const PutPart&)>& write, Sync sync);

}  // namespace heddle
