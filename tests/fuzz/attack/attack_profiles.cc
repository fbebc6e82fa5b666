// Profiles, in the JSON form that `heddle profile show`, diff and merge read.
#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file/file.h"
#include "cli/capture.h"
#include "cli/commands/profile_text.h"
#include "heddle/error.h"
#include "profile/exports.h"
#include "profile/json.h"
#include "profile/page.h"
#include "profile/rank_advice.h"
#include "tests/fuzz/attack/attack.h"
#include "tests/fuzz/hostile/mend.h"
#include "tests/profile/random_profile.h"

namespace heddle::fuzz {
namespace {

using nlohmann::json;

json any_value(Rng& rng) {
  static const std::vector<double> numbers = {-1, 0.5, -0.0, 1e18, 1e300, 4.9e-324};
  static const std::vector<std::string> texts = {"", "ns", "node", "kernel", "\x01", "\xf0\x9f\xa7\xb5", "</script>"};
  switch (rng.range(0, 7)) {
    case 0:
      return nullptr;
    case 1:
      return rng.chance(0.5);
    case 2:
      return rng.pick(numbers);
    case 3:
      return rng.pick(texts);
    case 4:
      return std::string(static_cast<size_t>(rng.range(1, 100000)), 'n');
    case 5:
      return json::array();
    case 6:
      return json::object();
    default:
      return rng.chance(0.5) ? json(interesting(rng)) : json(-static_cast<int64_t>(interesting(rng) >> 1));
  }
}

// Any value of a document, most often one that is not deep.
json& any_part(json& document, Rng& rng) {
  json* part = &document;
  while (part->is_structured() && !part->empty() && (part == &document || rng.chance(0.75))) {
    auto at = part->begin();
    std::advance(at, rng.range(0, static_cast<int64_t>(part->size()) - 1));
    part = &*at;
  }
  return *part;
}

void edit_part(json& document, Rng& rng) {
  json& part = any_part(document, rng);
  switch (rng.range(0, 5)) {
    case 0:
      part = any_value(rng);
      return;
    case 1:
      part = json(any_part(document, rng));
      return;
    case 2:
      if (part.is_structured()) part.clear();
      return;
    case 3:
      if (part.is_array() && !part.empty()) part.erase(part.size() - 1);
      return;
    case 4:
      if (part.is_array() && !part.empty()) part.push_back(json(part.front()));
      return;
    default:
      if (part.is_number_integer()) part = part.get<int64_t>() + rng.range(-2, 2);
  }
}

// A table whose columns stay of equal length: rows repeated, or all of them in another order.
void edit_table(json& table, Rng& rng) {
  if (!table.is_object() || table.empty()) return;
  const size_t rows = table.front().size(), copies = static_cast<size_t>(rng.range(1, 20));
  const auto from = static_cast<size_t>(rng.range(0, static_cast<int64_t>(rows)));
  const std::function<void(json&)> edit = [&](json& column) {
    if (column.is_object()) {
      for (json& inner : column) edit(inner);
    }
    if (!column.is_array() || column.size() != rows) return;
    const json before = column;
    for (size_t copy = 0; copy < copies; ++copy)
      column.insert(column.end(), before.begin() + static_cast<int64_t>(from), before.end());
  };
  edit(table);
}

// In place of the tree one node below the other, more of them than a stack has room for, or all below the root.
void replace_tree(json& document, Rng& rng) {
  static const std::vector<int64_t> lengths = {2, 300, 300, 2000, 20000, 60000};
  const int64_t length = rng.pick(lengths), frames = static_cast<int64_t>(document["frames"]["kind"].size());
  const bool is_chain = rng.chance(0.8), has_values = rng.chance(0.5), cycle = rng.chance(0.1);
  json parents = json::array(), of = json::array(), values = json::array();
  for (int64_t node = 0; node < length; ++node) {
    parents.push_back(is_chain || node == 0 ? node - 1 : 0);
    of.push_back(rng.range(0, frames - 1));
    values.push_back(has_values || node + 1 == length ? rng.range(0, 1000) : 0);
  }
  if (cycle) parents[static_cast<size_t>(rng.range(0, length - 1))] = rng.range(-1, length);
  json columns = json::object();
  for (const json& metric : document["metrics"]) columns[metric["name"].get<std::string>()] = values;
  document["nodes"] = {{"parent", std::move(parents)}, {"frame", std::move(of)}, {"values", std::move(columns)}};
}

// Slices that overlap without nesting.
void replace_timeline(json& document, Rng& rng) {
  const int64_t count = rng.range(1, 5000), step = rng.range(0, 3);
  json columns[4];
  for (json& column : columns) column = json::array();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t values[] = {0, i * step, rng.range(0, 10000), -1};
    for (size_t c = 0; c < 4; ++c) columns[c].push_back(values[c]);
  }
  document["timeline"] = {{"tracks", {{{"process", "p"}, {"name", "t"}}}},
                          {"track", columns[0]},
                          {"start", columns[1]},
                          {"duration", columns[2]},
                          {"node", columns[3]}};
}

std::string damaged(Rng& rng) {
  json document = json::parse(profile::to_json(test::random_profile(static_cast<unsigned>(rng.range(1, 50)))));
  document["facts"].push_back({"process", fmt::format("rank {}", rng.range(0, 3))});
  if (rng.chance(0.2)) replace_tree(document, rng);
  if (rng.chance(0.1)) replace_timeline(document, rng);
  if (rng.chance(0.1)) edit_table(document[rng.chance(0.5) ? "frames" : "roofline"], rng);
  if (rng.chance(0.05)) document["metrics"] = json::array();
  if (rng.chance(0.05) && !document["metrics"].empty()) {
    document["metrics"].push_back(json(document["metrics"].front()));
  }
  for (int64_t edits = rng.range(0, 3); edits > 0; --edits) edit_part(document, rng);
  std::string text = document.dump(-1, ' ', false, json::error_handler_t::replace);
  if (rng.chance(0.03)) text = std::string(static_cast<size_t>(rng.range(1, 1000000)), rng.chance(0.5) ? '[' : '{');
  if (rng.chance(0.2)) {
    for (int64_t edits = rng.range(1, 4); edits > 0; --edits) edit_binary(text, 0, rng);
  }
  return text;
}

// What could not be done with a profile, the first error of them.
class Attempts {
 public:
  void try_to(const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kInternal) throw;
      if (!first_) first_ = error;
    }
  }
  void report() const {
    if (first_) throw Error(*first_);
  }

 private:
  std::optional<Error> first_;
};

void show_everywhere(const profile::Profile& p, Attempts& attempts) {
  constexpr int kRows = 20;
  attempts.try_to([&] { cli::captured([&] { cli::print_profile(p, kRows); }); });
  attempts.try_to([&] { profile::page(profile::to_json(p), p.title); });
  attempts.try_to([&] { profile::folded_stacks(p, 0); });
  attempts.try_to([&] { profile::speedscope(p); });
  attempts.try_to([&] { profile::pprof(p); });
  attempts.try_to([&] { profile::perfetto(p); });
}

void compare(const profile::Profile& older, const profile::Profile& newer) {
  constexpr int kRows = 20;
  const profile::Difference difference = profile::difference(older, newer);
  cli::captured([&] { cli::print_difference(difference, kRows); });
  profile::page(profile::to_json(difference), difference.profile.title);
}

class ProfilesAttack : public Attack {
 public:
  void make(uint64_t seed, const std::string& folder) override {
    Rng rng(seed);
    write_bytes(folder + "/a.json", damaged(rng));
    const bool is_whole = rng.chance(0.6);
    write_bytes(folder + "/b.json", is_whole ? profile::to_json(test::random_profile(1)) : damaged(rng));
  }

  std::string run(uint64_t, const std::string& folder) override {
    Attempts attempts;
    std::vector<profile::Profile> parts;
    for (const char* name : {"/a.json", "/b.json"}) {
      attempts.try_to([&] { parts.push_back(profile::parse(MappedFile::read(folder + name)->text(), name)); });
    }
    for (const profile::Profile& part : parts) show_everywhere(part, attempts);
    if (parts.size() == 2) {
      attempts.try_to([&] { compare(parts[0], parts[1]); });
      attempts.try_to([&] { compare(parts[1], parts[0]); });
      attempts.try_to([&] { show_everywhere(profile::merge_processes(parts), attempts); });
    }
    attempts.report();
    return "ok";
  }
};

}  // namespace

std::unique_ptr<Attack> make_profiles_attack() {
  return std::make_unique<ProfilesAttack>();
}

}  // namespace heddle::fuzz
