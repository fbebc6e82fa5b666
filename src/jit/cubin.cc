#include "jit/cubin.h"

#include <cstdint>

#include "jit/cache.h"

namespace heddle::jit {

// Payload: 8 bytes with the size of the machine code, the machine code, the log.
bool find_cubin(const Hash128& key, CompiledCubin& compiled) {
  const auto entry = Cache::of_user().find(EntryKind::kCubin, key);
  uint64_t bytes = 0;
  if (!entry || entry->payload.size() < sizeof(bytes)) return false;
  entry->payload.copy(reinterpret_cast<char*>(&bytes), sizeof(bytes));
  if (bytes > entry->payload.size() - sizeof(bytes)) return false;
  compiled.bytes = entry->payload.substr(sizeof(bytes), bytes);
  compiled.log = entry->payload.substr(sizeof(bytes) + bytes);
  compiled.from_cache = true;
  return true;
}

void store_cubin(const Hash128& key, const CompiledCubin& compiled) {
  const uint64_t bytes = compiled.bytes.size();
  std::string payload(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
  payload += compiled.bytes;
  payload += compiled.log;
  const Cache cache = Cache::of_user();
  if (cache.store(EntryKind::kCubin, key, payload)) cache.trim();
}

}  // namespace heddle::jit
