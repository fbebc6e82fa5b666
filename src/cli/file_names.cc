#include "cli/file_names.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "base/printable.h"

namespace heddle::cli {
namespace {

constexpr size_t kMostBytes = 180;  // a file system allows 255, of which a file that is being written takes some more
constexpr const char* kSuffix = ".npy";

std::string safe(std::string_view name) {
  // What is no text is a backslash and more in printable(), and a backslash is no part of a name here.
  std::string out = printable(name);
  for (char& c : out) {
    if (c == '/' || c == '\\') c = '_';
  }
  if (out.starts_with('.') || out.starts_with('-')) out[0] = '_';
  if (out.empty()) out = "output";
  if (out.size() <= kMostBytes) return out;
  size_t end = kMostBytes;
  while ((static_cast<unsigned char>(out[end]) & 0xc0) == 0x80) --end;  // between two characters
  return out.substr(0, end);
}

}  // namespace

std::vector<std::string> output_files(const std::vector<std::string>& outputs) {
  std::vector<std::string> files(outputs.size());
  std::set<std::string> taken;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (safe(outputs[i]) == outputs[i] && taken.insert(outputs[i]).second) files[i] = outputs[i];
  }
  std::map<std::string, size_t> used;  // by what several outputs want to be called: how many are
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!files[i].empty()) continue;
    const std::string base = safe(outputs[i]);
    files[i] = base;
    size_t& count = used.emplace(base, 1).first->second;
    while (!taken.insert(files[i]).second) files[i] = fmt::format("{}-{}", base, ++count);
  }
  for (std::string& file : files) file += kSuffix;
  return files;
}

}  // namespace heddle::cli
