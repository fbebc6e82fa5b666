#include "tests/fuzz/hostile/mend.h"

#include <cstring>

#include "base/hash.h"

namespace heddle::fuzz {
namespace {

// runtime/plan_io.cc and jit/cache.cc; prepare() of the attacks sees when these no longer hold.
constexpr size_t kPlanFileBytes = 16, kPlanTable = 24, kPlanDescription = 32, kPlanHash = 64;
constexpr size_t kTableEntry = 32;
constexpr size_t kEntryBytes = 16, kEntryHash = 40;

uint64_t read(const std::string& bytes, size_t at) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <typename T>
void write(std::string& bytes, size_t at, const T& value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

}  // namespace

std::string mend_plan(std::string bytes) {
  if (bytes.size() < kPlanHeader) return bytes;
  write(bytes, kPlanFileBytes, uint64_t{bytes.size()});
  const size_t rest = bytes.size() - kPlanHeader;
  const uint64_t description = std::min<uint64_t>(read(bytes, kPlanDescription), rest);
  write(bytes, kPlanDescription, description);
  // The tensors' checksums, where they lie in the file.
  const uint64_t start = (kPlanHeader + description + 4095) / 4096 * 4096;
  const uint64_t entries = std::min(read(bytes, kPlanTable), description / kTableEntry);
  for (uint64_t i = 0; i < entries; ++i) {
    const size_t entry = kPlanHeader + i * kTableEntry;
    const uint64_t offset = read(bytes, entry), size = read(bytes, entry + 8);
    if (start > bytes.size() || offset > bytes.size() - start || size > bytes.size() - start - offset) continue;
    write(bytes, entry + 16, hash_large(bytes.data() + start + offset, size, 1));
  }
  write(bytes, kPlanHash, Hash128{});
  const std::string_view view = bytes;
  write(bytes, kPlanHash,
        Hasher().add(view.substr(0, kPlanHeader)).add(view.substr(kPlanHeader, description)).finish());
  return bytes;
}

std::string mend_entry(std::string bytes) {
  if (bytes.size() < kEntryFrame) return bytes;
  write(bytes, kEntryBytes, uint64_t{bytes.size() - kEntryFrame});
  write(bytes, kEntryHash, hash_text(std::string_view(bytes).substr(kEntryFrame)));
  return bytes;
}

void edit_binary(std::string& bytes, size_t keep, Rng& rng) {
  if (bytes.size() <= keep) return;
  const auto size = static_cast<int64_t>(bytes.size() - keep);
  // What is near the beginning says how the rest is read.
  const int64_t window = rng.chance(0.7) ? std::min<int64_t>(size, 4096) : size;
  const size_t at = keep + static_cast<size_t>(rng.range(0, window - 1));
  const auto length = static_cast<size_t>(rng.range(1, std::min<int64_t>(static_cast<int64_t>(bytes.size() - at), 64)));
  switch (rng.range(0, 6)) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << rng.range(0, 7)));
      return;
    case 1:
    case 2: {
      const uint64_t value = rng.chance(0.5) ? interesting(rng) : static_cast<uint64_t>(rng.range(-4, 40));
      static const std::vector<size_t> widths = {1, 2, 4, 8};
      std::memcpy(bytes.data() + at, &value, std::min(rng.pick(widths), bytes.size() - at));
      return;
    }
    case 3:
      bytes.erase(at, length);
      return;
    case 4:
      bytes.insert(at, bytes.substr(at, length));
      return;
    case 5:
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), length, static_cast<char>(rng.range(0, 255)));
      return;
    default:
      bytes.resize(rng.chance(0.3) ? at : bytes.size() - std::min(length, bytes.size() - keep));
  }
}

}  // namespace heddle::fuzz
