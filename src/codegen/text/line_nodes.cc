#include "codegen/text/line_nodes.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace heddle::codegen {
namespace {

constexpr char kTag = '@';

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::vector<uint32_t> tags_in(std::string_view comment) {
  std::vector<uint32_t> nodes;
  for (size_t at = comment.find(kTag); at != std::string_view::npos; at = comment.find(kTag, at + 1)) {
    uint32_t node = 0;
    const char* const begin = comment.data() + at + 1;
    const auto result = std::from_chars(begin, comment.data() + comment.size(), node);
    if (result.ec == std::errc()) nodes.push_back(node);
  }
  return nodes;
}

// The reductions of the stage that a text is in. Comments in front of a stage name them in order, and so do the
// declarations of their accumulators; columns have no accumulators.
class StageReductions {
 public:
  void named(const std::vector<uint32_t>& nodes, bool first) {
    if (first) of_stage_.clear(), declared_ = 0;
    of_stage_.insert(of_stage_.end(), nodes.begin(), nodes.end());
  }

  // Those that a line works on.
  std::vector<uint32_t> in(std::string_view code) {
    std::vector<uint32_t> nodes;
    const bool declares = has(code, "accumulator<") || has(code, "long_sum<") || has(code, "running_sum<");
    if (declares && code.ends_with(";") && declared_ < of_stage_.size()) {
      const size_t name = code.rfind(' ') + 1;
      const std::string accumulator(code.substr(name, code.size() - 1 - name));
      nodes.push_back(by_name_[accumulator] = of_stage_[declared_++]);
    }
    for (const auto& [name, node] : by_name_) {
      for (const char* use : {".add(", ".settle(", ".result(", ".lanes(", ".part[", ".where"}) {
        const size_t at = code.find(name + use);
        if (at != std::string_view::npos && (at == 0 || code[at - 1] == ' ' || code[at - 1] == '(')) {
          nodes.push_back(node);
        }
      }
    }
    for (const char* combining : {"_of::apply(", "add_compensated(", "arg_columns<", "tile::reset<"}) {
      if (has(code, combining)) nodes.insert(nodes.end(), of_stage_.begin(), of_stage_.end());
    }
    return nodes;
  }

 private:
  std::vector<uint32_t> of_stage_;
  size_t declared_ = 0;
  std::map<std::string, uint32_t> by_name_;
};

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

}  // namespace

std::string node_tag(uint32_t node) {
  return kTag + std::to_string(node);
}

std::vector<std::vector<uint32_t>> nodes_by_line(std::string_view text) {
  std::vector<std::vector<uint32_t>> lines;
  std::vector<bool> declares;
  StageReductions reductions;
  bool behind_comment = false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::string_view code = trimmed(line.substr(0, line.find("//")));
    std::vector<uint32_t> nodes = tags_in(line.substr(std::min(line.find("//"), line.size())));
    if (code.empty()) {
      if (!nodes.empty()) reductions.named(nodes, !behind_comment);
      behind_comment = true;
      nodes.clear();
    } else {
      behind_comment = false;
      const std::vector<uint32_t> more = reductions.in(code);
      nodes.insert(nodes.end(), more.begin(), more.end());
    }
    std::vector<uint32_t> once;
    for (const uint32_t node : nodes) {
      if (std::find(once.begin(), once.end(), node) == once.end()) once.push_back(node);
    }
    lines.push_back(std::move(once));
    declares.push_back(code.starts_with("const auto "));
  }
  for (size_t i = lines.size() - (lines.empty() ? 0 : 1); i-- > 0;) {
    if (lines[i].empty() && declares[i]) lines[i] = lines[i + 1];
  }
  return lines;
}

}  // namespace heddle::codegen
