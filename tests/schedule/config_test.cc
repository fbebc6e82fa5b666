// Configurations as text, which the tuning database keeps.
#include "schedule/config/config.h"

#include <gtest/gtest.h>

#include <set>

namespace heddle::schedule {
namespace {

// A configuration whose members have values of their own, none the initial one.
template <typename C>
Config with_own_values() {
  C c;
  int64_t next = 100;
  C::fields(c, [&](std::string_view, auto& member) {
    using Member = std::decay_t<decltype(member)>;
    member = std::is_same_v<Member, bool> ? Member(true) : static_cast<Member>(++next);
  });
  return {c};
}

std::vector<Config> one_of_each() {
#define HEDDLE_ONE(C) with_own_values<C>(),
  return {HEDDLE_CONFIG_FAMILIES(HEDDLE_ONE)};
#undef HEDDLE_ONE
}

TEST(Config, NamesAreReadBack) {
  std::set<std::string> names, families;
  for (const Config& config : one_of_each()) {
    const std::string name = name_of(config);
    EXPECT_TRUE(names.insert(name).second) << name;
    if (family_of(config).empty()) continue;
    EXPECT_TRUE(families.emplace(family_of(config)).second) << name;
    EXPECT_EQ(parse_choice(name), config.choice) << name;
    EXPECT_EQ(name.find(tile_name(config)), 0u) << name;
  }
  EXPECT_GE(families.size(), 20u);
}

TEST(Config, InitialValuesAreLeftOut) {
  WgmmaConfig c;
  EXPECT_EQ(name_of({c}), "wgmma");
  c.tile_n = 256, c.swapped = true, c.splits = 3;
  EXPECT_EQ(name_of({c}), "wgmma tile_n=256 swapped splits=3");
  EXPECT_EQ(tile_name({c}), "wgmma tile_n=256 swapped");
  EXPECT_EQ(parse_choice("wgmma"), Choice(WgmmaConfig{}));
}

TEST(Config, WhatIsNoNameIsRefused) {
  for (const char* text :
       {"", "wgmm", "wgmma tile_n", "wgmma tile_n=", "wgmma tile_n=12x", "wgmma tile_q=3", "wgmma  tile_n=3",
        "wgmma swapped=1", "wgmma tile_n=99999999999", "sm90 128x256x64 s4", "wgmma tile_n=128 "}) {
    EXPECT_EQ(parse_choice(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace heddle::schedule
