#include "cli/support.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "base/thread/contention.h"
#include "cli/npy.h"
#include "cli/progress.h"
#include "driver/options/options.h"
#include "driver/shapes/guess.h"

namespace heddle::cli {
namespace {

std::pair<std::string, std::string> split_item(const std::string& item, const char* option, const char* form) {
  const size_t at = item.rfind('=');
  if (at == std::string::npos || at == 0) {
    fail(ErrorCode::kInvalidArgument, option, fmt::format("\"{}\" is not of the form {}", item, form));
  }
  return {item.substr(0, at), item.substr(at + 1)};
}

// One item of a list of extents: a number or a range.
struct Extent {
  int64_t min = 0, max = 0;
};

std::optional<Extent> parse_extent(std::string_view text) {
  const auto number = [&](int64_t& value) {
    const auto [next, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    text.remove_prefix(static_cast<size_t>(next - text.data()));
    return error == std::errc() && value >= 0;
  };
  Extent extent;
  if (!number(extent.min)) return std::nullopt;
  extent.max = extent.min;
  if (text.starts_with("..")) {
    text.remove_prefix(2);
    if (!number(extent.max) || extent.max < extent.min) return std::nullopt;
  }
  return text.empty() ? std::optional(extent) : std::nullopt;
}

// "ids=1,1..512": of a range the largest extent is the shape's, and the range is named by input and dimension.
void add_shape(CompileOptions& options, const std::string& item, Ranges ranges) {
  const auto [name, text] = split_item(item, "--shape", "NAME=1,2,3");
  Shape& shape = options.shapes[name];
  shape.clear();
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const auto extent = parse_extent(std::string_view(text).substr(at, end - at));
    if (!extent || end + 1 == text.size()) {
      fail(ErrorCode::kInvalidArgument, "--shape", fmt::format("\"{}\" is no list of extents", item),
           "Write for example --shape input=1,3,224,224, or --shape ids=1,1..512 where the second is 1 to 512");
    }
    if (extent->min < extent->max) {
      if (ranges == Ranges::kRefused || options.target != "cpu") {
        fail(ErrorCode::kInvalidArgument, "--shape", fmt::format("\"{}\" has a range of extents", item),
             "Ranges are for run, bench and compile with --target cpu. Give one number for each extent");
      }
      options.ranges[fmt::format("{}.{}", name, shape.size())] = {extent->min, extent->max};
    }
    shape.push_back(extent->max);
    at = end + 1;
  }
}

void set_limit(ImportLimits& limits, const std::string& item) {
  const auto [name, text] = split_item(item, "--limit", "NAME=NUMBER");
  const char *const begin = text.data(), *const end = begin + text.size();
  const auto parse = [&](auto& value) {
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error == std::errc() && stop == end) return;
    fail(ErrorCode::kInvalidArgument, "--limit", fmt::format("\"{}\" is no number", item));
  };
  if (name == "nodes") return parse(limits.nodes);
  if (name == "bytes") return parse(limits.bytes);
  if (name == "depth") return parse(limits.depth);
  if (name == "seconds") return parse(limits.seconds);
  fail(ErrorCode::kInvalidArgument, "--limit", fmt::format("\"{}\" is unknown", name),
       "Use nodes, bytes, depth or seconds");
}

}  // namespace

Prepared prepare(const Arguments& arguments, Ranges ranges) {
  if (arguments.model.empty()) fail(ErrorCode::kInvalidArgument, "MODEL", "it is empty", "Name an ONNX or plan file");
  Prepared prepared{arguments.options, {}};
  for (const std::string& item : arguments.shapes) add_shape(prepared.options, item, ranges);
  for (const std::string& item : arguments.inputs) {
    const auto [name, path] = split_item(item, "--input", "NAME=FILE.npy");
    if (path.empty()) fail(ErrorCode::kInvalidArgument, "--input", fmt::format("\"{}\" names no file", item));
    const Tensor tensor = read_npy(path);
    prepared.inputs[name] = tensor;
    // The data decides the shape, and the value where shapes depend on it.
    prepared.options.shapes.emplace(name, tensor.shape());
    prepared.options.values[name] = tensor;
  }
  for (const std::string& item : arguments.aliases) driver::add_alias(prepared.options, item, "--alias");
  for (const std::string& item : arguments.rows) driver::add_rows(prepared.options, item, "--rows");
  for (const std::string& item : arguments.appended) driver::add_appended(prepared.options, item, "--appended");
  for (const std::string& item : arguments.limits) set_limit(prepared.options.limits, item);
  prepared.options.progress = [line = std::make_shared<Progress>()](const std::string& stage, double fraction) {
    line->show(stage, fraction);
  };
  return prepared;
}

void tell_guess(const Arguments& arguments, const CompileOptions& options, const std::vector<PortInfo>& inputs) {
  const std::string guess = driver::guess_of(arguments.model, options, inputs);
  if (!guess.empty()) std::fprintf(stderr, "heddle: %s\n", guess.c_str());
}

void tell_branches(const std::string& guess) {
  if (!guess.empty()) tell("note", guess);
}

std::map<std::string, Tensor> fit_types(std::map<std::string, Tensor> inputs, const std::vector<PortInfo>& ports) {
  for (const PortInfo& port : ports) {
    if (const auto found = inputs.find(port.name); found != inputs.end()) {
      found->second = as_dtype(found->second, port.dtype);
    }
  }
  return inputs;
}

void print_busy(double waiting, int threads) {
  if (const std::string text = busy_text(waiting, threads); !text.empty()) print_line("note: " + text);
}

driver::Modules modules_of(const Arguments& arguments) {
  return arguments.unfold ? driver::Modules::kOpen : driver::Modules::kFolded;
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
