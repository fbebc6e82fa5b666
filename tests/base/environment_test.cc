#include "base/system/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "heddle/error.h"

namespace heddle {
namespace {

constexpr const char* kName = "HEDDLE_TEST_NUMBER";

TEST(Environment, NumbersAreTakenWhole) {
  ::unsetenv(kName);
  EXPECT_FALSE(integer_in_environment(kName, 1, 8).has_value());
  ::setenv(kName, "", 1);
  EXPECT_FALSE(number_in_environment(kName, 0, 8).has_value());
  ::setenv(kName, "8", 1);
  EXPECT_EQ(integer_in_environment(kName, 1, 8), 8);
  ::setenv(kName, "2.5e-1", 1);
  EXPECT_EQ(number_in_environment(kName, 0, 8), 0.25);
  ::unsetenv(kName);
}

TEST(Environment, WhatIsNoNumberIsNamed) {
  for (const char* text : {"many", "4x", " 4", "0", "9", "99999999999999999999", "nan", "-1"}) {
    ::setenv(kName, text, 1);
    try {
      number_in_environment(kName, 1, 8);
      ADD_FAILURE() << '"' << text << "\" was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_EQ(error.where(), kName);
      EXPECT_NE(error.why().find(std::string("\"") + text + "\" is no number from 1 to 8"), std::string::npos)
          << error.why();
    }
    EXPECT_THROW(integer_in_environment(kName, 1, 8), Error) << text;
  }
  ::unsetenv(kName);
}

}  // namespace
}  // namespace heddle
