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

// The least time that the device needs for the work of a node, and its bound: "memory", "compute" or "latency".
struct RooflineRow {
  NodeId node = 0;
  int64_t floor_ns = 0, bytes = 0, flops = 0;
  std::string bound = {};
};

struct Device {
  std::string name;
  int64_t bandwidth = 0;                 // bytes a second
  std::map<std::string, int64_t> flops;  // a second, by type
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

// Advice on the time of a node: the reason, the numbers behind it, its share of the run.
struct Advice {
  std::string rule;
  NodeId node = 0;
  std::string evidence;
  int64_t gain_ns = 0;
  double share = 0;
  std::string confidence;  // "measured", "bound" or "guess"
  std::string remedy;
};

// The cost of a program by calling context; docs/reference/profile-json.md describes the fields.
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

// A fact of profiles of a busy machine. Their times are too long to compare with floors.
inline constexpr const char* kBusyFact = "busy machine";
bool is_of_busy_machine(const Profile& profile);

// The limit on the sum of a metric's absolute values. The difference of two such sums does not overflow.
inline constexpr int64_t kMostTotal = int64_t{1} << 61;

// Adds another profile of the same program, such as more iterations, another thread or another rank. Equal paths become
// one, facts that differ are both listed, tracks and slices are added to the existing ones. Throws kInvalidInput if a
// sum would exceed kMostTotal.
void merge(Profile& into, const Profile& other);

// The same profile with each frame replaced by frame_for(frame). If that is nothing, the frame's nodes are removed;
// their values and children go to their parents.
Profile relabelled(const Profile& profile, const std::function<std::optional<Frame>(const Frame&)>& frame_for);

// A profile with an older one's values for the same nodes. Nodes that only one of them has are 0 in the other.
struct Difference {
  Profile profile;
  std::vector<std::vector<int64_t>> before;  // by metric of the profile's tree, by node
};
Difference difference(const Profile& older, const Profile& newer);

}  // namespace heddle::profile
