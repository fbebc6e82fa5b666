#include "ort/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../error_of.h"

namespace heddle::ort {
namespace {

using testing::HasSubstr;

Options with(const std::string& key, const std::string& value) {
  return parse_options({{"ep.heddleexecutionprovider." + key, value}});
}

TEST(OrtOptions, ReadsEachKey) {
  EXPECT_EQ(with("precision", "bf16").compile.precision, "bf16");
  EXPECT_EQ(with("threads", "3").compile.threads, 3);
  EXPECT_FALSE(with("cache", "0").compile.use_cache);
  EXPECT_FALSE(with("background", "0").compile.background);
  EXPECT_TRUE(with("regions", "all").all_regions);
  const Options ranges = with("ranges", "seq=1..512,x.0=2..4");
  EXPECT_EQ(ranges.compile.ranges.at("seq").max, 512);
  EXPECT_EQ(ranges.compile.ranges.at("x.0").min, 2);
  EXPECT_EQ(with("alias", "present=past").compile.alias.at("present"), "past");
  EXPECT_TRUE(with("alias", "auto").compile.alias_updates);
}

TEST(OrtOptions, ReadsOptionsOfTheSessionAndLeavesThoseOfOthersAlone) {
  const Options options = parse_options({{"session.disable_cpu_ep_fallback", "1"},
                                         {"ep.context_enable", "1"},
                                         {"ep.context_embed_mode", "1"},
                                         {"ep.context_file_path", "a/b.onnx"},
                                         {"ep.otherexecutionprovider.color", "blue"}});
  EXPECT_TRUE(options.all_regions);
  EXPECT_TRUE(options.writes_context);
  EXPECT_TRUE(options.embeds_plans);
  EXPECT_EQ(options.context_path, "a/b.onnx");
}

TEST(OrtOptions, RefusesWhatItDoesNotKnow) {
  const auto message = [](const std::string& key, const std::string& value) {
    return std::string(test::error_of([&] { with(key, value); }).what());
  };
  EXPECT_THAT(message("precison", "f16"), HasSubstr("Did you mean precision?"));
  EXPECT_THAT(message("precision", "f15"), HasSubstr("f15"));
  EXPECT_THAT(message("threads", "two"), HasSubstr("not a number"));
  EXPECT_THAT(message("cache", "yes"), HasSubstr("neither 0 nor 1"));
  EXPECT_THAT(message("ranges", "seq=1"), HasSubstr("EXTENT=MIN..MAX"));
  EXPECT_THAT(message("cache_folder", ""), HasSubstr("empty"));
  EXPECT_THAT(message("graph_capture", "1"), HasSubstr("runs on a CPU"));
  EXPECT_THAT(message("regions", "some"), HasSubstr("gain or all"));
}

}  // namespace
}  // namespace heddle::ort
