// Pads that crop, as far as more than there is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model_bytes.h"
#include "tests/error_of.h"

namespace heddle::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ir::Array pad(const std::string& mode, const Shape& shape, const std::vector<int64_t>& pads, int64_t opset = 21) {
  std::vector<float> values;
  for (int64_t i = 0; i < element_count(shape); ++i) values.push_back(static_cast<float>(i + 1));
  const GraphSpec graph{{{"Pad", {"x", "pads", "value"}, {"y"}, {{"mode", mode}}}},
                        {{"x", DType::kF32, shape}},
                        {"y"},
                        {{"pads", longs({static_cast<int64_t>(pads.size())}, pads)}, {"value", floats({}, {9})}}};
  return run_spec(graph, {{"x", floats(shape, values)}}, opset).at("y");
}

TEST(Pad, ACropOfMoreThanThereIsLeavesPadding) {
  EXPECT_THAT(pad("constant", {6}, {-8, 4}).f(), ElementsAre(9, 9));
  EXPECT_THAT(pad("constant", {6}, {4, -8}).f(), ElementsAre(9, 9));
  EXPECT_THAT(pad("constant", {6}, {-6, 3}).f(), ElementsAre(9, 9, 9));
  EXPECT_THAT(pad("constant", {6}, {-8, 2}).f(), IsEmpty());
  EXPECT_THAT(pad("constant", {6}, {-3, -3}).f(), IsEmpty());
  EXPECT_THAT(pad("constant", {6}, {-4, 3}).f(), ElementsAre(5, 6, 9, 9, 9));
  EXPECT_THAT(pad("constant", {0}, {1, 2}).f(), ElementsAre(9, 9, 9));
  const ir::Array plane = pad("constant", {2, 3}, {0, -5, 0, 4});  // dimension 1 is all padding
  EXPECT_EQ(plane.shape, (Shape{2, 2}));
  EXPECT_THAT(plane.f(), ElementsAre(9, 9, 9, 9));
}

TEST(Pad, OtherModesRepeatWhatTheCropLeaves) {
  EXPECT_THAT(pad("edge", {6}, {-4, 3}).f(), ElementsAre(5, 6, 6, 6, 6));
  EXPECT_THAT(pad("reflect", {6}, {-2, 3}).f(), ElementsAre(3, 4, 5, 6, 5, 4, 3));
  EXPECT_THAT(pad("wrap", {6}, {-4, 3}).f(), ElementsAre(5, 6, 5, 6, 5));
  EXPECT_THAT(pad("edge", {6}, {-5, 2}).f(), ElementsAre(6, 6, 6));
  for (const char* mode : {"edge", "reflect", "wrap"}) {
    EXPECT_THAT(pad(mode, {6}, {-8, 2}).f(), IsEmpty()) << mode;
    EXPECT_THAT(pad(mode, {0}, {0, 0}).f(), IsEmpty()) << mode;
    for (const auto& pads : {std::vector<int64_t>{-8, 4}, {4, -8}, {-6, 3}}) {
      const Error error = test::error_of([&] { pad(mode, {6}, pads); });
      EXPECT_EQ(error.code(), ErrorCode::kInvalidNode);
      EXPECT_THAT(error.what(), HasSubstr("leave none")) << mode;
    }
  }
}

TEST(Pad, AnExtentIsNotNegative) {
  for (const auto& pads : {std::vector<int64_t>{-8, 0}, {-3, -4}, {0, INT64_MIN}, {INT64_MAX, 1}}) {
    EXPECT_EQ(test::error_of([&] { pad("constant", {6}, pads); }).code(), ErrorCode::kInvalidNode);
  }
}

}  // namespace
}  // namespace heddle::onnx
