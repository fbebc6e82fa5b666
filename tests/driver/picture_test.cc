#include "driver/report/picture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <regex>

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

// Where the texts of an SVG that Picture wrote end, at most: characters are as wide as their class lets them be.
std::vector<Rectangle> texts_in(const std::string& svg) {
  static const std::regex kText(
      "<text class=\"(.)\" x=\"([0-9.]+)\" y=\"([0-9.]+)\"( text-anchor=\"middle\")?>([^<]*)</text>");
  const std::map<std::string, double> widths = {{"h", 11}, {"n", 7.9}, {"m", 6.3}};
  std::smatch moved;
  EXPECT_TRUE(std::regex_search(svg, moved, std::regex("<g transform=\"translate\\(([0-9.]+) ([0-9.]+)\\)\">")));
  std::vector<Rectangle> texts;
  for (std::sregex_iterator at(svg.begin(), svg.end(), kText), end; at != end; ++at) {
    const std::smatch& match = *at;
    const bool inside = match.position() > moved.position();
    const double width = widths.at(match[1]) * static_cast<double>(match[5].length());
    double x = std::stod(match[2]), y = std::stod(match[3]);
    if (match[4].matched) x -= width / 2;
    if (inside) x += std::stod(moved[1]), y += std::stod(moved[2]);
    texts.push_back({x, y - 10, x + width, y + 3});
  }
  return texts;
}

TEST(Picture, AllTextLiesInTheViewBox) {
  Picture picture;
  picture.heading("bert.onnx", "cpu: 300 operators in 90 kernels (12 distinct), 3.21 ms measured");
  size_t last = picture.add({"x", {"f32[4]"}, Picture::Kind::kPort, "x"});
  for (int kind = 0; kind <= static_cast<int>(Picture::Kind::kModule); ++kind) {
    const auto of = static_cast<Picture::Kind>(kind);
    const size_t box = picture.add({std::string(60, 'm'), {std::string(80, 'w'), "to f32[4]"}, of, "", {{of, 0.3}}});
    picture.connect(last, box);
    last = box;
  }
  picture.frame({1, 2}, 12);
  const std::string svg = picture.svg();
  std::smatch box;
  ASSERT_TRUE(std::regex_search(svg, box, std::regex("viewBox=\"0 0 ([0-9]+) ([0-9]+)\"")));
  const std::vector<Rectangle> texts = texts_in(svg);
  EXPECT_GT(texts.size(), 40u);
  for (const Rectangle& text : texts) {
    EXPECT_TRUE(text.left >= 0 && text.top >= 0) << text.left << " " << text.top;
    EXPECT_TRUE(text.right <= std::stod(box[1]) && text.bottom <= std::stod(box[2]))
        << text.right << " " << text.bottom;
  }
  // Entries of the legend in two rows are not in the way of each other or of the heading.
  for (size_t a = 0; a < texts.size(); ++a) {
    for (size_t b = 0; b < a; ++b) EXPECT_FALSE(texts[a].meets(texts[b])) << a << " " << b;
  }
}

TEST(Modules, ManyItemsAreShownByTheirModulesUnlessTheyStayOpen) {
  std::vector<std::string> names, signatures;
  std::vector<std::vector<size_t>> reads;
  for (size_t i = 0; i < 300; ++i) {
    names.push_back("/block." + std::to_string(i / 10) + "/" + (i % 10 < 5 ? "attention" : "mlp") + "/Op");
    signatures.push_back(std::to_string(i));
    reads.push_back(i == 0 ? std::vector<size_t>() : std::vector<size_t>{i - 1});
  }
  const driver::FoldedItems folded = driver::fold_items(names, reads, signatures, driver::Modules::kFolded);
  EXPECT_LE(folded.shown(), 60u);
  for (const ModuleBox& part : folded.parts) EXPECT_TRUE(part.name.starts_with("block.")) << part.name;
  EXPECT_EQ(driver::fold_items(names, reads, signatures, driver::Modules::kOpen).shown(), 300u);
  // Blocks that are equal are one.
  for (size_t i = 0; i < signatures.size(); ++i) signatures[i] = std::to_string(i % 10);
  const driver::FoldedItems repeated = driver::fold_items(names, reads, signatures, driver::Modules::kFolded);
  EXPECT_EQ(repeated.shown(), 10u);  // which are few enough to be drawn
  EXPECT_EQ(repeated.times()[0], 30u);
}

TEST(Modules, ItemsWhoseNamesTellNothingAreShownInStretchesBetweenBlocks) {
  // Blocks of 9 items whose first one is read by the last one, too.
  std::vector<std::string> names, signatures;
  std::vector<std::vector<size_t>> reads;
  for (size_t i = 0; i < 270; ++i) {
    names.push_back("node." + std::to_string(i));
    signatures.push_back(std::to_string(i));
    reads.push_back(i == 0 ? std::vector<size_t>() : std::vector<size_t>{i - 1});
    if (i % 9 == 8) reads.back().push_back(i - 8);
  }
  const driver::FoldedItems folded = driver::fold_items(names, reads, signatures, driver::Modules::kFolded);
  EXPECT_LE(folded.shown(), 48u);
  size_t next = 0;
  for (const ModuleBox& part : folded.parts) {
    EXPECT_EQ(part.items.front(), next);
    EXPECT_EQ(part.items.size(), 9u);
    next = part.items.back() + 1;
  }
  EXPECT_EQ(next, 270u);
  EXPECT_EQ(folded.parts[0].name, "node.0 .. node.8");
}

TEST(Modules, ANameOfAMillionSlashesIsTaken) {
  std::vector<std::string> names(100, "a/b");
  std::vector<std::string> signatures;
  for (size_t i = 0; i < names.size(); ++i) signatures.push_back(std::to_string(i));
  for (size_t i = 0; i < 1000000; ++i) names[7] += "/a";
  const driver::FoldedItems folded =
      driver::fold_items(names, std::vector<std::vector<size_t>>(100), signatures, driver::Modules::kFolded);
  EXPECT_LE(folded.shown(), 96u);
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
