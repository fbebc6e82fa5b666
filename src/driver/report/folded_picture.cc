#include "driver/report/folded_picture.h"

#include <fmt/format.h>

#include <unordered_map>

namespace heddle::driver {
namespace {

constexpr size_t kMostBoxes = 4000;  // drawn; the rest is told in a box
constexpr size_t kNoBox = std::string::npos;

// By item: the items that made what it reads.
std::vector<std::vector<size_t>> item_reads(const PictureItems& items) {
  std::unordered_map<size_t, size_t> made_by;
  std::vector<std::vector<size_t>> reads(items.names.size());
  for (size_t i = 0; i < reads.size(); ++i) {
    for (const size_t value : items.reads[i]) {
      if (const auto maker = made_by.find(value); maker != made_by.end()) reads[i].push_back(maker->second);
    }
    for (const size_t value : items.makes[i]) made_by[value] = i;
  }
  return reads;
}

}  // namespace

std::string draw_folded(Picture& picture, const PictureItems& items, Modules modules,
                        const std::function<Picture::Box(const ModuleBox& part, size_t times)>& box) {
  const FoldedItems folded = fold_items(items.names, item_reads(items), items.signatures, modules);
  const std::vector<size_t> times = folded.times();
  std::unordered_map<size_t, size_t> made_by;  // value -> box
  for (const PictureItems::Port& port : items.inputs) made_by[port.value] = picture.add(port.box);
  std::vector<size_t> box_of_part(folded.parts.size(), kNoBox), box_of(items.names.size(), kNoBox);
  size_t drawn = 0, left = 0;
  for (size_t p = 0; p < folded.parts.size(); ++p) {
    const ModuleBox& part = folded.parts[p];
    if (folded.shown_as[p] != p) {
      box_of_part[p] = box_of_part[folded.shown_as[p]];
    } else if (drawn < kMostBoxes) {
      box_of_part[p] = picture.add(box(part, times[p]));
      ++drawn;
    } else {
      left += part.items.size();
    }
    for (const size_t i : part.items) box_of[i] = box_of_part[p];
  }
  if (left > 0) {
    picture.add({fmt::format("and {} {} more, which are not drawn", left, items.what), {}, Picture::Kind::kView, ""});
  }
  for (const Repeat& repeat : folded.repeats) {
    const auto begin = box_of_part.begin() + static_cast<std::ptrdiff_t>(repeat.begin);
    std::vector<size_t> boxes(begin, begin + static_cast<std::ptrdiff_t>(repeat.period));
    std::erase(boxes, kNoBox);
    if (!boxes.empty()) picture.frame(std::move(boxes), repeat.count);
  }
  const auto connect = [&](size_t value, size_t to) {
    const auto maker = made_by.find(value);
    if (maker != made_by.end() && maker->second != kNoBox && to != kNoBox) picture.connect(maker->second, to);
  };
  for (size_t i = 0; i < items.names.size(); ++i) {
    for (const size_t value : items.reads[i]) connect(value, box_of[i]);
    for (const size_t value : items.makes[i]) made_by[value] = box_of[i];
  }
  for (const PictureItems::Port& port : items.outputs) connect(port.value, picture.add(port.box));
  return picture.svg();
}

}  // namespace heddle::driver
