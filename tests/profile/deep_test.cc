// Profiles that are as large, as deep or as strange as a file can make them: each view and form takes a time in
// proportion to the file, or refuses.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "profile/advice.h"
#include "profile/exports.h"
#include "profile/json.h"
#include "profile/page.h"
#include "profile/rank_advice.h"
#include "profile/views.h"
#include "tests/error_of.h"

namespace heddle::profile {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// Nodes one below the other, each with a value of its own.
json chain(int64_t length) {
  json parents = json::array(), frames = json::array(), values = json::array();
  for (int64_t node = 0; node < length; ++node) {
    parents.push_back(node - 1);
    frames.push_back(node % 3);
    values.push_back(1000);
  }
  return {
      {"format", "heddle-profile"},
      {"version", 1},
      {"title", "a chain"},
      {"facts", json::array()},
      {"metrics", {{{"name", "CPU"}, {"unit", "ns"}, {"title", "CPU"}}}},
      {"strings", {"", "f", "reference: g"}},
      {"frames", {{"kind", {"root", "node", "kernel"}}, {"name", {0, 1, 2}}, {"file", {0, 0, 0}}, {"line", {0, 0, 0}}}},
      {"nodes", {{"parent", parents}, {"frame", frames}, {"values", {{"CPU", values}}}}}};
}

Profile profile_of(const json& document) {
  return parse(document.dump(), "p.json");
}

std::string why_not(const json& document) {
  const Error error = test::error_of([&] { profile_of(document); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidInput);
  return error.what();
}

TEST(Deep, AChainIsReadShownAndMerged) {
  for (const int64_t length : {2000, 60000, 200000}) {
    const double start = wall_seconds();
    const Profile p = profile_of(chain(length));
    EXPECT_EQ(top_down(p.tree, 0).inclusive, 1000 * length);
    EXPECT_EQ(hot_path(p.tree, 0).size(), static_cast<size_t>(length));
    EXPECT_EQ(flat(p.tree, 0).size(), 3u);
    EXPECT_LT(path_text(p.tree, static_cast<NodeId>(length - 1)).size(), 10000u);
    const Profile parts[] = {p, p};
    const Profile both = merge_processes(parts);
    EXPECT_EQ(both.tree.size(), static_cast<size_t>(length));
    EXPECT_EQ(both.tree.total(0), 2000 * length);
    EXPECT_EQ(difference(p, both).before[0].size(), static_cast<size_t>(length));
    EXPECT_EQ(parse(to_json(both), "both").tree.size(), both.tree.size());
    EXPECT_GT(page(to_json(p), p.title).size(), static_cast<size_t>(length));
    EXPECT_FALSE(perfetto(p).empty());
    EXPECT_TRUE(advice_for(p).empty());  // each node has less than a hundredth
    EXPECT_LT(wall_seconds() - start, 20) << length;
  }
}

TEST(Deep, FormsOfWholePathsAreWrittenOrRefused) {
  const Profile shallow = profile_of(chain(500));
  const std::string folded = folded_stacks(shallow, 0);
  EXPECT_EQ(std::count(folded.begin(), folded.end(), '\n'), 500);
  EXPECT_EQ(json::parse(speedscope(shallow))["profiles"][0]["samples"].back().size(), 500u);
  EXPECT_GT(pprof(shallow).size(), 500u * 250u);
  for (const int64_t length : {20000, 60000}) {
    const Profile deep = profile_of(chain(length));
    for (const auto& form : {speedscope, pprof, +[](const Profile& p) { return folded_stacks(p, 0); }}) {
      const Error error = test::error_of([&] { form(deep); });
      EXPECT_EQ(error.code(), ErrorCode::kInvalidInput);
      EXPECT_THAT(error.what(), HasSubstr("nested so deep"));
    }
  }
}

TEST(Deep, AProfileWithoutMetricsHasAllForms) {
  json document = chain(3);
  document["metrics"] = json::array();
  const Profile p = profile_of(document);
  EXPECT_EQ(folded_stacks(p, 0), "");
  EXPECT_TRUE(json::parse(speedscope(p))["profiles"].empty());
  EXPECT_FALSE(pprof(p).empty());
  EXPECT_FALSE(perfetto(p).empty());
  EXPECT_EQ(parse(to_json(p), "again").tree.size(), 3u);
  EXPECT_TRUE(merge_processes(std::vector<Profile>{p, p}).tree.metrics().empty());
}

TEST(Deep, SlicesThatOverlapTakeALaneEach) {
  for (const int64_t count : {100, 30000}) {
    Profile p = profile_of(chain(2));
    p.timeline.tracks = {{"p", "t"}};
    for (int64_t i = 0; i < count; ++i) p.timeline.slices.push_back({0, i, count, 1});
    const double start = wall_seconds();
    const std::string trace = perfetto(p);
    EXPECT_THAT(trace, HasSubstr(fmt::format("t ({})", count)));
    EXPECT_LT(wall_seconds() - start, 10);
  }
}

TEST(Deep, WhatCannotBeIsRefused) {
  json document = chain(5);
  document["nodes"]["parent"] = {-1, 0, 3, 2, 1};  // a cycle
  EXPECT_THAT(why_not(document), HasSubstr("node 2 does not follow its parent 3"));
  document = chain(5);
  document["metrics"].push_back(json(document["metrics"][0]));
  EXPECT_THAT(why_not(document), HasSubstr("\"CPU\" is there twice"));
  document["metrics"] = json::array();
  for (int i = 0; i < 300; ++i) document["metrics"].push_back({{"name", fmt::format("{}", i)}, {"unit", ""}});
  EXPECT_THAT(why_not(document), HasSubstr("there are more than 256"));
  document = chain(100000);
  for (int i = 0; i < 60; ++i) document["metrics"].push_back({{"name", fmt::format("{}", i)}, {"unit", ""}});
  EXPECT_THAT(why_not(document), HasSubstr("have no values for 100000 nodes"));
  document = chain(5000);
  for (json& value : document["nodes"]["values"]["CPU"]) value = int64_t{1} << 53;
  EXPECT_THAT(why_not(document), HasSubstr("its values sum to more than"));
  for (const char* value : {"1e400", "NaN", "0.5", "-1", "99999999999999999999", "\"\xff\"", "null"}) {
    std::string text = chain(3).dump();
    const std::string_view field = "\"line\":[0";
    text.replace(text.find(field) + field.size() - 1, 1, value);
    EXPECT_EQ(test::error_of([&] { parse(text, "p.json"); }).code(), ErrorCode::kInvalidInput) << value;
  }
  for (const char* bracket : {"[", "{\"a\":"}) {
    std::string text;
    for (int i = 0; i < 1000000; ++i) text += bracket;
    EXPECT_THAT(test::error_of([&] { parse(text, "p.json"); }).what(), HasSubstr("deeper than 64"));
  }
}

TEST(Deep, ALongNameOfManyFramesIsRefused) {
  json document = chain(3);
  document["strings"][1] = std::string(1 << 20, 'n');
  json& frames = document["frames"];
  for (int line = 1; line < 1000; ++line) {
    frames["kind"].push_back("node");
    frames["name"].push_back(1);
    frames["file"].push_back(0);
    frames["line"].push_back(line);
  }
  EXPECT_THAT(why_not(document), HasSubstr("frames: the names of the first"));
}

// Each file is right by itself, and their sum is no number of nanoseconds any more.
TEST(Deep, SumsThatAreTooLargeAreRefused) {
  json document = chain(250);
  for (json& value : document["nodes"]["values"]["CPU"]) value = int64_t{1} << 53;
  const std::vector<Profile> parts(2, profile_of(document));
  EXPECT_THAT(test::error_of([&] { merge_processes(parts); }).what(), HasSubstr("metric CPU"));
  document = chain(300);
  document["roofline"] = {{"node", json::array()},
                          {"floor_ns", json::array()},
                          {"bytes", json::array()},
                          {"flops", json::array()},
                          {"bound", json::array()}};
  for (int i = 0; i < 300; ++i) {
    document["roofline"]["node"].push_back(1);
    for (const char* name : {"floor_ns", "bytes", "flops"}) document["roofline"][name].push_back(int64_t{1} << 53);
    document["roofline"]["bound"].push_back("memory");
  }
  const std::vector<Profile> rows(2, profile_of(document));
  EXPECT_THAT(test::error_of([&] { merge_processes(rows); }).what(), HasSubstr("roofline.floor_ns"));
}

}  // namespace
}  // namespace heddle::profile
