#include "cli/support.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "cli/npy.h"

namespace heddle::cli {
namespace {

std::pair<std::string, std::string> split_item(const std::string& item, const char* option, const char* form) {
  const size_t at = item.rfind('=');
  if (at == std::string::npos || at == 0) {
    fail(ErrorCode::kInvalidArgument, option, fmt::format("\"{}\" is not of the form {}", item, form));
  }
  return {item.substr(0, at), item.substr(at + 1)};
}

Shape parse_shape(const std::string& text, const std::string& item) {
  Shape shape;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    int64_t extent = 0;
    const auto [next, error] = std::from_chars(at, end, extent);
    if (error != std::errc() || extent < 0 || (next < end && (*next != ',' || next + 1 == end))) {
      fail(ErrorCode::kInvalidArgument, "--shape", fmt::format("\"{}\" is no list of extents", item),
           "Write for example --shape input=1,3,224,224");
    }
    shape.push_back(extent);
    at = next < end ? next + 1 : end;
  }
  return shape;
}

void show_progress(const std::string& stage, double fraction) {
  constexpr int kWidth = 24;
  const int filled = static_cast<int>(fraction * kWidth);
  const std::string bar =
      std::string(static_cast<size_t>(filled), '#') + std::string(static_cast<size_t>(kWidth - filled), '.');
  std::fprintf(stderr, "\r[%s] %-12s", bar.c_str(), stage.c_str());
  if (fraction >= 1) std::fprintf(stderr, "\r%*s\r", kWidth + 16, "");
  std::fflush(stderr);
}

}  // namespace

Prepared prepare(const Arguments& arguments) {
  if (arguments.model.empty()) fail(ErrorCode::kInvalidArgument, "MODEL", "it is empty", "Name an ONNX or plan file");
  Prepared prepared{arguments.options, {}};
  for (const std::string& item : arguments.shapes) {
    const auto [name, text] = split_item(item, "--shape", "NAME=1,2,3");
    prepared.options.shapes[name] = parse_shape(text, item);
  }
  for (const std::string& item : arguments.inputs) {
    const auto [name, path] = split_item(item, "--input", "NAME=FILE.npy");
    if (path.empty()) fail(ErrorCode::kInvalidArgument, "--input", fmt::format("\"{}\" names no file", item));
    const Tensor tensor = read_npy(path);
    prepared.inputs[name] = tensor;
    // The data decides the shape, and the value where shapes depend on it.
    prepared.options.shapes.emplace(name, tensor.shape());
    prepared.options.values[name] = tensor;
  }
  if (::isatty(STDERR_FILENO) != 0) prepared.options.progress = show_progress;
  return prepared;
}

std::map<std::string, Tensor> fit_types(std::map<std::string, Tensor> inputs, const std::vector<PortInfo>& ports) {
  for (const PortInfo& port : ports) {
    if (const auto found = inputs.find(port.name); found != inputs.end()) {
      found->second = as_dtype(found->second, port.dtype);
    }
  }
  return inputs;
}

void Table::print() const {
  std::vector<size_t> widths(rows_[0].size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (size_t r = 0; r < rows_.size(); ++r) {
    std::string line, rule;
    for (size_t i = 0; i < rows_[r].size(); ++i) {
      const bool last = i + 1 == rows_[r].size();
      line += rows_[r][i] + (last ? "" : std::string(widths[i] - rows_[r][i].size() + 2, ' '));
      rule += std::string(widths[i], '-') + (last ? "" : "  ");
    }
    print_line(line);
    if (r == 0) print_line(rule);
  }
}

void print_line(const std::string& line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
}

void print_json(const nlohmann::json& document) {
  print_line(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string human_bytes(double bytes) {
  if (bytes >= 1e9) return fmt::format("{:.2f} GB", bytes * 1e-9);
  if (bytes >= 1e6) return fmt::format("{:.1f} MB", bytes * 1e-6);
  if (bytes >= 1e3) return fmt::format("{:.1f} KB", bytes * 1e-3);
  return fmt::format("{:.0f} B", bytes);
}

std::string human_seconds(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3f} ms", seconds * 1e3);
  return fmt::format("{:.1f} us", seconds * 1e6);
}

}  // namespace heddle::cli
