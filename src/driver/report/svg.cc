#include "driver/report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "driver/model/kernel_times.h"
#include "driver/report/modules.h"
#include "driver/report/picture.h"
#include "schedule/region/stitch.h"

namespace heddle::driver {
namespace {

using Box = Picture::Box;
using Kind = Picture::Kind;

constexpr size_t kMostBoxes = 4000;  // drawn; the rest is told in a box
constexpr size_t kNoBox = std::string::npos;

Kind kind_of(const GroupReport& group) {
  if (group.view) return Kind::kView;
  if (group.kind == ir::GroupKind::kReference || !group.fallback.empty()) return Kind::kReference;
  switch (group.kind) {
    case ir::GroupKind::kContraction:
    case ir::GroupKind::kBackToBack:
      return Kind::kContraction;
    case ir::GroupKind::kAttention:
      return Kind::kAttention;
    case ir::GroupKind::kControl:
      return Kind::kControl;
    default:
      return Kind::kStitch;
  }
}

std::string duration(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.3g} us", seconds * 1e6) : fmt::format("{:.3g} ms", seconds * 1e3);
}

// How each kernel of a stitch group works, and why the group is cut where it is.
std::string stitch_title(const GroupReport& group) {
  std::string title;
  double moved = 0;
  for (const KernelReport& kernel : group.kernels) {
    moved += kernel.stitch.bytes_moved;
    title +=
        fmt::format("\n{}: {}, {} bytes on chip", kernel.label, kernel.stitch.mapping, kernel.stitch.on_chip_bytes);
    for (const schedule::SchemeChoice& choice : kernel.stitch.schemes) {
      title += fmt::format("\n  {}: {}, {}", choice.value, to_string(choice.scheme), choice.reason);
    }
  }
  for (const schedule::Boundary& boundary : group.boundaries) {
    title += fmt::format("\nboundary at {}: {}", boundary.value, boundary.reason);
  }
  return title + fmt::format("\n{:.3g} KB moved, {:.3g} compulsory", moved * 1e-3, group.compulsory_bytes * 1e-3);
}

// The same work in another layer has the same one: kernels are told by what they compute, whatever they are named.
std::string signature(const GroupReport& group) {
  std::string text = fmt::format("{}|{}", static_cast<int>(group.kind), group.ops);
  for (const KernelReport& kernel : group.kernels) text += "|" + kernel.label;
  return text;
}

class GroupPicture {
 public:
  explicit GroupPicture(const CompiledModel& model)
      : graph_(*model.optimised), groups_(model.built.grouping.groups), times_(model.report) {
    std::vector<int64_t> runs = {1};  // by depth: how often a body runs in one run of the model
    for (const GroupReport& group : model.report.groups) {
      runs.resize(static_cast<size_t>(group.depth) + 1);
      double seconds = group.measured_seconds;
      for (const KernelReport& kernel : group.kernels) seconds += times_.seconds(kernel);
      seconds *= static_cast<double>(runs.back());
      all_ += seconds;
      if (group.kind == ir::GroupKind::kControl) runs.push_back(runs.back() * std::max<int64_t>(group.trips, 1));
      if (group.depth > 0) {  // the body of a loop, which the box of the loop stands for
        if (!seconds_.empty()) seconds_.back() += seconds;
        continue;
      }
      reports_.push_back(&group);
      seconds_.push_back(seconds);
    }
    heading(model.report);
  }

  std::string draw(Modules modules) {
    std::vector<std::string> names, signatures;
    for (const GroupReport* report : reports_) {
      names.push_back(report->origins.substr(0, report->origins.find(',')));
      signatures.push_back(signature(*report));
    }
    folded_ = fold_items(names, group_reads(), signatures, modules);
    add_boxes();
    add_edges();
    return picture_.svg();
  }

 private:
  void heading(const CompileReport& report) {
    size_t kernels = 0;
    for (const GroupReport& group : report.groups) kernels += group.kernels.size();
    picture_.heading(std::filesystem::path(report.model).filename().string(),
                     fmt::format("{}: {} operators in {} kernels ({} distinct), {} {}", machine_of(report.target),
                                 report.model_nodes, kernels, report.distinct_kernels, duration(all_),
                                 times_.measured() ? "measured" : "predicted"));
  }

  // By group: the groups that made its inputs.
  std::vector<std::vector<size_t>> group_reads() const {
    std::map<ir::ValueId, size_t> made_by;
    std::vector<std::vector<size_t>> reads(groups_.size());
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (const ir::ValueId value : groups_[g].inputs) {
        if (const auto maker = made_by.find(value); maker != made_by.end()) reads[g].push_back(maker->second);
      }
      for (const ir::ValueId value : groups_[g].outputs) made_by[value] = g;
    }
    return reads;
  }

  void add_boxes() {
    for (const ir::Graph::Port& port : graph_.inputs()) input_box_[port.value] = picture_.add(terminal(port));
    const std::vector<ModuleBox>& parts = folded_.parts;
    const std::vector<size_t> times = folded_.times();
    box_of_.assign(groups_.size(), 0);
    std::vector<size_t> box_of_part(parts.size(), kNoBox);
    size_t drawn = 0, left = 0;
    for (size_t p = 0; p < parts.size(); ++p) {
      if (folded_.shown_as[p] != p) {
        box_of_part[p] = box_of_part[folded_.shown_as[p]];
      } else if (drawn < kMostBoxes) {
        box_of_part[p] = picture_.add(make_box(parts[p], times[p]));
        ++drawn;
      } else {
        ++left;
      }
      for (const size_t g : parts[p].items) box_of_[g] = box_of_part[p];
    }
    if (left > 0) picture_.add({fmt::format("and {} groups more, which are not drawn", left), {}, Kind::kView, ""});
    for (const Repeat& repeat : folded_.repeats) {
      std::vector<size_t> boxes(box_of_part.begin() + static_cast<std::ptrdiff_t>(repeat.begin),
                                box_of_part.begin() + static_cast<std::ptrdiff_t>(repeat.begin + repeat.period));
      std::erase(boxes, kNoBox);
      if (!boxes.empty()) picture_.frame(std::move(boxes), repeat.count);
    }
  }

  static Box terminal_box(const std::string& name, const std::string& type) {
    return {name, {type}, Kind::kPort, name};
  }

  Box terminal(const ir::Graph::Port& port) const {
    return terminal_box(port.name, to_string(graph_.type(port.value)));
  }

  std::string time_text(double seconds) const {
    const double percent = 100 * seconds / all_;
    return duration(seconds) +
           (percent < 0.05 ? ", <0.1%" : fmt::format(", {:.{}f}%", percent, percent < 9.95 ? 1 : 0));
  }

  // `times`: how often the part stands in the model; its box has the time of all.
  Box make_box(const ModuleBox& part, size_t times) const {
    std::map<Kind, double> time;
    double all = 0;
    for (const size_t g : part.items) {
      time[kind_of(*reports_[g])] += seconds_[g] * static_cast<double>(times);
      all += seconds_[g] * static_cast<double>(times);
    }
    Box box = part.name.empty() ? group_box(part.items.front()) : module_box(part);
    std::string last = all > 0 && all_ > 0 ? time_text(all) : "";
    if (part.name.empty()) last += (last.empty() ? "to " : ", to ") + output_types(part.items.front());
    box.lines.push_back(std::move(last));
    for (const auto& [kind, seconds] : time) {
      if (seconds > 0 && all_ > 0) box.time.emplace_back(kind, seconds / all_);
    }
    return box;
  }

  std::string output_types(size_t g) const {
    std::string text;
    for (const ir::ValueId value : groups_[g].outputs)
      text += (text.empty() ? "" : " ") + to_string(graph_.type(value));
    return text;
  }

  Box group_box(size_t g) const {
    const GroupReport& group = *reports_[g];
    Box box;
    box.kind = kind_of(group);
    const size_t kernels = group.kernels.size();
    if (kernels == 0) {
      box.name = (box.kind == Kind::kReference ? "reference: " : "") + group.ops;
    } else {
      box.name = group.kernels.front().label;
      if (kernels > 1) box.lines.push_back(fmt::format("and {} kernel{} more", kernels - 1, kernels == 2 ? "" : "s"));
    }
    if (!group.origins.empty()) box.lines.push_back("of " + group.origins);
    box.title = fmt::format("{}\n{}", group.origins, group.ops);
    if (group.kind == ir::GroupKind::kStitch && kernels > 0) box.title += stitch_title(group);
    return box;
  }

  Box module_box(const ModuleBox& part) const {
    Box box;
    box.kind = Kind::kModule;
    box.name = part.name;
    std::map<Kind, size_t> kernels;
    size_t all = 0;
    std::map<std::string, size_t> labels;
    for (const size_t g : part.items) {
      kernels[kind_of(*reports_[g])] += reports_[g]->kernels.size();
      all += reports_[g]->kernels.size();
      for (const KernelReport& kernel : reports_[g]->kernels) ++labels[kernel.label];
    }
    box.lines.push_back(fmt::format("{} kernel{}: {}", all, all == 1 ? "" : "s", count_text(kernels)));
    box.title = part.name;
    for (const auto& [label, count] : labels) box.title += fmt::format("\n{} x {}", count, label);
    return box;
  }

  static std::string count_text(const std::map<Kind, size_t>& kernels) {
    const std::map<Kind, const char*> names = {{Kind::kContraction, "contraction"},
                                               {Kind::kAttention, "attention"},
                                               {Kind::kStitch, "stitch"},
                                               {Kind::kControl, "loop"},
                                               {Kind::kReference, "reference"}};
    std::string text;
    for (const auto& [kind, count] : kernels) {
      const auto name = names.find(kind);
      if (count > 0 && name != names.end())
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name->second);
    }
    return text;
  }

  void add_edges() {
    std::map<ir::ValueId, size_t> made_by = input_box_;
    const auto connect = [&](ir::ValueId value, size_t to) {
      const auto maker = made_by.find(value);
      if (maker == made_by.end() || maker->second == kNoBox || to == kNoBox) return;
      picture_.connect(maker->second, to);
    };
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (const ir::ValueId value : groups_[g].inputs) connect(value, box_of_[g]);
      for (const ir::ValueId value : groups_[g].outputs) made_by[value] = box_of_[g];
    }
    for (const ir::Graph::Port& port : graph_.outputs()) connect(port.value, picture_.add(terminal(port)));
  }

  const ir::Graph& graph_;
  const std::vector<ir::Group>& groups_;
  const KernelTimes times_;
  std::vector<const GroupReport*> reports_;
  std::vector<double> seconds_;  // of a group, with the bodies of its loops
  double all_ = 0;
  FoldedItems folded_;
  std::vector<size_t> box_of_;
  std::map<ir::ValueId, size_t> input_box_;
  Picture picture_;
};

}  // namespace

std::string draw_svg(const CompiledModel& model, Modules modules) {
  return GroupPicture(model).draw(modules);
}

}  // namespace heddle::driver
