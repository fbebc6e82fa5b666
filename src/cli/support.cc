#include "cli/support.h"

#include <algorithm>
#include <charconv>
#include <memory>

#include "base/check.h"
#include "cli/npy.h"
#include "cli/progress.h"
#include "driver/guess.h"

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

std::map<std::string, Tensor> fit_types(std::map<std::string, Tensor> inputs, const std::vector<PortInfo>& ports) {
  for (const PortInfo& port : ports) {
    if (const auto found = inputs.find(port.name); found != inputs.end()) {
      found->second = as_dtype(found->second, port.dtype);
    }
  }
  return inputs;
}

std::string machine_of(const std::string& target) {
  const size_t kind = target.find('-');
  return target.substr(0, kind == std::string::npos ? kind : target.find('-', kind + 1));
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
