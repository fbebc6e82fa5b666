// The JSON form, read back and damaged, and the forms of other viewers, read by readers of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <protozero/pbf_reader.hpp>
#include <random>
#include <sstream>

#include "profile/exports.h"
#include "profile/json.h"
#include "tests/error_of.h"
#include "tests/profile/random_profile.h"

namespace heddle::profile {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(JsonForm, IsReadBack) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    const std::string text = to_json(test::random_profile(seed));
    const Profile read = parse(text, "a.json");
    EXPECT_EQ(to_json(read), text);
    EXPECT_EQ(read.tree.size(), test::random_profile(seed).tree.size());
  }
}

TEST(JsonForm, ADifferenceHasAColumnBefore) {
  const json all = json::parse(to_json(difference(test::random_profile(1), test::random_profile(2))));
  EXPECT_EQ(all["format"], "heddle-profile-difference");
  EXPECT_EQ(all["nodes"]["before"]["GKER"].size(), all["nodes"]["values"]["GKER"].size());
}

TEST(JsonForm, WhatBreaksItIsNamed) {
  const json good = json::parse(to_json(test::random_profile(1)));
  const auto why = [&](const std::function<void(json&)>& damage) {
    json bad = good;
    damage(bad);
    return std::string(test::error_of([&] { parse(bad.dump(), "bad.json"); }).what());
  };
  EXPECT_THAT(why([](json& j) { j["format"] = "trace"; }), HasSubstr("bad.json: format: it is \"trace\""));
  EXPECT_THAT(why([](json& j) { j["version"] = 2; }), HasSubstr("version: 2 is not from 1 to 1"));
  EXPECT_THAT(why([](json& j) { j["nodes"]["parent"][3] = 7; }), HasSubstr("node 3 does not follow its parent 7"));
  EXPECT_THAT(why([](json& j) { j["nodes"]["frame"][3] = 1 << 20; }), HasSubstr("nodes.frame"));
  EXPECT_THAT(why([](json& j) { j["nodes"]["values"]["GKER"].erase(0); }), HasSubstr("nodes.values.GKER"));
  EXPECT_THAT(why([](json& j) { j["nodes"]["values"]["GKER"][0] = uint64_t{1} << 60; }), HasSubstr("is not from"));
  EXPECT_THAT(why([](json& j) { j["frames"]["name"][0] = -1; }), HasSubstr("frames.name: -1 is not from 0"));
  EXPECT_THAT(why([](json& j) { j.erase("strings"); }), HasSubstr("strings: it is missing"));
  EXPECT_THAT(why([](json& j) { j["timeline"]["track"][0] = 9; }), HasSubstr("timeline.track"));
  EXPECT_THAT(test::error_of([] { parse("{\"format\": ", "cut.json"); }).what(), HasSubstr("its end is missing"));
}

// Bytes changed, cut out or doubled: an error or a profile, never a crash.
TEST(JsonForm, HostileFiles) {
  const std::string good = to_json(test::random_profile(7));
  std::mt19937 random(11);
  for (int i = 0; i < 400; ++i) {
    std::string bad = good;
    const size_t at = random() % bad.size();
    switch (random() % 3) {
      case 0:
        bad[at] = static_cast<char>(random());
        break;
      case 1:
        bad.erase(at, random() % 50);
        break;
      default:
        bad.insert(at, bad.substr(at / 2, random() % 50));
    }
    try {
      const Profile read = parse(bad, "bad.json");
      EXPECT_LE(read.tree.size(), good.size());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidInput) << error.what();
    }
  }
}

TEST(Exports, FoldedStacksSumToTheTotal) {
  const Profile p = test::random_profile(5);
  std::istringstream lines(folded_stacks(p, 0));
  int64_t sum = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(line.starts_with("all;")) << line;
    sum += std::stoll(line.substr(line.rfind(' ')));
  }
  EXPECT_EQ(sum, p.tree.total(0));
}

TEST(Exports, Speedscope) {
  const Profile p = test::random_profile(5);
  const json all = json::parse(speedscope(p));
  EXPECT_EQ(all["$schema"], "https://www.speedscope.app/file-format-schema.json");
  ASSERT_EQ(all["profiles"].size(), p.tree.metrics().size());
  EXPECT_EQ(all["profiles"][0]["unit"], "nanoseconds");
  EXPECT_EQ(all["profiles"][1]["unit"], "none");
  int64_t sum = 0;
  for (const json& weight : all["profiles"][0]["weights"]) sum += weight.get<int64_t>();
  EXPECT_EQ(sum, p.tree.total(0));
  EXPECT_EQ(all["profiles"][0]["endValue"], sum);
  EXPECT_EQ(all["profiles"][0]["samples"].size(), all["profiles"][0]["weights"].size());
  for (const json& sample : all["profiles"][0]["samples"]) {
    for (const json& frame : sample) EXPECT_LT(frame.get<size_t>(), all["shared"]["frames"].size());
  }
}

TEST(Exports, Pprof) {
  const Profile p = test::random_profile(5);
  const std::string file = pprof(p);
  std::vector<std::string> strings;
  std::vector<int64_t> types;
  std::map<uint64_t, uint64_t> functions;  // of locations
  int64_t sum = 0;
  for (protozero::pbf_reader reader(file); reader.next();) {
    switch (reader.tag()) {
      case 1: {
        protozero::pbf_reader type = reader.get_message();
        ASSERT_TRUE(type.next(1));
        types.push_back(type.get_int64());
        break;
      }
      case 2: {
        protozero::pbf_reader sample = reader.get_message();
        ASSERT_TRUE(sample.next(1));
        sample.skip();
        ASSERT_TRUE(sample.next(2));
        sum += *sample.get_packed_int64().begin();
        break;
      }
      case 4: {
        protozero::pbf_reader location = reader.get_message();
        ASSERT_TRUE(location.next(1));
        const uint64_t id = location.get_uint64();
        ASSERT_TRUE(location.next(4));
        protozero::pbf_reader line = location.get_message();
        ASSERT_TRUE(line.next(1));
        functions[id] = line.get_uint64();
        break;
      }
      case 6:
        strings.push_back(reader.get_string());
        break;
      default:
        reader.skip();
    }
  }
  EXPECT_EQ(sum, p.tree.total(0));
  ASSERT_EQ(types.size(), p.tree.metrics().size());
  EXPECT_EQ(strings.at(0), "");
  EXPECT_EQ(strings.at(static_cast<size_t>(types[0])), "GKER");
  EXPECT_EQ(functions.size(), p.tree.frames().size());
}

// Events of a track by time: what begins last ends first, and all of it ends.
void check_trace(const std::string& trace, size_t slices) {
  std::map<uint64_t, std::pair<int64_t, int>> tracks;  // last time, depth
  size_t begun = 0;
  for (protozero::pbf_reader file(trace); file.next(1);) {
    int64_t time = 0;
    for (protozero::pbf_reader packet = file.get_message(); packet.next();) {
      if (packet.tag() == 8) {
        time = static_cast<int64_t>(packet.get_uint64());
      } else if (packet.tag() == 11) {
        int32_t type = 0;
        uint64_t track = 0;
        for (protozero::pbf_reader event = packet.get_message(); event.next();) {
          if (event.tag() == 9) {
            type = event.get_enum();
          } else if (event.tag() == 11) {
            track = event.get_uint64();
          } else {
            event.skip();
          }
        }
        auto& [last, depth] = tracks[track];
        EXPECT_LE(last, time);
        last = time;
        depth += type == 1 ? 1 : -1;
        begun += type == 1;
        EXPECT_GE(depth, 0);
      } else {
        packet.skip();
      }
    }
  }
  EXPECT_EQ(begun, slices);
  for (const auto& [track, state] : tracks) EXPECT_EQ(state.second, 0);
}

TEST(Exports, PerfettoTracesNest) {
  Profile p = test::random_profile(5);
  check_trace(perfetto(p), p.timeline.slices.size());
  p.timeline.slices.clear();
  check_trace(perfetto(p), p.tree.size());
}

}  // namespace
}  // namespace heddle::profile
