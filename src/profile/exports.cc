#include "profile/exports.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <protozero/pbf_writer.hpp>
#include <queue>
#include <unordered_map>

#include "base/check.h"
#include "profile/views.h"

namespace heddle::profile {
namespace {

// The frames of the path to a node, the root first.
std::vector<FrameId> path_to(const CallingContextTree& tree, NodeId node) {
  std::vector<FrameId> path = {tree.frame_id(node)};
  for (; node != 0; node = tree.parent(node)) path.push_back(tree.frame_id(tree.parent(node)));
  std::reverse(path.begin(), path.end());
  return path;
}

bool has_values(const CallingContextTree& tree, NodeId node) {
  for (size_t m = 0; m < tree.metrics().size(); ++m) {
    if (tree.own(m)[node] != 0) return true;
  }
  return false;
}

class StringTable {
 public:
  StringTable() { number(""); }
  uint64_t number(const std::string& text) {
    const auto [found, is_new] = numbers_.try_emplace(text, all_.size());
    if (is_new) all_.push_back(text);
    return found->second;
  }
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::vector<std::string> all_;
  std::unordered_map<std::string, uint64_t> numbers_;
};

// These formats repeat the whole path for each row, so a deep tree takes the square of its size.
void require_size(const Profile& profile, const char* form, uint64_t size, uint64_t most, const char* of) {
  if (size <= most) return;
  fail(ErrorCode::kInvalidInput, profile.title,
       fmt::format("its calls are nested so deep that {} would take more than {} {}", form, most, of),
       "Take the trace, the page or the profile's own form, which write each row once");
}

// The number of frames on the paths of all nodes, each path counted `count_of` times; if that exceeds `most`, any
// number above `most`.
template <typename CountOf>
uint64_t frames_on_paths(const CallingContextTree& tree, uint64_t most, const CountOf& count_of) {
  std::vector<uint32_t> depth(tree.size(), 1);
  uint64_t frames = 0;
  for (NodeId node = 0; node < tree.size() && frames <= most; ++node) {
    if (node > 0) depth[node] = depth[tree.parent(node)] + 1;
    frames += depth[node] * static_cast<uint64_t>(count_of(node));
  }
  return frames;
}

constexpr uint64_t kMostFramesWritten = uint64_t{1} << 26;

std::string unit_of(const Metric& metric, const char* of_time, const char* of_counts) {
  if (metric.unit == "ns") return of_time;
  return metric.unit.empty() ? of_counts : metric.unit;
}

}  // namespace

std::string folded_stacks(const Profile& profile, size_t metric) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 29;
  const CallingContextTree& tree = profile.tree;
  if (tree.metrics().empty()) return "";
  const std::vector<int64_t>& own = tree.own(metric);
  const uint64_t frames = frames_on_paths(tree, kMostFramesWritten, [&](NodeId node) { return own[node] > 0 ? 1 : 0; });
  require_size(profile, "folded stacks", frames, kMostFramesWritten, "frames");
  std::vector<uint64_t> path_bytes(tree.size(), 0);
  uint64_t bytes = 0;
  for (NodeId node = 0; node < tree.size() && bytes <= kMostBytes; ++node) {
    path_bytes[node] = (node == 0 ? 0 : path_bytes[tree.parent(node)]) + tree.frame(node).name.size() + 1;
    if (own[node] > 0) bytes += path_bytes[node];
  }
  require_size(profile, "folded stacks", bytes, kMostBytes, "bytes");
  std::vector<std::string> names;  // by frame
  for (const Frame& frame : tree.frames()) {
    std::string& name = names.emplace_back(frame.name);
    // Separators of frames and lines cannot be part of a name.
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == ';' || c == '\n' || c == '\r'; }, '_');
  }
  std::string text;
  for (NodeId node = 0; node < tree.size(); ++node) {
    if (own[node] <= 0) continue;
    const char* before = "";
    for (const FrameId frame : path_to(tree, node)) {
      text.append(before).append(names[frame]);
      before = ";";
    }
    text += fmt::format(" {}\n", own[node]);
  }
  return text;
}

std::string speedscope(const Profile& profile) {
  using nlohmann::json;
  const CallingContextTree& tree = profile.tree;
  const uint64_t written = frames_on_paths(tree, kMostFramesWritten, [&](NodeId node) {
    uint64_t samples = 0;
    for (size_t m = 0; m < tree.metrics().size(); ++m) samples += tree.own(m)[node] > 0 ? 1 : 0;
    return samples;
  });
  require_size(profile, "speedscope's form", written, kMostFramesWritten, "frames");
  json frames = json::array(), profiles = json::array();
  for (const Frame& frame : tree.frames()) {
    json one = {{"name", frame.name}};
    if (!frame.file.empty()) one["file"] = frame.file;
    if (frame.line > 0) one["line"] = frame.line;
    frames.push_back(std::move(one));
  }
  for (size_t m = 0; m < tree.metrics().size(); ++m) {
    json samples = json::array(), weights = json::array();
    int64_t total = 0;
    for (NodeId node = 0; node < tree.size(); ++node) {
      const int64_t value = tree.own(m)[node];
      if (value <= 0) continue;
      samples.push_back(path_to(tree, node));
      weights.push_back(value);
      total += value;
    }
    const Metric& metric = tree.metrics()[m];
    profiles.push_back({{"type", "sampled"},
                        {"name", metric.title.empty() ? metric.name : metric.title},
                        {"unit", unit_of(metric, "nanoseconds", "none")},
                        {"startValue", 0},
                        {"endValue", total},
                        {"samples", std::move(samples)},
                        {"weights", std::move(weights)}});
  }
  const json all = {{"$schema", "https://www.speedscope.app/file-format-schema.json"},
                    {"exporter", "heddle"},
                    {"name", profile.title},
                    {"shared", {{"frames", std::move(frames)}}},
                    {"profiles", std::move(profiles)}};
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string pprof(const Profile& profile) {
  using Writer = protozero::pbf_writer;
  const CallingContextTree& tree = profile.tree;
  const uint64_t written =
      frames_on_paths(tree, kMostFramesWritten, [&](NodeId node) { return has_values(tree, node) ? 1 : 0; });
  require_size(profile, "pprof's form", written, kMostFramesWritten, "frames");
  std::string out;
  Writer file(out);
  StringTable strings;
  for (const Metric& metric : tree.metrics()) {
    Writer type(file, 1);
    type.add_int64(1, static_cast<int64_t>(strings.number(metric.name)));
    type.add_int64(2, static_cast<int64_t>(strings.number(unit_of(metric, "nanoseconds", "count"))));
  }
  for (NodeId node = 0; node < tree.size(); ++node) {
    if (!has_values(tree, node)) continue;
    std::vector<uint64_t> locations;
    for (const FrameId frame : path_to(tree, node)) locations.push_back(frame + 1);
    std::reverse(locations.begin(), locations.end());
    std::vector<int64_t> values;
    for (size_t m = 0; m < tree.metrics().size(); ++m) values.push_back(tree.own(m)[node]);
    Writer sample(file, 2);
    sample.add_packed_uint64(1, locations.begin(), locations.end());
    sample.add_packed_int64(2, values.begin(), values.end());
  }
  for (FrameId frame = 0; frame < tree.frames().size(); ++frame) {
    Writer location(file, 4);
    location.add_uint64(1, frame + 1);
    Writer line(location, 4);
    line.add_uint64(1, frame + 1);
    line.add_int64(2, tree.frames()[frame].line);
  }
  for (FrameId frame = 0; frame < tree.frames().size(); ++frame) {
    const Frame& f = tree.frames()[frame];
    Writer function(file, 5);
    function.add_uint64(1, frame + 1);
    function.add_int64(2, static_cast<int64_t>(strings.number(f.name)));
    function.add_int64(4, static_cast<int64_t>(strings.number(f.file)));
  }
  const std::string title = profile.title;
  file.add_int64(13, static_cast<int64_t>(strings.number(title)));
  for (const std::string& text : strings.all()) file.add_string(6, text);
  return out;
}

namespace {

// Slices of one lane, which nest or follow one another.
struct Lane {
  std::string process, name;
  std::vector<Timeline::Slice> slices;
};

class PerfettoWriter {
 public:
  void write(const CallingContextTree& tree, const std::vector<Lane>& lanes) {
    for (const Lane& lane : lanes) add_lane(tree, lane);
  }
  std::string take() { return std::move(out_); }

 private:
  using Writer = protozero::pbf_writer;
  static constexpr uint32_t kSequence = 1;
  enum : uint32_t { kPacket = 1, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11, kInternedData = 12, kFlags = 13 };
  enum : uint32_t { kTrackDescriptor = 60 };

  void add_lane(const CallingContextTree& tree, const Lane& lane) {
    const auto [process, is_new] = processes_.try_emplace(lane.process, processes_.size() + 1);
    if (is_new) {
      Writer packet(file_, kPacket);
      Writer track(packet, kTrackDescriptor);
      track.add_uint64(1, process->second);
      Writer of(track, 3);
      of.add_int32(1, static_cast<int32_t>(process->second));
      of.add_string(6, lane.process);
    }
    const uint64_t track = 1000 + lanes_++;
    {
      Writer packet(file_, kPacket);
      Writer descriptor(packet, kTrackDescriptor);
      descriptor.add_uint64(1, track);
      descriptor.add_string(2, lane.name);
      descriptor.add_uint64(5, process->second);
    }
    std::vector<Timeline::Slice> slices = lane.slices;
    std::stable_sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) {
      return a.start != b.start ? a.start < b.start : a.duration > b.duration;
    });
    std::vector<int64_t> ends;
    for (const Timeline::Slice& slice : slices) {
      while (!ends.empty() && ends.back() <= slice.start) close(track, ends);
      const std::string name = slice.node < 0 ? "?" : tree.frame(static_cast<NodeId>(slice.node)).name;
      event(slice.start, 1, track, &name);
      ends.push_back(slice.start + slice.duration);
    }
    while (!ends.empty()) close(track, ends);
  }

  void close(uint64_t track, std::vector<int64_t>& ends) {
    event(ends.back(), 2, track, nullptr);
    ends.pop_back();
  }

  // Type 1 begins a slice, 2 ends it. Names are told once.
  void event(int64_t time, int type, uint64_t track, const std::string* name) {
    Writer packet(file_, kPacket);
    packet.add_uint64(kTimestamp, static_cast<uint64_t>(time));
    packet.add_uint32(kSequenceId, kSequence);
    packet.add_uint32(kFlags, is_first_ ? 3 : 2);
    is_first_ = false;
    uint64_t id = 0;
    if (name != nullptr) {
      const auto [found, is_new] = names_.try_emplace(*name, names_.size() + 1);
      id = found->second;
      if (is_new) {
        Writer data(packet, kInternedData);
        Writer entry(data, 2);
        entry.add_uint64(1, id);
        entry.add_string(2, *name);
      }
    }
    Writer event(packet, kTrackEvent);
    event.add_enum(9, type);
    event.add_uint64(11, track);
    if (id > 0) event.add_uint64(10, id);
  }

  std::string out_;
  Writer file_{out_};
  std::unordered_map<std::string, uint64_t> processes_, names_;
  uint64_t lanes_ = 0;
  bool is_first_ = true;
};

// Lanes, each with the end of its innermost open slice. Finding the first lane in which a slice fits takes logarithmic
// time, however many slices overlap.
class OpenLanes {
 public:
  // Closes the slices that end by `start`, then returns the first lane whose innermost open slice, if any, ends no
  // earlier than `end`.
  size_t place(int64_t start, int64_t end) {
    while (!closing_.empty() && closing_.top().first <= start) {
      const auto [last, lane] = closing_.top();
      closing_.pop();
      // In a lane the innermost slice ends first.
      open_[lane].pop_back();
      set(lane, open_[lane].empty() ? kFree : open_[lane].back());
    }
    size_t lane = first_from(end);
    if (lane == open_.size()) add();
    open_[lane].push_back(end);
    closing_.emplace(end, lane);
    set(lane, end);
    return lane;
  }

 private:
  static constexpr int64_t kFree = INT64_MAX;
  using Closing = std::pair<int64_t, size_t>;

  void add() {
    open_.emplace_back();
    if (open_.size() <= width_) return;
    width_ *= 2;
    most_.assign(2 * width_, kFree);
    for (size_t lane = 0; lane < open_.size(); ++lane) set(lane, open_[lane].empty() ? kFree : open_[lane].back());
  }
  void set(size_t lane, int64_t end) {
    most_[width_ + lane] = end;
    for (size_t at = (width_ + lane) / 2; at > 0; at /= 2) most_[at] = std::max(most_[2 * at], most_[2 * at + 1]);
  }
  // Lanes that do not exist yet are free.
  size_t first_from(int64_t end) const {
    if (most_[1] < end) return open_.size();
    size_t at = 1;
    while (at < width_) at = most_[2 * at] >= end ? 2 * at : 2 * at + 1;
    return at - width_;
  }

  std::vector<std::vector<int64_t>> open_;  // by lane: ends of its open slices, the innermost last
  size_t width_ = 1;
  std::vector<int64_t> most_ = std::vector<int64_t>(2, kFree);  // a tree of maxima over lanes
  std::priority_queue<Closing, std::vector<Closing>, std::greater<>> closing_;
};

// Slices that overlap without nesting go to further lanes.
std::vector<Lane> lanes_of(const Timeline& timeline) {
  std::vector<std::vector<Timeline::Slice>> by_track(timeline.tracks.size());
  for (const Timeline::Slice& slice : timeline.slices) by_track[slice.track].push_back(slice);
  std::vector<Lane> all;
  for (size_t t = 0; t < by_track.size(); ++t) {
    std::stable_sort(by_track[t].begin(), by_track[t].end(), [](const auto& a, const auto& b) {
      return a.start != b.start ? a.start < b.start : a.duration > b.duration;
    });
    OpenLanes open;
    const size_t first = all.size();
    for (const Timeline::Slice& slice : by_track[t]) {
      const size_t lane = open.place(slice.start, slice.start + slice.duration);
      if (first + lane == all.size()) {
        const std::string name = timeline.tracks[t].name + (lane == 0 ? "" : " (" + std::to_string(lane + 1) + ")");
        all.push_back({timeline.tracks[t].process, name, {}});
      }
      all[first + lane].slices.push_back(slice);
    }
  }
  return all;
}

// The tree as slices as wide as the first metric of time: the children of a node side by side.
Lane lane_of(const Profile& profile) {
  const CallingContextTree& tree = profile.tree;
  Lane lane{profile.title, "calls", {}};
  const std::optional<size_t> metric = time_metric(tree);
  if (!metric) return lane;
  const std::vector<int64_t> inclusive = tree.inclusive(*metric);
  lane.name = tree.metrics()[*metric].title;
  std::vector<int64_t> next(tree.size(), 0);  // where the next child of a node begins
  for (NodeId node = 0; node < tree.size(); ++node) {
    const int64_t start = node == 0 ? 0 : next[tree.parent(node)];
    next[node] = start;
    if (node > 0) next[tree.parent(node)] += inclusive[node];
    if (inclusive[node] > 0) lane.slices.push_back({0, start, inclusive[node], node});
  }
  return lane;
}

}  // namespace

std::string perfetto(const Profile& profile) {
  PerfettoWriter writer;
  const bool has_times = !profile.timeline.slices.empty();
  writer.write(profile.tree, has_times ? lanes_of(profile.timeline) : std::vector<Lane>{lane_of(profile)});
  return writer.take();
}

}  // namespace heddle::profile
