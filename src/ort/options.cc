#include "ort/options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <vector>

#include "base/check.h"
#include "base/near_miss.h"
#include "driver/options/options.h"

namespace heddle::ort {
namespace {

[[noreturn]] void refuse(const std::string& key, const std::string& why, std::string remedy) {
  fail(ErrorCode::kInvalidArgument, fmt::format("option {} of {}", key, kName), why, std::move(remedy));
}

int64_t number_of(const std::string& key, std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) {
    refuse(key, fmt::format("\"{}\" is not a number", text), "Write digits alone");
  }
  return number;
}

bool flag_of(const std::string& key, const std::string& text) {
  if (text == "1") return true;
  if (text != "0") refuse(key, fmt::format("\"{}\" is neither 0 nor 1", text), "Write 0 or 1");
  return false;
}

std::vector<std::string> items_of(const std::string& text) {
  std::vector<std::string> items;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    items.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return items;
}

void take_ranges(CompileOptions& options, const std::string& text) {
  for (const std::string& item : items_of(text)) {
    const size_t equals = item.rfind('='), dots = item.find("..", equals == std::string::npos ? 0 : equals);
    if (equals == std::string::npos || equals == 0 || dots == std::string::npos) {
      refuse("ranges", fmt::format("\"{}\" is not of the form EXTENT=MIN..MAX", item),
             "Write, for example, seq=1..512");
    }
    options.ranges[item.substr(0, equals)] = {number_of("ranges", item.substr(equals + 1, dots - equals - 1)),
                                              number_of("ranges", item.substr(dots + 2))};
  }
}

struct Key {
  const char* name;
  void (*take)(Options& options, const std::string& value);
};

constexpr Key kKeys[] = {
    {"alias",
     [](Options& o, const std::string& v) {
       for (const std::string& item : items_of(v)) driver::add_alias(o.compile, item, "alias");
     }},
    {"background", [](Options& o, const std::string& v) { o.compile.background = flag_of("background", v); }},
    {"cache", [](Options& o, const std::string& v) { o.compile.use_cache = flag_of("cache", v); }},
    {"cache_folder",
     [](Options&, const std::string& v) {
       if (v.empty()) refuse("cache_folder", "it is empty", "Name a folder");
       driver::use_cache_folder(v);
     }},
    {"graph_capture",
     [](Options& o, const std::string& v) {
       o.captures_graphs = flag_of("graph_capture", v);
       if (o.captures_graphs && o.compile.target == "cpu") {
         refuse("graph_capture", "the session runs on a CPU", "Choose a GPU, or leave the option out");
       }
     }},
    {"precision", [](Options& o, const std::string& v) { o.compile.precision = v; }},
    {"ranges", [](Options& o, const std::string& v) { take_ranges(o.compile, v); }},
    {"regions",
     [](Options& o, const std::string& v) {
       if (v != "gain" && v != "all") refuse("regions", fmt::format("\"{}\" is unknown", v), "Use gain or all");
       o.all_regions = v == "all";
     }},
    {"threads",
     [](Options& o, const std::string& v) { o.compile.threads = static_cast<int>(number_of("threads", v)); }},
};

std::vector<std::string_view> key_names() {
  std::vector<std::string_view> names;
  for (const Key& key : kKeys) names.emplace_back(key.name);
  return names;
}

// ONNX Runtime puts the options of a provider among those of the session.
std::string prefix() {
  std::string name = kName;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return "ep." + name + ".";
}

void take_session_option(Options& options, const std::string& key, const std::string& value) {
  if (key == "session.disable_cpu_ep_fallback") {
    // The user wants every node here: an error follows if one stays with ONNX Runtime.
    options.all_regions = options.all_regions || value == "1";
  } else if (key == "ep.context_enable") {
    options.writes_context = value == "1";
  } else if (key == "ep.context_embed_mode") {
    options.embeds_plans = value == "1";
  } else if (key == "ep.context_file_path") {
    options.context_path = value;
  }
}

}  // namespace

Options parse_options(const std::map<std::string, std::string>& entries, const std::string& target) {
  Options options;
  options.compile.target = target;
  options.compile.callers_memory = target != "cpu";
  const std::string own = prefix();
  for (const auto& [key, value] : entries) {
    if (!key.starts_with(own)) {
      take_session_option(options, key, value);
      continue;
    }
    const std::string name = key.substr(own.size());
    const auto found = std::find_if(std::begin(kKeys), std::end(kKeys), [&](const Key& k) { return name == k.name; });
    if (found == std::end(kKeys)) {
      const auto names = key_names();
      refuse(name, "there is no such option",
             did_you_mean(name, names) + fmt::format("The options are {}", fmt::join(names, ", ")));
    }
    found->take(options, value);
  }
  driver::resolve(options.compile);
  return options;
}

Options read_options(const Runtime& runtime, const OrtSessionOptions* session, const std::string& target) {
  auto* const pairs = runtime.get<OrtKeyValuePairs*>(api::kGetSessionOptionsConfigEntries, session);
  const std::shared_ptr<OrtKeyValuePairs> owner(
      pairs, [&](OrtKeyValuePairs* p) { runtime.api()(api::kReleaseKeyValuePairs, p); });
  const char* const* keys = nullptr;
  const char* const* values = nullptr;
  size_t count = 0;
  runtime.api()(api::kGetKeyValuePairs, pairs, &keys, &values, &count);
  std::map<std::string, std::string> entries;
  for (size_t i = 0; i < count; ++i) entries[keys[i]] = values[i];
  return parse_options(entries, target);
}

}  // namespace heddle::ort
