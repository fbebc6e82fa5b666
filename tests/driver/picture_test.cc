#include "driver/report/picture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "driver/report/modules.h"
#include "driver/report/picture_layout.h"

namespace heddle {
namespace {

using driver::LayoutRequest;
using driver::ModuleBox;
using driver::Picture;

struct Rectangle {
  double left, top, right, bottom;

  bool meets(const Rectangle& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

// A chain whose second half reads what the first one made, as a UNet's does, and some edges that skip a few layers.
LayoutRequest folded_network(size_t boxes) {
  LayoutRequest request;
  std::mt19937 random(1);
  for (size_t b = 0; b < boxes; ++b) {
    request.boxes.push_back(
        {80.0 + static_cast<double>(random() % 200), 40.0 + static_cast<double>(random() % 30), b == 1});
    if (b > 0) request.edges.emplace_back(b - 1, b);
    if (b > 8 && random() % 4 == 0) request.edges.emplace_back(b - 2 - random() % 6, b);
    if (b > boxes / 2 + 1) request.edges.emplace_back(boxes - 1 - b, b);
  }
  std::sort(request.edges.begin(), request.edges.end());
  request.edges.erase(std::unique(request.edges.begin(), request.edges.end()), request.edges.end());
  return request;
}

TEST(PictureLayout, BoxesLieApartAndLongEdgesPassBesideThem) {
  for (const size_t count : {3u, 20u, 60u, 200u}) {
    const LayoutRequest request = folded_network(count);
    const driver::Layout layout = lay_out(request);
    std::vector<Rectangle> boxes;
    for (size_t b = 0; b < count; ++b) {
      const auto [x, y] = layout.corners[b];
      boxes.push_back({x, y, x + request.boxes[b].width, y + request.boxes[b].height});
      EXPECT_TRUE(x >= 0 && y >= 0 && boxes[b].right <= layout.width && boxes[b].bottom <= layout.height) << b;
      for (size_t other = 0; other < b; ++other) EXPECT_FALSE(boxes[b].meets(boxes[other])) << b << " " << other;
    }
    for (size_t e = 0; e < request.edges.size(); ++e) {
      const std::vector<driver::Point>& route = layout.routes[e];
      for (size_t i = 1; route.size() > 2 && i < route.size(); ++i) {
        const auto [x0, x1] = std::minmax(route[i - 1].x, route[i].x);
        const auto [y0, y1] = std::minmax(route[i - 1].y, route[i].y);
        const bool upright = x0 == x1;  // and may touch the boxes that it leads from and to
        const double end = upright ? -0.1 : 0.1;
        const Rectangle stretch{x0 - 0.1, y0 - end, x1 + 0.1, y1 + end};
        for (const Rectangle& box : boxes) EXPECT_FALSE(stretch.meets(box)) << count << ": edge " << e;
      }
    }
  }
}

TEST(PictureLayout, WhatIsLongFoldsIntoColumnsThatGoDownAndUp) {
  const LayoutRequest request = folded_network(60);
  const driver::Layout layout = lay_out(request);
  EXPECT_GT(layout.columns.back(), 0u);
  EXPECT_LT(layout.height, 2000);
  EXPECT_LT(layout.height, 2 * layout.width);
  EXPECT_LT(layout.corners[0].y, layout.corners[2].y);
  const auto second =
      static_cast<size_t>(std::find(layout.columns.begin(), layout.columns.end(), 1u) - layout.columns.begin());
  EXPECT_GT(layout.corners[second].y, layout.corners[second + 1].y);
}

// A frame that is longer than the share of its column leaves the others as much as there is for each.
TEST(PictureLayout, ColumnsBehindALongFrameAreFilled) {
  LayoutRequest request;
  for (size_t b = 0; b < 26; ++b) {
    request.boxes.push_back({250, 60});
    if (b > 0) request.edges.emplace_back(b - 1, b);
  }
  request.frames.emplace_back(14);
  std::iota(request.frames[0].begin(), request.frames[0].end(), 1);
  const driver::Layout layout = lay_out(request);
  ASSERT_GT(layout.columns.back(), 1u);
  for (size_t c = 0; c < layout.columns.back(); ++c) {
    EXPECT_GE(std::count(layout.columns.begin(), layout.columns.end(), c), 2) << c;
  }
  for (size_t b = 1; b < 14; ++b) EXPECT_EQ(layout.columns[b], layout.columns[14]);
}

TEST(Picture, LegendNamesTheKindsThatOccurAndOnlyThose) {
  Picture picture;
  picture.heading("a<b>", "");
  const size_t first = picture.add({"x", {"f32[4]"}, Picture::Kind::kPort, "x"});
  picture.connect(first,
                  picture.add({"gemm", {}, Picture::Kind::kContraction, "", {{Picture::Kind::kContraction, 0.5}}}));
  const std::string svg = picture.svg();
  EXPECT_NE(svg.find("matrix product, convolution"), std::string::npos);
  EXPECT_NE(svg.find("share of the time, whole bar 50%"), std::string::npos);
  EXPECT_NE(svg.find("a&lt;b&gt;"), std::string::npos);
  EXPECT_EQ(svg.find("attention</text>"), std::string::npos);
  EXPECT_EQ(svg.find("repeated"), std::string::npos);
}

// By item: the box that has it.
std::vector<size_t> box_of(const std::vector<ModuleBox>& boxes, size_t items) {
  std::vector<size_t> found(items);
  for (size_t b = 0; b < boxes.size(); ++b) {
    for (const size_t item : boxes[b].items) found[item] = b;
  }
  return found;
}

TEST(Modules, ItemsOfOneModuleAreOneBoxThoughOthersStandBetween) {
  const std::vector<std::string> names = {"/a/x/MatMul", "/b/Add", "/a/y/MatMul", "/a/z/Add",
                                          "/b/Mul",      "/c/Add", "/c/Mul"};
  const std::vector<std::vector<size_t>> reads = {{}, {}, {0}, {2}, {1, 3}, {4}, {5}};
  const std::vector<ModuleBox> boxes = driver::gather_modules(names, reads, 3);
  ASSERT_EQ(boxes.size(), 3u);
  EXPECT_EQ(boxes[0].name, "a");
  EXPECT_EQ(boxes[0].items, (std::vector<size_t>{0, 2, 3}));
  EXPECT_EQ(boxes[1].items, (std::vector<size_t>{1, 4}));
}

TEST(Modules, APathThroughAnotherBoxKeepsAModuleInTwo) {
  const std::vector<std::string> names = {"/a/x/MatMul", "/a/y/MatMul", "/b/Add", "/b/Mul", "/a/z/Add", "/a/z/Mul"};
  const std::vector<std::vector<size_t>> reads = {{}, {0}, {1}, {2}, {3}, {4}};
  const std::vector<ModuleBox> boxes = driver::gather_modules(names, reads, 2);
  const std::vector<size_t> box = box_of(boxes, names.size());
  EXPECT_EQ(boxes.size(), 3u);
  EXPECT_NE(box[0], box[4]);
  for (size_t i = 0; i < names.size(); ++i) {
    for (const size_t from : reads[i]) EXPECT_LE(box[from], box[i]);
  }
}

TEST(Modules, RandomSequencesStayInOrder) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const size_t items = 5 + random() % 60;
    std::vector<std::string> names;
    std::vector<std::vector<size_t>> reads(items);
    for (size_t i = 0; i < items; ++i) {
      names.push_back("/" + std::to_string(random() % 4) + "/" + std::to_string(random() % 3) + "/Op");
      for (size_t n = random() % 3; i > 0 && n > 0; --n) reads[i].push_back(random() % i);
    }
    const std::vector<ModuleBox> boxes = driver::gather_modules(names, reads, 1 + random() % 12);
    const std::vector<size_t> box = box_of(boxes, items);
    size_t held = 0;
    for (const ModuleBox& one : boxes) held += one.items.size();
    ASSERT_EQ(held, items);
    for (size_t i = 0; i < items; ++i) {
      for (const size_t from : reads[i]) ASSERT_LE(box[from], box[i]) << round;
    }
  }
}

}  // namespace
}  // namespace heddle
