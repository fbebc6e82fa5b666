#include "jit/headers.h"

#include "base/file/file.h"
#include "heddle/error.h"
#include "jit/cache.h"

namespace heddle::jit {
namespace {

// Of a file that others may write to the text may be another one by the time a compiler reads it.
bool holds(const std::string& path, std::string_view text) {
  if (!file_exists(path)) return false;
  try {
    return MappedFile::read(path, From::kOwn)->text() == text;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

Hash128 headers_hash() {
  static const Hash128 hash = [] {
    Hasher hasher;
    for (const EmbeddedHeader& header : embedded_headers()) hasher.add(header.path).add(header.text);
    return hasher.finish();
  }();
  return hash;
}

void materialise_headers(const std::string& root) {
  for (const EmbeddedHeader& header : embedded_headers()) {
    const std::string path = root + "/" + std::string(header.path);
    if (holds(path, header.text)) continue;
    make_directories(path.substr(0, path.rfind('/')));
    write_file(path, header.text, Sync::kNo);  // compared with the text at each use
  }
}

std::string header_folder(const std::string& fallback, bool use_cache) {
  if (use_cache) {
    const std::string folder = Cache::of_user().subfolder("headers-" + headers_hash().hex());
    try {
      if (!folder.empty()) {
        materialise_headers(folder);
        return folder;
      }
    } catch (const Error&) {
      // The cache itself warns when an entry is stored.
    }
  }
  const auto lock = hold_temporary_folders();
  materialise_headers(fallback);
  return fallback;
}

}  // namespace heddle::jit
