#include "base/hash.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/thread_pool.h"

namespace heddle {
namespace {

constexpr size_t kPiece = 16 << 20;

Hash128 from(XXH128_hash_t hash) {
  return {hash.high64, hash.low64};
}

}  // namespace

std::string Hash128::hex() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

Hash128 hash_bytes(const void* data, size_t bytes) {
  return from(XXH3_128bits(data, bytes));
}

Hash128 hash_large(const void* data, size_t bytes, int threads) {
  const auto* begin = static_cast<const char*>(data);
  std::vector<Hash128> pieces((bytes + kPiece - 1) / kPiece);
  ThreadPool pool(std::min(threads, static_cast<int>(std::max<size_t>(pieces.size(), 1))));
  pool.run(static_cast<int64_t>(pieces.size()), [&](int64_t first, int64_t last, int) {
    for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
      pieces[i] = hash_bytes(begin + i * kPiece, std::min(kPiece, bytes - i * kPiece));
    }
  });
  Hasher all;
  all.add(static_cast<int64_t>(bytes));
  for (const Hash128& piece : pieces) all.add(piece);
  return all.finish();
}

struct Hasher::State {
  XXH3_state_t xxh;
};

// XXH3_state_t needs 64-byte alignment, which aligned operator new gives.
Hasher::Hasher() : state_(std::make_unique<State>()) {
  HEDDLE_CHECK(XXH3_128bits_reset(&state_->xxh) == XXH_OK);
}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

Hasher& Hasher::add(std::string_view field) {
  add(static_cast<int64_t>(field.size()));
  XXH3_128bits_update(&state_->xxh, field.data(), field.size());
  return *this;
}

Hasher& Hasher::add(int64_t field) {
  XXH3_128bits_update(&state_->xxh, &field, sizeof field);
  return *this;
}

Hasher& Hasher::add(const Hash128& field) {
  XXH3_128bits_update(&state_->xxh, &field, sizeof field);
  return *this;
}

Hash128 Hasher::finish() const {
  return from(XXH3_128bits_digest(&state_->xxh));
}

}  // namespace heddle
