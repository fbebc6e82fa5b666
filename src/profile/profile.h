#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "profile/tree.h"

namespace heddle::profile {

// The minimum time that the device needs for the work of a node. `bound` names the limit: "memory", "compute" or
// "latency".
struct RooflineRow {
  NodeId node = 0;
  int64_t floor_ns = 0, bytes = 0, flops = 0;
  std::string bound = {};
};

struct Device {
  std::string name;
  int64_t bandwidth = 0;                 // bytes per second
  std::map<std::string, int64_t> flops;  // flops per second, by type
};

struct Timeline {
  struct Track {
    std::string process, name;
    bool operator==(const Track&) const = default;
  };
  struct Slice {
    uint32_t track = 0;
    int64_t start = 0, duration = 0;  // nanoseconds from the beginning of the profile
    int64_t node = -1;                // -1: unknown
  };
  std::vector<Track> tracks;
  std::vector<Slice> slices;
};

struct Source {
  std::string file;
  int64_t first_line = 1;
  std::string text;
};

// Advice on reducing the time of a node: the rule that applies, the numbers behind it, and the node's share of the run.
struct Advice {
  std::string rule;
  NodeId node = 0;
  std::string evidence;
  int64_t gain_ns = 0;
  double share = 0;
  std::string confidence;  // "measured", "bound" or "guess"
  std::string remedy;
};

// The cost of a program by calling context. docs/reference/profile-json.md describes the fields.
struct Profile {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  // the header, in order
  CallingContextTree tree = {};
  std::vector<RooflineRow> roofline = {};
  std::optional<Device> device = {};
  Timeline timeline = {};
  std::vector<Source> sources = {};
  std::vector<Advice> advice = {};
};

// The name of the fact that marks profiles recorded on a busy machine. The times in these profiles are too long to
// compare with floors (minimum times).
inline constexpr const char* kBusyFact = "busy machine";
bool is_of_busy_machine(const Profile& profile);

// The limit of the sum of a metric's absolute values. It ensures that the difference of two such sums does not
// overflow.
inline constexpr int64_t kMostTotal = int64_t{1} << 61;

// Adds another profile of the same program to `into`, such as more iterations, another thread or another rank. Nodes
// with equal paths are merged. If a fact differs, both values are listed. Tracks and slices are appended. Throws
// kInvalidInput if a sum would exceed kMostTotal.
void merge(Profile& into, const Profile& other);

// The profile with each frame replaced by frame_for(frame). If frame_for returns nullopt, the nodes of the frame are
// removed. The parent of a removed node gets the node's values and children.
Profile relabelled(const Profile& profile, const std::function<std::optional<Frame>(const Frame&)>& frame_for);

// A profile, and an older profile's values for the same nodes. If only one profile has a node, the values in the other
// are 0.
struct Difference {
  Profile profile;
  std::vector<std::vector<int64_t>> before;  // older values, by metric of the profile's tree and by node
};
Difference difference(const Profile& older, const Profile& newer);

}  // namespace heddle::profile
