#include "profile/json.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "base/check.h"
#include "base/printable.h"

namespace heddle::profile {
namespace {

using nlohmann::json;

constexpr int64_t kMostExact = int64_t{1} << 53;  // integers that every reader of JSON has exactly
constexpr int64_t kMostLine = INT32_MAX;          // what the page can show

// ---- Writing

class Strings {
 public:
  Strings() { number(""); }
  size_t number(const std::string& text) {
    const auto [found, is_new] = numbers_.try_emplace(text, all_.size());
    if (is_new) all_.push_back(text);
    return found->second;
  }
  json table() const { return all_; }

 private:
  std::vector<std::string> all_;
  std::unordered_map<std::string, size_t> numbers_;
};

json metrics_json(const std::vector<Metric>& metrics) {
  json all = json::array();
  for (const Metric& m : metrics) all.push_back({{"name", m.name}, {"unit", m.unit}, {"title", m.title}});
  return all;
}

json columns_of(const CallingContextTree& tree, const std::vector<std::vector<int64_t>>& by_metric) {
  json columns = json::object();
  for (size_t m = 0; m < by_metric.size(); ++m) columns[tree.metrics()[m].name] = by_metric[m];
  return columns;
}

json frames_json(const CallingContextTree& tree, Strings& strings) {
  json kinds = json::array(), names = json::array(), files = json::array(), lines = json::array();
  for (const Frame& frame : tree.frames()) {
    kinds.push_back(frame.kind);
    names.push_back(strings.number(frame.name));
    files.push_back(strings.number(frame.file));
    lines.push_back(frame.line);
  }
  return {{"kind", kinds}, {"name", names}, {"file", files}, {"line", lines}};
}

json nodes_json(const CallingContextTree& tree) {
  json parents = json::array(), frames = json::array();
  for (NodeId node = 0; node < tree.size(); ++node) {
    parents.push_back(node == 0 ? -1 : static_cast<int64_t>(tree.parent(node)));
    frames.push_back(tree.frame_id(node));
  }
  std::vector<std::vector<int64_t>> own;
  for (size_t m = 0; m < tree.metrics().size(); ++m) own.push_back(tree.own(m));
  return {{"parent", parents}, {"frame", frames}, {"values", columns_of(tree, own)}};
}

json roofline_json(const std::vector<RooflineRow>& rows) {
  json all = {{"node", json::array()},
              {"floor_ns", json::array()},
              {"bytes", json::array()},
              {"flops", json::array()},
              {"bound", json::array()}};
  for (const RooflineRow& row : rows) {
    all["node"].push_back(row.node);
    all["floor_ns"].push_back(row.floor_ns);
    all["bytes"].push_back(row.bytes);
    all["flops"].push_back(row.flops);
    all["bound"].push_back(row.bound);
  }
  return all;
}

json timeline_json(const Timeline& timeline) {
  json tracks = json::array(), columns[4];
  for (const Timeline::Track& track : timeline.tracks) {
    tracks.push_back({{"process", track.process}, {"name", track.name}});
  }
  for (json& column : columns) column = json::array();
  for (const Timeline::Slice& slice : timeline.slices) {
    columns[0].push_back(slice.track);
    columns[1].push_back(slice.start);
    columns[2].push_back(slice.duration);
    columns[3].push_back(slice.node);
  }
  return {
      {"tracks", tracks}, {"track", columns[0]}, {"start", columns[1]}, {"duration", columns[2]}, {"node", columns[3]}};
}

json document(const Profile& profile) {
  Strings strings;
  json all = {{"format", "heddle-profile"}, {"version", 1}, {"title", profile.title}, {"facts", profile.facts}};
  all["metrics"] = metrics_json(profile.tree.metrics());
  all["frames"] = frames_json(profile.tree, strings);
  all["nodes"] = nodes_json(profile.tree);
  if (!profile.roofline.empty()) all["roofline"] = roofline_json(profile.roofline);
  if (profile.device) {
    all["device"] = {
        {"name", profile.device->name}, {"bandwidth", profile.device->bandwidth}, {"flops", profile.device->flops}};
  }
  if (!profile.timeline.slices.empty()) all["timeline"] = timeline_json(profile.timeline);
  for (const Source& source : profile.sources) {
    all["sources"].push_back(
        {{"file", strings.number(source.file)}, {"first_line", source.first_line}, {"text", source.text}});
  }
  for (const Advice& a : profile.advice) {
    all["advice"].push_back({{"rule", a.rule},
                             {"node", a.node},
                             {"evidence", a.evidence},
                             {"gain_ns", a.gain_ns},
                             {"share", a.share},
                             {"confidence", a.confidence},
                             {"remedy", a.remedy}});
  }
  all["strings"] = strings.table();
  return all;
}

// Names of a model may be no UTF-8.
std::string text_of(const json& all) {
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

// ---- Reading

class Reader {
 public:
  explicit Reader(const std::string& where) : where_(where) {}

  [[noreturn]] void refuse(const std::string& field, const std::string& why) const {
    fail(ErrorCode::kInvalidInput, where_, fmt::format("{}: {}", field, why),
         "Give a profile that heddle profile wrote; docs/reference/profile-json.md has its form");
  }

  const json& at(const json& object, const char* name, const std::string& of) const {
    if (!object.is_object() || !object.contains(name)) refuse(of + name, "it is missing");
    return object.at(name);
  }
  std::string text(const json& value, const std::string& field) const {
    if (!value.is_string()) refuse(field, "it is no text");
    return value.get<std::string>();
  }
  int64_t integer(const json& value, const std::string& field, int64_t least, int64_t most) const {
    if (!value.is_number_integer()) refuse(field, "it is no integer");
    const bool is_large = value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(kMostExact);
    const int64_t number = is_large ? kMostExact : value.get<int64_t>();
    if (is_large || number < least || number > most) {
      refuse(field, fmt::format("{} is not from {} to {}", value.dump(), least, most));
    }
    return number;
  }
  // A column of integers.
  std::vector<int64_t> column(const json& object, const char* name, const std::string& of, int64_t least,
                              int64_t most) const {
    const json& values = array(object, name, of);
    std::vector<int64_t> numbers;
    numbers.reserve(values.size());
    for (const json& value : values) numbers.push_back(integer(value, of + name, least, most));
    return numbers;
  }
  std::vector<std::string> texts(const json& object, const char* name, const std::string& of) const {
    std::vector<std::string> all;
    for (const json& value : array(object, name, of)) all.push_back(text(value, of + name));
    return all;
  }
  const json& array(const json& object, const char* name, const std::string& of) const {
    const json& values = at(object, name, of);
    if (!values.is_array()) refuse(of + name, "it is no array");
    return values;
  }
  void require_rows(size_t rows, std::initializer_list<size_t> columns, const std::string& of) const {
    for (const size_t column : columns) {
      if (column != rows) refuse(of, fmt::format("it has columns of {} and {} rows", rows, column));
    }
  }

 private:
  const std::string& where_;
};

// Every frame copies its texts, and a small file may refer to one long string from many frames.
void require_short_texts(const Reader& r, const std::vector<Frame>& frames, const Frame& next, size_t& bytes) {
  constexpr size_t kMostBytes = size_t{256} << 20;
  bytes += next.kind.size() + next.name.size() + next.file.size();
  if (bytes <= kMostBytes) return;
  r.refuse("frames", fmt::format("the names of the first {} take more than {} bytes", frames.size() + 1, kMostBytes));
}

std::vector<Frame> read_frames(const Reader& r, const json& all, const std::vector<std::string>& strings) {
  const json& table = r.at(all, "frames", "");
  const auto most = static_cast<int64_t>(strings.size()) - 1;
  const std::vector<std::string> kinds = r.texts(table, "kind", "frames.");
  const std::vector<int64_t> names = r.column(table, "name", "frames.", 0, most),
                             files = r.column(table, "file", "frames.", 0, most),
                             lines = r.column(table, "line", "frames.", 0, kMostLine);
  r.require_rows(kinds.size(), {names.size(), files.size(), lines.size()}, "frames");
  std::vector<Frame> frames;
  size_t bytes = 0;
  for (size_t i = 0; i < kinds.size(); ++i) {
    Frame frame = {kinds[i], strings[static_cast<size_t>(names[i])], strings[static_cast<size_t>(files[i])], lines[i]};
    require_short_texts(r, frames, frame, bytes);
    frames.push_back(std::move(frame));
  }
  return frames;
}

// Views may sum any of the values, also over several profiles.
void require_small_sum(const Reader& r, const std::vector<int64_t>& column, const std::string& field) {
  int64_t sum = 0;
  for (const int64_t value : column) {
    sum += std::abs(value);
    if (sum > kMostTotal) r.refuse(field, fmt::format("its values sum to more than {}", kMostTotal));
  }
}

void read_metrics(const Reader& r, const json& all, const json& values, const std::vector<NodeId>& nodes,
                  CallingContextTree& tree) {
  constexpr size_t kMost = 256, kMostMissing = size_t{1} << 22;
  size_t missing = 0;  // values of metrics without a column: they cost memory but no bytes in the file
  for (const json& metric : r.array(all, "metrics", "")) {
    const Metric m = {r.text(r.at(metric, "name", "metrics."), "metrics.name"),
                      r.text(r.at(metric, "unit", "metrics."), "metrics.unit"),
                      metric.contains("title") ? r.text(metric.at("title"), "metrics.title") : ""};
    const size_t before = tree.metrics().size();
    if (before == kMost) r.refuse("metrics", fmt::format("there are more than {}", kMost));
    const auto same_name = [&](const Metric& known) { return known.name == m.name; };
    if (std::any_of(tree.metrics().begin(), tree.metrics().end(), same_name)) {
      r.refuse("metrics", fmt::format("\"{}\" is there twice", printable(m.name)));
    }
    const bool has_column = values.is_object() && values.contains(m.name);
    if (!has_column && (missing += nodes.size()) > kMostMissing) {
      r.refuse("metrics",
               fmt::format("\"{}\" and those before it have no values for {} nodes", printable(m.name), nodes.size()));
    }
    const size_t number = tree.add_metric(m);
    if (!has_column) continue;
    const std::string field = "nodes.values." + m.name;
    const std::vector<int64_t> column = r.column(values, m.name.c_str(), "nodes.values.", -kMostExact, kMostExact);
    r.require_rows(nodes.size(), {column.size()}, field);
    require_small_sum(r, column, field);
    for (size_t i = 0; i < nodes.size(); ++i) tree.add(nodes[i], number, column[i]);
  }
}

// By node of the file: its node in the tree. Siblings of equal frames become one.
std::vector<NodeId> read_tree(const Reader& r, const json& all, const std::vector<std::string>& strings,
                              CallingContextTree& tree) {
  const std::vector<Frame> frames = read_frames(r, all, strings);
  const json& table = r.at(all, "nodes", "");
  const std::vector<int64_t> frame = r.column(table, "frame", "nodes.", 0, static_cast<int64_t>(frames.size()) - 1);
  const std::vector<int64_t> parents = r.column(table, "parent", "nodes.", -1, static_cast<int64_t>(frame.size()) - 1);
  r.require_rows(parents.size(), {frame.size()}, "nodes");
  if (parents.empty() || parents[0] != -1) r.refuse("nodes.parent", "node 0 is no root, whose parent is -1");
  tree = CallingContextTree(frames[static_cast<size_t>(frame[0])]);
  // Looking up a frame compares its texts, so each is looked up once.
  std::vector<std::optional<FrameId>> ids(frames.size());
  std::vector<NodeId> nodes = {0};
  for (size_t i = 1; i < parents.size(); ++i) {
    if (parents[i] < 0 || parents[i] >= static_cast<int64_t>(i)) {
      r.refuse("nodes.parent", fmt::format("node {} does not follow its parent {}", i, parents[i]));
    }
    const auto of = static_cast<size_t>(frame[i]);
    if (!ids[of]) ids[of] = tree.add_frame(frames[of]);
    nodes.push_back(tree.child(nodes[static_cast<size_t>(parents[i])], *ids[of]));
  }
  read_metrics(r, all, r.at(table, "values", "nodes."), nodes, tree);
  return nodes;
}

void read_roofline(const Reader& r, const json& table, const std::vector<NodeId>& nodes, Profile& profile) {
  const auto last = static_cast<int64_t>(nodes.size()) - 1;
  const std::vector<int64_t> node = r.column(table, "node", "roofline.", 0, last),
                             floor = r.column(table, "floor_ns", "roofline.", 0, kMostExact),
                             bytes = r.column(table, "bytes", "roofline.", 0, kMostExact),
                             flops = r.column(table, "flops", "roofline.", 0, kMostExact);
  const std::vector<std::string> bound = r.texts(table, "bound", "roofline.");
  r.require_rows(node.size(), {floor.size(), bytes.size(), flops.size(), bound.size()}, "roofline");
  for (size_t i = 0; i < node.size(); ++i) {
    profile.roofline.push_back({nodes[static_cast<size_t>(node[i])], floor[i], bytes[i], flops[i], bound[i]});
  }
}

void read_timeline(const Reader& r, const json& table, const std::vector<NodeId>& nodes, Profile& profile) {
  for (const json& track : r.array(table, "tracks", "timeline.")) {
    profile.timeline.tracks.push_back({r.text(r.at(track, "process", "timeline.tracks."), "timeline.tracks.process"),
                                       r.text(r.at(track, "name", "timeline.tracks."), "timeline.tracks.name")});
  }
  const auto tracks = static_cast<int64_t>(profile.timeline.tracks.size());
  const std::vector<int64_t> track = r.column(table, "track", "timeline.", 0, tracks - 1),
                             start = r.column(table, "start", "timeline.", 0, kMostExact),
                             duration = r.column(table, "duration", "timeline.", 0, kMostExact),
                             node = r.column(table, "node", "timeline.", -1, static_cast<int64_t>(nodes.size()) - 1);
  r.require_rows(track.size(), {start.size(), duration.size(), node.size()}, "timeline");
  for (size_t i = 0; i < track.size(); ++i) {
    const int64_t of = node[i] < 0 ? -1 : int64_t{nodes[static_cast<size_t>(node[i])]};
    profile.timeline.slices.push_back({static_cast<uint32_t>(track[i]), start[i], duration[i], of});
  }
}

void read_rest(const Reader& r, const json& all, const std::vector<std::string>& strings,
               const std::vector<NodeId>& nodes, Profile& profile) {
  if (all.contains("device")) {
    const json& device = all.at("device");
    profile.device = Device{r.text(r.at(device, "name", "device."), "device.name"),
                            r.integer(r.at(device, "bandwidth", "device."), "device.bandwidth", 0, kMostExact),
                            {}};
    if (device.contains("flops") && device.at("flops").is_object()) {
      for (const auto& [type, rate] : device.at("flops").items()) {
        profile.device->flops[type] = r.integer(rate, "device.flops." + type, 0, kMostExact);
      }
    }
  }
  const auto last_string = static_cast<int64_t>(strings.size()) - 1;
  if (all.contains("sources")) {
    for (const json& source : r.array(all, "sources", "")) {
      const int64_t file = r.integer(r.at(source, "file", "sources."), "sources.file", 0, last_string);
      profile.sources.push_back({strings[static_cast<size_t>(file)],
                                 r.integer(r.at(source, "first_line", "sources."), "sources.first_line", 0, kMostLine),
                                 r.text(r.at(source, "text", "sources."), "sources.text")});
    }
  }
  if (!all.contains("advice")) return;
  for (const json& a : r.array(all, "advice", "")) {
    const auto text = [&](const char* name) { return r.text(r.at(a, name, "advice."), std::string("advice.") + name); };
    const int64_t node =
        r.integer(r.at(a, "node", "advice."), "advice.node", 0, static_cast<int64_t>(nodes.size()) - 1);
    const json& share = r.at(a, "share", "advice.");
    if (!share.is_number()) r.refuse("advice.share", "it is no number");
    profile.advice.push_back({text("rule"), nodes[static_cast<size_t>(node)], text("evidence"),
                              r.integer(r.at(a, "gain_ns", "advice."), "advice.gain_ns", 0, kMostExact),
                              share.get<double>(), text("confidence"), text("remedy")});
  }
}

// How deep values nest.
size_t nesting(std::string_view text) {
  size_t depth = 0, most = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '[' || c == '{') {
      most = std::max(most, ++depth);
    } else if (c == ']' || c == '}') {
      depth -= depth > 0 ? 1 : 0;
    } else {
      in_string = c == '"';
    }
  }
  return most;
}

}  // namespace

std::string to_json(const Profile& profile) {
  return text_of(document(profile));
}

std::string to_json(const Difference& difference) {
  json all = document(difference.profile);
  all["format"] = "heddle-profile-difference";
  all["nodes"]["before"] = columns_of(difference.profile.tree, difference.before);
  return text_of(all);
}

Profile parse(std::string_view text, const std::string& where) {
  constexpr size_t kMostNesting = 64;  // a profile's own depth, and room for fields of later versions
  const Reader r(where);
  if (nesting(text) > kMostNesting) {
    r.refuse("the file", fmt::format("it nests values deeper than {} levels", kMostNesting));
  }
  const json all = json::parse(text, nullptr, false);
  if (all.is_discarded()) r.refuse("the file", "it is no JSON, or its end is missing");
  const std::string format = r.text(r.at(all, "format", ""), "format");
  if (format != "heddle-profile") {
    r.refuse("format", fmt::format("it is \"{}\" and not \"heddle-profile\"", printable(format)));
  }
  r.integer(r.at(all, "version", ""), "version", 1, 1);
  Profile profile;
  profile.title = r.text(r.at(all, "title", ""), "title");
  for (const json& fact : r.array(all, "facts", "")) {
    if (!fact.is_array() || fact.size() != 2) r.refuse("facts", "one of them is no pair");
    profile.facts.emplace_back(r.text(fact[0], "facts"), r.text(fact[1], "facts"));
  }
  const std::vector<std::string> strings = r.texts(all, "strings", "");
  const std::vector<NodeId> nodes = read_tree(r, all, strings, profile.tree);
  if (all.contains("roofline")) read_roofline(r, all.at("roofline"), nodes, profile);
  if (all.contains("timeline")) read_timeline(r, all.at("timeline"), nodes, profile);
  read_rest(r, all, strings, nodes, profile);
  return profile;
}

}  // namespace heddle::profile
