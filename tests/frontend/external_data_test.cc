#include "frontend/onnx/reader/external_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/file/file.h"
#include "tests/error_of.h"
#include "wire_writer.h"

namespace heddle::onnx::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string external(const std::string& location) {
  return external_tensor({{"location", location}});
}

std::string graph_attr(const std::string& name, const std::string& graph) {
  std::string bytes;
  pbf_writer writer(bytes);
  writer.add_string(1, name);
  writer.add_message(6, graph);
  writer.add_enum(20, 5);
  return bytes;
}

std::string sparse_attr(const std::string& name, const std::string& values, const std::string& indices) {
  std::string sparse, bytes;
  pbf_writer tensor(sparse);
  tensor.add_message(1, values);
  tensor.add_message(2, indices);
  pbf_writer writer(bytes);
  writer.add_string(1, name);
  writer.add_enum(20, 11);
  writer.add_message(22, sparse);
  return bytes;
}

// y = x + w, where w lies in "w.bin".
std::string model_with_data() {
  ModelWriter m;
  m.input("x", kFloat, {2});
  m.initializers = {external("w.bin")};
  m.nodes = {{"Add", {"x", "w"}, {"y"}, {}, "sum", ""}};
  m.output("y");
  return m.bytes();
}

class ExternalData : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return dir_.path() + "/" + name; }
  void write(const std::string& name, const std::string& bytes) const {
    fs::create_directories(fs::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << bytes;
  }
  void write_data(const std::string& name, float value) const {
    const std::vector<float> values = {value, value};
    write(name, {reinterpret_cast<const char*>(values.data()), 8});
  }
  float imported(const std::string& name, DataLinks links = DataLinks::kRefuse) const {
    ImportOptions options;
    options.links = links;
    const Imported model = import_model(path(name), options);
    return static_cast<float>(ir::evaluate(model.graph, {ir::to_array(floats({2}, {0, 0}))})[0].f()[0]);
  }

  TempDir dir_;
};

TEST_F(ExternalData, TheWalkFindsEveryTensor) {
  ModelWriter inner;
  inner.initializers = {external("inner")};
  inner.nodes = {{"Constant", {}, {"c"}, {tensor_attr("value", external("inner_constant"))}, "", ""}};
  ModelWriter middle;
  middle.nodes = {{"If", {"q"}, {"d"}, {graph_attr("else_branch", inner.graph_bytes())}, "", ""}};
  ModelWriter m;
  m.initializers = {external("top")};
  m.nodes = {{"Constant", {}, {"a"}, {tensor_attr("value", external("constant"))}, "", ""},
             {"Constant", {}, {"b"}, {sparse_attr("sparse_value", external("sparse"), external("indices"))}, "", ""},
             {"If", {"p"}, {"e"}, {graph_attr("then_branch", middle.graph_bytes())}, "", ""}};
  m.functions = {
      {"F", "local", {}, {"f"}, {}, {{"Constant", {}, {"f"}, {tensor_attr("v", external("function"))}, "", ""}}}};
  const std::string bytes = m.bytes();
  EXPECT_THAT(external_locations(parse_model(bytes, nullptr, "")),
              ElementsAre("constant", "function", "indices", "inner", "inner_constant", "sparse", "top"));
}

TEST_F(ExternalData, LinksAreNotFollowed) {
  write("models/m.onnx", model_with_data());
  write_data("secret", 7);
  fs::create_symlink("../secret", path("models/w.bin"));
  const Error error = test::error_of([&] { imported("models/m.onnx"); });
  EXPECT_EQ(error.code(), ErrorCode::kMissingData);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("initializer 'w'"), HasSubstr("w.bin"), HasSubstr("symbolic link"),
                                  HasSubstr("CompileOptions::external_data_links")));
  EXPECT_EQ(imported("models/m.onnx", DataLinks::kFollow), 7);
}

TEST_F(ExternalData, NorAreLinksInFoldersOnTheWay) {
  ModelWriter m;
  m.input("x", kFloat, {2});
  m.initializers = {external("data/w.bin")};
  m.nodes = {{"Add", {"x", "w"}, {"y"}, {}, "sum", ""}};
  m.output("y");
  write("models/m.onnx", m.bytes());
  write_data("elsewhere/w.bin", 3);
  fs::create_symlink("../elsewhere", path("models/data"));
  EXPECT_THAT(test::error_of([&] { imported("models/m.onnx"); }).what(), HasSubstr("symbolic link"));
  fs::remove(path("models/data"));
  write_data("models/data/w.bin", 5);
  EXPECT_EQ(imported("models/m.onnx"), 5);
}

// A cache of downloads: names are links to contents in one folder.
TEST_F(ExternalData, AModelBehindALinkFindsItsDataBesideItself) {
  write("blobs/aa", model_with_data());
  write_data("blobs/bb", 9);
  write_data("secret", 7);
  fs::create_directories(path("snapshot"));
  fs::create_symlink("../blobs/aa", path("snapshot/m.onnx"));
  fs::create_symlink("../blobs/bb", path("snapshot/w.bin"));
  EXPECT_EQ(imported("snapshot/m.onnx"), 9);
  fs::remove(path("snapshot/w.bin"));
  fs::create_symlink("../secret", path("snapshot/w.bin"));
  EXPECT_THAT(test::error_of([&] { imported("snapshot/m.onnx"); }).what(), HasSubstr("symbolic link"));
}

TEST_F(ExternalData, PipesAndFoldersAreNoData) {
  write("m.onnx", model_with_data());
  ASSERT_EQ(::mkfifo(path("w.bin").c_str(), 0600), 0);
  EXPECT_THAT(test::error_of([&] { imported("m.onnx"); }).what(), HasSubstr("not a regular file"));
  fs::remove(path("w.bin"));
  fs::create_directory(path("w.bin"));
  EXPECT_THAT(test::error_of([&] { imported("m.onnx"); }).what(), HasSubstr("not a regular file"));
}

// What openat2(2) refuses, the walk over components refuses too.
TEST_F(ExternalData, BothWaysOfOpeningAgree) {
  write("f/a/b", "b");
  write("outside", "o");
  fs::create_symlink("a", path("f/link"));
  fs::create_symlink("../outside", path("f/out"));
  const auto both = [&](const char* name) {
    Descriptor first, second;
    const int error = open_beneath(path("f"), name, first);
    EXPECT_EQ(open_beneath_by_components(path("f"), name, second), error) << name;
    EXPECT_EQ(first.get() >= 0, error == 0) << name;
    return error;
  };
  EXPECT_EQ(both("a/b"), 0);
  EXPECT_EQ(both("./a//b"), 0);
  EXPECT_EQ(both("link/b"), ELOOP);
  EXPECT_EQ(both("out"), ELOOP);
  EXPECT_EQ(both("../outside"), EXDEV);
  EXPECT_EQ(both("a/../../outside"), EXDEV);
  EXPECT_EQ(both("/etc/passwd"), EXDEV);
  EXPECT_EQ(both(""), EXDEV);
  EXPECT_EQ(both("none"), ENOENT);
  EXPECT_EQ(both("a/b/c"), ENOTDIR);
}

}  // namespace
}  // namespace heddle::onnx::testing
