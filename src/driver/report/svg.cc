#include "driver/report/svg.h"

#include <fmt/format.h>

#include <map>

#include "driver/compile/collapse.h"
#include "driver/report/picture.h"
#include "schedule/region/stitch.h"

namespace heddle::driver {
namespace {

using Box = Picture::Box;

const char* colour(const GroupReport& group) {
  if (group.view) return "#eeeeee";
  if (group.kind == ir::GroupKind::kReference || !group.fallback.empty()) return "#f6c7c7";
  switch (group.kind) {
    case ir::GroupKind::kContraction:
    case ir::GroupKind::kAttention:
      return "#cfe3f7";
    case ir::GroupKind::kControl:
      return "#e6d6f5";
    default:
      return "#d5efd0";
  }
}

// What a stitch group moves, and in the title how each of its kernels works and why it is cut where it is.
void add_traffic(const GroupReport& group, Box& box) {
  double moved = 0, predicted = 0, measured = 0;
  for (const KernelReport& kernel : group.kernels) {
    moved += kernel.stitch.bytes_moved;
    predicted += kernel.stitch.predicted_seconds;
    measured += kernel.measured_seconds;
    box.title +=
        fmt::format("\n{}: {}, {} bytes on chip", kernel.label, kernel.stitch.mapping, kernel.stitch.on_chip_bytes);
    for (const schedule::SchemeChoice& choice : kernel.stitch.schemes) {
      box.title += fmt::format("\n  {}: {}, {}", choice.value, to_string(choice.scheme), choice.reason);
    }
  }
  for (const schedule::Boundary& boundary : group.boundaries) {
    box.title += fmt::format("\nboundary at {}: {}", boundary.value, boundary.reason);
  }
  box.lines.push_back(fmt::format("{:.3g} KB moved, {:.3g} compulsory, {:.3g} us predicted{}", moved * 1e-3,
                                  group.compulsory_bytes * 1e-3, predicted * 1e6,
                                  measured > 0 ? fmt::format(", {:.3g} measured", measured * 1e6) : ""));
}

Box make_box(const GroupReport& group) {
  Box box;
  box.fill = colour(group);
  if (group.kernels.empty()) {
    const bool reference = group.kind == ir::GroupKind::kReference || !group.fallback.empty();
    box.lines.push_back((group.view ? "view: " : reference ? "reference: " : "") + group.ops);
  }
  for (const KernelReport& kernel : group.kernels) box.lines.push_back(kernel.label);
  if (!group.kernels.empty()) box.lines.push_back(group.ops);
  box.title = fmt::format("{}\n{}", group.origins, group.ops);
  if (group.kind == ir::GroupKind::kStitch && !group.kernels.empty()) add_traffic(group, box);
  return box;
}

std::string signature(const GroupReport& group) {
  std::string text = fmt::format("{}|{}", static_cast<int>(group.kind), group.ops);
  for (const KernelReport& kernel : group.kernels) {
    text += "|" + kernel.symbol;
    for (const CudaLaunch& launch : kernel.launches) text += "|" + launch.symbol;
  }
  return text;
}

class GroupPicture {
 public:
  explicit GroupPicture(const CompiledModel& model) : graph_(*model.optimised), groups_(model.built.grouping.groups) {
    for (const GroupReport& group : model.report.groups) {
      if (group.depth == 0) reports_.push_back(&group);
    }
  }

  std::string draw() {
    collapse();
    add_boxes();
    add_edges();
    return picture_.svg();
  }

 private:
  // Group -> the group of the first block of its repeat.
  void collapse() {
    std::vector<std::string> signatures;
    for (const GroupReport* report : reports_) signatures.push_back(signature(*report));
    shown_as_.resize(groups_.size());
    for (size_t g = 0; g < groups_.size(); ++g) shown_as_[g] = g;
    for (const Repeat& repeat : find_repeats(signatures)) {
      if (repeat.period < 2) continue;  // a few equal boxes in a row say more than a frame
      for (size_t i = 0; i < repeat.period * repeat.count; ++i) {
        shown_as_[repeat.begin + i] = repeat.begin + i % repeat.period;
      }
      repeats_.push_back(repeat);
    }
  }

  void add_boxes() {
    for (const ir::Graph::Port& port : graph_.inputs()) input_box_[port.value] = picture_.add(terminal(port));
    box_of_.assign(groups_.size(), 0);
    for (size_t g = 0; g < groups_.size(); ++g) {
      box_of_[g] = shown_as_[g] == g ? picture_.add(make_box(*reports_[g])) : box_of_[shown_as_[g]];
    }
    for (const Repeat& repeat : repeats_) {
      std::vector<size_t> boxes;
      for (size_t i = 0; i < repeat.period; ++i) boxes.push_back(box_of_[repeat.begin + i]);
      picture_.frame(std::move(boxes), repeat.count);
    }
  }

  Box terminal(const ir::Graph::Port& port) const {
    return {{port.name, to_string(graph_.type(port.value))}, "#fff2cc", port.name, true};
  }

  void connect(const std::map<ir::ValueId, size_t>& made_by, ir::ValueId value, size_t to) {
    const auto maker = made_by.find(value);
    if (maker != made_by.end()) picture_.connect(maker->second, to, to_string(graph_.type(value)));
  }

  void add_edges() {
    std::map<ir::ValueId, size_t> made_by = input_box_;
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (const ir::ValueId value : groups_[g].inputs) connect(made_by, value, box_of_[g]);
      for (const ir::ValueId value : groups_[g].outputs) made_by[value] = box_of_[g];
    }
    for (const ir::Graph::Port& port : graph_.outputs()) connect(made_by, port.value, picture_.add(terminal(port)));
  }

  const ir::Graph& graph_;
  const std::vector<ir::Group>& groups_;
  std::vector<const GroupReport*> reports_;
  std::vector<Repeat> repeats_;
  std::vector<size_t> shown_as_, box_of_;
  std::map<ir::ValueId, size_t> input_box_;
  Picture picture_;
};

}  // namespace

std::string draw_svg(const CompiledModel& model) {
  return GroupPicture(model).draw();
}

}  // namespace heddle::driver
