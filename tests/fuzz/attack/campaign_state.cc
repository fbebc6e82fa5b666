#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/fuzz/attack/campaign.h"

namespace heddle::fuzz {

using nlohmann::json;

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

uint64_t Progress::cases() const {
  uint64_t count = failures.size();
  for (const auto& [outcome, cases] : outcomes) count += cases;
  return count;
}

Progress read_progress(const std::string& file) {
  Progress progress;
  if (file.empty() || !std::filesystem::exists(file)) return progress;
  const json j = json::parse(read_bytes(file));
  progress.next = j.at("next");
  progress.unfinished = j.at("unfinished").get<decltype(progress.unfinished)>();
  progress.outcomes = j.at("outcomes").get<decltype(progress.outcomes)>();
  for (const json& f : j.at("failures")) progress.failures.push_back({f.at("seed"), f.at("kind"), f.at("what")});
  progress.builds = j.at("builds").get<decltype(progress.builds)>();
  progress.first_day = j.at("first_day");
  progress.last_day = j.at("last_day");
  progress.seconds = j.at("seconds");
  progress.cpu_seconds = j.at("cpu_seconds");
  return progress;
}

void write_progress(const Progress& progress, const CampaignOptions& options) {
  if (options.state.empty()) return;
  json failures = json::array();
  for (const Failure& f : progress.failures) failures.push_back({{"seed", f.seed}, {"kind", f.kind}, {"what", f.what}});
  const json j = {
      {"attack", options.attack},          {"cases", progress.cases()},          {"next", progress.next},
      {"unfinished", progress.unfinished}, {"outcomes", progress.outcomes},      {"failures", failures},
      {"builds", progress.builds},         {"first_day", progress.first_day},    {"last_day", progress.last_day},
      {"seconds", progress.seconds},       {"cpu_seconds", progress.cpu_seconds}};
  // Texts of errors quote bytes of the case, which need not be UTF-8.
  const std::string text = j.dump(2, ' ', false, json::error_handler_t::replace);
  const std::string aside = options.state + ".new";
  write_bytes(aside, text + "\n");
  std::filesystem::rename(aside, options.state);
}

}  // namespace heddle::fuzz
