#include "driver/compile/kernel_override.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/check.h"
#include "base/file/file.h"
#include "base/file/trust.h"
#include "base/printable.h"
#include "driver/compile/kernel_file.h"

namespace heddle::driver {
namespace {

namespace fs = std::filesystem;

// A path as the C++ preprocessor reads it in quotes.
std::string quoted(const std::string& path) {
  std::string text = "\"";
  for (const char c : printable(path)) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

// Compilers name the file, and its lines.
std::string located(const std::string& path, std::string_view content) {
  return fmt::format("#line 1 {}\n{}\n#line 1 \"generated\"\n", quoted(path), content);
}

std::vector<fs::path> entries_of(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator(); at.increment(error)) {
    paths.push_back(at->path());
  }
  if (error) fail(ErrorCode::kFile, folder, "it cannot be read: " + error.message(), "Name a folder of kernel texts");
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

std::optional<std::string> override_folder() {
  const char* folder = std::getenv("HEDDLE_KERNEL_OVERRIDE");
  return folder == nullptr || *folder == '\0' ? std::nullopt : std::optional<std::string>(folder);
}

std::map<std::string, EditedText> read_edited_texts(const std::string& folder, const Target& target) {
  if (const auto distrust = distrust_of_folder(folder)) {
    fail(ErrorCode::kFile, distrust->where, "HEDDLE_KERNEL_OVERRIDE names it, but " + distrust->why, distrust->remedy);
  }
  std::map<std::string, EditedText> edited;
  for (const fs::path& path : entries_of(folder)) {
    const std::string symbol = path.stem();
    if (kernel_file_name(symbol, target) != path.filename()) continue;
    const auto file = MappedFile::read(path, From::kOwn);
    if (is_unedited(file->text())) continue;
    edited[symbol] = {path, {symbol, {}, located(path, file->text())}};
  }
  return edited;
}

}  // namespace heddle::driver
