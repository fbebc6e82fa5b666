#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/file/file.h"

namespace heddle {

// As write_file(), for a file of `size` bytes whose parts are made meanwhile: write(put) calls put(offset, part), in
// any order and from any thread. What it leaves out is zero. A device gets all of it afterwards, from memory.
using PutPart = std::function<void(uint64_t offset, std::span<const std::byte> part)>;
void write_file(const std::string& path, uint64_t size, const std::function<void(const PutPart&)>& write, Sync sync);

}  // namespace heddle
