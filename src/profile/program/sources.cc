#include "profile/program/sources.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>

#include "profile/views.h"

namespace heddle::profile {
namespace {

std::string shown_file(const std::string& file, const std::string& folder) {
  if (!folder.empty() && file.starts_with(folder + "/")) return file.substr(folder.size() + 1);
  for (const std::string_view packages : {"/site-packages/", "/dist-packages/"}) {
    if (const size_t at = file.rfind(packages); at != file.npos) return file.substr(at + packages.size());
  }
  constexpr std::string_view kLibrary = "/lib/python3";
  const size_t at = file.rfind(kLibrary);
  const size_t end = at == file.npos ? at : file.find('/', at + kLibrary.size());
  return end == file.npos ? file : file.substr(end + 1);
}

// Files of Python by the largest value of one of their lines, the heaviest first.
std::vector<std::string> heavy_files(const Profile& profile) {
  const std::optional<size_t> metric = time_metric(profile.tree);
  if (!metric) return {};
  constexpr int64_t kSmallestPart = 200;
  std::map<std::string, int64_t> heaviest;
  for (const Row& row : flat(profile.tree, *metric)) {
    const Frame& frame = profile.tree.frames()[row.frame];
    if (frame.kind != "python" || frame.line == 0) continue;
    int64_t& value = heaviest[frame.file];
    value = std::max(value, row.inclusive);
  }
  const int64_t total = profile.tree.total(*metric);
  std::vector<std::pair<int64_t, std::string>> files;
  for (const auto& [file, value] : heaviest) {
    if (value > 0 && value >= total / kSmallestPart) files.emplace_back(-value, file);
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> result;
  for (const auto& [value, file] : files) result.push_back(file);
  return result;
}

}  // namespace

Profile with_sources(const Profile& profile, const std::string& folder) {
  Profile result = relabelled(profile, [&](Frame frame) -> std::optional<Frame> {
    if (frame.kind == "python") frame.file = shown_file(frame.file, folder);
    return frame;
  });
  constexpr size_t kMostBytes = 200 * 1024;
  size_t bytes = 0;
  for (const std::string& file : heavy_files(profile)) {
    std::ifstream stream(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    if (text.empty() || bytes + text.size() > kMostBytes) continue;
    bytes += text.size();
    result.sources.push_back({shown_file(file, folder), 1, text});
  }
  return result;
}

}  // namespace heddle::profile
