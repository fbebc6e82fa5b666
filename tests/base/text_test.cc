#include <gtest/gtest.h>

#include "base/near_miss.h"
#include "base/printable.h"
#include "heddle/error.h"

namespace heddle {
namespace {

TEST(Printable, LeavesTextAsItIs) {
  for (const char* text : {"", "plain /name:0", "größe", "重み", "😀", "back\\slash"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, EscapesWhatTerminalsObey) {
  EXPECT_EQ(printable("\x1b[31m\a\r"), "\\x1b[31m\\x07\\x0d");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\x7f\xc2\x9b"), "\\x7f\\u{9b}");
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\u{202e}");  // right-to-left override
  EXPECT_EQ(printable("\xef\xbb\xbf\xef\xbf\xbf"), "\\u{feff}\\u{ffff}");
  EXPECT_EQ(printable("a\nb\tc"), "a\\nb\\tc");
  EXPECT_EQ(printable("a\nb\tc\x1b", Lines::kMany), "a\nb\tc\\x1b");
}

TEST(Printable, ShowsBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xc3("), "\\xc3(");                           // cut short
  EXPECT_EQ(printable("\xe2\x80"), "\\xe2\\x80");                    // by the end
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");                    // longer than needed
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond the last code point
  EXPECT_EQ(printable("\x80o"), "\\x80o");
}

TEST(Printable, ErrorsAreText) {
  const Error error(ErrorCode::kInvalidInput, "input \x1b[2J", "\xff is\nwrong");
  EXPECT_STREQ(error.what(), "HDL202 invalid input: input \\x1b[2J: \\xff is\nwrong");
  EXPECT_EQ(error.where(), "input \x1b[2J");
}

TEST(Printable, ColumnsAndCuts) {
  EXPECT_EQ(columns("größe"), 5u);
  EXPECT_EQ(clipped("größe", 5), "größe");
  EXPECT_EQ(clipped("größen", 5), "gr...");
  EXPECT_EQ(clipped("ööööööö", 4), "ö...");
  EXPECT_EQ(clipped("abcdef", 2), "..");
}

TEST(NearMiss, CountsEdits) {
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("imgae", "image"), 1);  // neighbours swapped
  EXPECT_EQ(edit_distance("--output_dir", "--Output-Dir"), 0);
  EXPECT_EQ(edit_distance(std::string(1000, 'a'), std::string(1000, 'a') + "b"), 0);  // only the beginnings count
}

TEST(NearMiss, SuggestsWhatIsNear) {
  const std::vector<std::string_view> known = {"image", "mask", "token_ids", "x"};
  EXPECT_EQ(near_miss("imgae", known), "image");
  EXPECT_EQ(near_miss("tokens", known), "token_ids");
  EXPECT_EQ(near_miss("tok", known), "token_ids");  // the beginning
  EXPECT_EQ(near_miss("X", known), "x");
  EXPECT_EQ(near_miss("y", known), "");  // every name of one letter would be as near
  EXPECT_EQ(near_miss("something", known), "");
  EXPECT_EQ(near_miss("-v", {"-h", "-o"}), "");
  EXPECT_EQ(did_you_mean("masks", known), "Did you mean mask? ");
  EXPECT_EQ(did_you_mean("something", known), "");
}

}  // namespace
}  // namespace heddle
