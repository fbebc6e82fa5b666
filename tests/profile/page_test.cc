#include "profile/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "profile/page_parts.h"

namespace heddle::profile {
namespace {

using testing::HasSubstr;
using testing::Not;

size_t count(const std::string& text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Page, HoldsTheProfileAndItsOwnParts) {
  std::string text = page(R"({"format": "heddle-profile"})", "a model");
  EXPECT_THAT(text, HasSubstr(R"({"format": "heddle-profile"})"));
  EXPECT_THAT(text, HasSubstr("<title>a model</title>"));
  EXPECT_THAT(text, HasSubstr(page_parts().script));
  EXPECT_THAT(text, HasSubstr(page_parts().style));
  for (const char* mark : {"{{title}}", "{{style}}", "{{profile}}", "{{script}}"})
    EXPECT_THAT(text, Not(HasSubstr(mark)));
}

TEST(Page, ScriptsAreOneModule) {
  std::string script(page_parts().script);
  EXPECT_THAT(script, Not(HasSubstr("\nimport ")));
  EXPECT_THAT(script, Not(HasSubstr("\nexport ")));
  EXPECT_THAT(script, Not(HasSubstr("</script")));
  EXPECT_THAT(script, Not(HasSubstr("innerHTML")));
}

TEST(Page, NamesDoNotLeaveTheScriptElement) {
  const std::string attack = "</script><script>alert(1)</script><!--<script>";
  std::string text = page("{\"title\": \"" + attack + "\"}", attack);
  EXPECT_EQ(count(text, "<script"), 2u);
  EXPECT_EQ(count(text, "</script>"), 2u);
  EXPECT_THAT(text, Not(HasSubstr("<!--")));
  EXPECT_THAT(text, HasSubstr(R"(\u003c/script>)"));
  EXPECT_THAT(text, HasSubstr("<title>&lt;/script&gt;"));
}

TEST(Page, MarksInAProfileStay) {
  std::string text = page(R"(["{{script}}{{style}}"])", "{{profile}}");
  EXPECT_THAT(text, HasSubstr(R"(["{{script}}{{style}}"])"));
  EXPECT_THAT(text, HasSubstr("<title>{{profile}}</title>"));
  EXPECT_EQ(count(text, page_parts().script.substr(0, 200)), 1u);
}

}  // namespace
}  // namespace heddle::profile
