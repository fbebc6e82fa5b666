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

// The least time that the device needs for what a node did, and why: "memory", "compute" or "latency".
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

// What to do about the time of a node: why, from which numbers, for how much of the run.
struct Advice {
  std::string rule;
  NodeId node = 0;
  std::string evidence;
  int64_t gain_ns = 0;
  double share = 0;
  std::string confidence;  // "measured", "bound" or "guess"
  std::string remedy;
};

// What a program cost by calling context, in memory as docs/reference/profile-json.md has it.
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

// The fact that times are too long for advice on how far they are from their floors.
inline constexpr const char* kBusyFact = "busy machine";
bool is_of_busy_machine(const Profile& profile);

// The limit on the sum of a metric's absolute values. The difference of two such sums does not overflow.
inline constexpr int64_t kMostTotal = int64_t{1} << 61;

// Adds another profile of the same program: of more iterations, of another thread or rank. Equal paths become one,
// facts that differ are both listed, tracks and slices are added to the existing ones. Throws kInvalidInput if a sum
// would exceed kMostTotal.
void merge(Profile& into, const Profile& other);

// The same profile with other frames: of each frame what `frame_for` makes of it. Where that is nothing, what was below
// such a node is its parent's.
Profile relabelled(const Profile& profile, const std::function<std::optional<Frame>(const Frame&)>& frame_for);

// A profile with the values of an older one for the same nodes; what only one of them has is 0 in the other.
struct Difference {
  Profile profile;
  std::vector<std::vector<int64_t>> before;  // by metric of the profile's tree, by node
};
Difference difference(const Profile& older, const Profile& newer);

}  // namespace heddle::profile
