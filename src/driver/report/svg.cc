#include "driver/report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "driver/model/kernel_times.h"
#include "driver/report/folded_picture.h"
#include "schedule/region/stitch.h"

namespace heddle::driver {
namespace {

using Box = Picture::Box;
using Kind = Picture::Kind;

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
    PictureItems items{"groups"};
    for (size_t g = 0; g < groups_.size(); ++g) {
      items.names.push_back(reports_[g]->origins.substr(0, reports_[g]->origins.find(',')));
      items.signatures.push_back(signature(*reports_[g]));
      items.reads.emplace_back(groups_[g].inputs.begin(), groups_[g].inputs.end());
      items.makes.emplace_back(groups_[g].outputs.begin(), groups_[g].outputs.end());
    }
    for (const ir::Graph::Port& port : graph_.inputs()) items.inputs.push_back({port.value, terminal(port)});
    for (const ir::Graph::Port& port : graph_.outputs()) items.outputs.push_back({port.value, terminal(port)});
    return draw_folded(picture_, items, modules,
                       [this](const ModuleBox& part, size_t times) { return make_box(part, times); });
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

  Box terminal(const ir::Graph::Port& port) const {
    return {port.name, {to_string(graph_.type(port.value))}, Kind::kPort, port.name};
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

  const ir::Graph& graph_;
  const std::vector<ir::Group>& groups_;
  const KernelTimes times_;
  std::vector<const GroupReport*> reports_;
  std::vector<double> seconds_;  // of a group, with the bodies of its loops
  double all_ = 0;
  Picture picture_;
};

}  // namespace

std::string draw_svg(const CompiledModel& model, Modules modules) {
  return GroupPicture(model).draw(modules);
}

}  // namespace heddle::driver
