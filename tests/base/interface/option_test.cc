#include "base/interface/option.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

class OptionWords : public testing::Test {
 protected:
  ~OptionWords() override { speak_of(Interface::kLibrary); }
};

const std::vector<option::NamedShape> kShapes = {{"x", {1, 8}}, {"n", {2}}};

TEST_F(OptionWords, AreThoseOfTheCommand) {
  speak_of(Interface::kCommandLine);
  EXPECT_EQ(option::shape(), "--shape");
  EXPECT_EQ(option::shape(kShapes), "--shape x=1,8 --shape n=2");
  EXPECT_EQ(option::target("cpu"), "--target cpu");
  EXPECT_EQ(option::value_of("x"), "--input x=FILE.npy");
}

TEST_F(OptionWords, ArePython) {
  speak_of(Interface::kPython);
  EXPECT_EQ(option::shape(), "`shapes` or `dims`");
  EXPECT_EQ(option::shape(kShapes), R"(shapes={"x": (1, 8), "n": (2,)})");
  EXPECT_EQ(option::target("cpu"), R"(target="cpu")");
  EXPECT_EQ(option::limit("nodes"), R"(limits={"nodes": ...})");
}

TEST_F(OptionWords, AreTheLibrarysFieldsElsewhere) {
  EXPECT_EQ(option::shape(kShapes), R"(CompileOptions::shapes = {{"x", {1, 8}}, {"n", {2}}})");
  EXPECT_EQ(option::threads(), "CompileOptions::threads");
}

TEST_F(OptionWords, OnlyTheCommandHasOptions) {
  for (const Interface interface : {Interface::kLibrary, Interface::kPython}) {
    speak_of(interface);
    const std::vector<std::string> all = {
        option::shape(),        option::shape(kShapes), option::shape_of("x"),
        option::target("cuda"), option::threads(),      option::value_of("x"),
        option::input("x"),     option::limit("nodes"), option::external_data_links()};
    for (const std::string& words : all) EXPECT_EQ(words.find("--"), std::string::npos) << words;
  }
}

}  // namespace
}  // namespace heddle
