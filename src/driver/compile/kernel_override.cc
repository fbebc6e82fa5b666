#include "driver/compile/kernel_override.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <set>
#include <system_error>

#include "base/check.h"
#include "base/file/file.h"
#include "base/file/trust.h"
#include "base/log.h"
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

// Texts in the folder that a kernel of this process used.
struct UsedFiles {
  std::mutex mutex;
  std::set<std::string> paths;
};

UsedFiles& used_files() {
  static UsedFiles files;
  return files;
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

void tell_used_texts(const KernelSet& kernels) {
  for (const auto& [symbol, edited] : kernels.edited()) {
    {
      const std::lock_guard lock(used_files().mutex);
      if (!used_files().paths.insert(edited.file).second) continue;
    }
    log(LogLevel::kWarning, fmt::format("{} is used in place of the generated kernel", edited.file));
  }
}

void tell_unused_texts(const std::string& model, const Target& target) {
  const std::optional<std::string> folder = override_folder();
  if (!folder) return;
  for (const auto& [symbol, edited] : read_edited_texts(*folder, target)) {
    const std::lock_guard lock(used_files().mutex);
    if (used_files().paths.contains(edited.file)) continue;
    warn_once(fmt::format("{} is not used: no kernel of {} has this name at these shapes", edited.file, model));
  }
}

}  // namespace heddle::driver
