#include "base/hash.h"

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/file/beneath.h"
#include "base/thread/thread.h"
#include "base/thread/thread_pool.h"

namespace heddle {
namespace {

constexpr size_t kPiece = 16 << 20;

constexpr size_t kBuffer = 1 << 20;

Hash128 from(XXH128_hash_t hash) {
  return {hash.high64, hash.low64};
}

template <typename HashPiece>
Hash128 hash_pieces(size_t bytes, int threads, HashPiece hash_piece) {
  std::vector<Hash128> pieces((bytes + kPiece - 1) / kPiece);
  const std::unique_ptr<ThreadPool> pool =
      pool_of_up_to(std::min(threads, static_cast<int>(std::max<size_t>(pieces.size(), 1))));
  pool->run(static_cast<int64_t>(pieces.size()), [&](int64_t first, int64_t last, int) {
    for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
      pieces[i] = hash_piece(i * kPiece, std::min(kPiece, bytes - i * kPiece));
    }
  });
  Hasher all;
  all.add(static_cast<int64_t>(bytes));
  for (const Hash128& piece : pieces) all.add(piece);
  return all.finish();
}

[[noreturn]] void fail_read(const std::string& path, int error) {
  if (error != 0) fail_errno(path, "reading", error);
  fail(ErrorCode::kFile, path, "reading failed: it ended early");
}

Hash128 hash_piece_of(int fd, const std::string& path, size_t offset, size_t bytes) {
  const auto state = std::make_unique<XXH3_state_t>();
  XXH3_128bits_reset(state.get());
  std::vector<char> buffer(kBuffer);
  while (bytes > 0) {
    const ssize_t got = ::pread(fd, buffer.data(), std::min(bytes, kBuffer), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail_read(path, got < 0 ? errno : 0);
    XXH3_128bits_update(state.get(), buffer.data(), static_cast<size_t>(got));
    offset += static_cast<size_t>(got);
    bytes -= static_cast<size_t>(got);
  }
  return from(XXH3_128bits_digest(state.get()));
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
  return hash_pieces(bytes, threads, [&](size_t offset, size_t size) { return hash_bytes(begin + offset, size); });
}

Hash128 hash_file(const std::string& path, int threads) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail_read(path, errno);
  return hash_file(file.get(), path, threads);
}

Hash128 hash_file(int fd, const std::string& path, int threads) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) fail_read(path, errno);
  return hash_pieces(static_cast<size_t>(status.st_size), threads,
                     [&](size_t offset, size_t size) { return hash_piece_of(fd, path, offset, size); });
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
