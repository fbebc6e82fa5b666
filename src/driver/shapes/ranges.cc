#include "driver/shapes/ranges.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"
#include "base/near_miss.h"
#include "driver/shapes/import.h"
#include "frontend/onnx/importer.h"

namespace heddle::driver {
namespace {

using InputDims = onnx::ModelFile::InputDims;
using Extents = std::map<std::string, int64_t>;  // by name of the range

// The name of the range that an extent has; "" for none.
std::string range_of(const CompileOptions& options, const InputDims& input, size_t d) {
  if (input.extents[d] >= 0) return "";
  const std::string place = fmt::format("{}.{}", input.name, d);
  if (options.ranges.contains(place)) return place;
  return !input.symbols[d].empty() && options.ranges.contains(input.symbols[d]) ? input.symbols[d] : "";
}

void check_ranges(const std::string& path, const CompileOptions& options, const std::vector<InputDims>& inputs) {
  std::set<std::string> known, used;
  for (const InputDims& input : inputs) {
    for (size_t d = 0; d < input.extents.size(); ++d) {
      if (input.extents[d] >= 0) continue;
      known.insert(input.symbols[d].empty() ? fmt::format("{}.{}", input.name, d) : input.symbols[d]);
      used.insert(range_of(options, input, d));
    }
  }
  for (const auto& [name, range] : options.ranges) {
    constexpr int64_t kMost = int64_t{1} << 32;
    if (range.min < 0 || range.min > range.max || range.max > kMost) {
      fail(ErrorCode::kInvalidArgument, fmt::format("range {}", name),
           fmt::format("{}..{} is no range of extents", range.min, range.max), "Give the smallest value first");
    }
    if (used.contains(name)) continue;
    fail(ErrorCode::kInvalidArgument, fmt::format("range {}", name),
         fmt::format("{} has no symbolic extent of this name", path),
         known.empty() ? "All its shapes are numbers"
                       : fmt::format("{}It has {}", did_you_mean(name, known), fmt::join(known, ", ")));
  }
}

// An extent that has a name in the model has its range under that name, so that all its dimensions vary together.
CompileOptions with_named_ranges(CompileOptions options, const std::vector<InputDims>& inputs) {
  for (const InputDims& input : inputs) {
    for (size_t d = 0; d < input.extents.size(); ++d) {
      const auto at = options.ranges.find(fmt::format("{}.{}", input.name, d));
      if (at == options.ranges.end() || input.symbols[d].empty()) continue;
      const auto [place, range] = *at;
      options.ranges.erase(at);
      const ExtentRange& known = options.ranges.try_emplace(input.symbols[d], range).first->second;
      if (known.min == range.min && known.max == range.max) continue;
      fail(ErrorCode::kInvalidArgument, fmt::format("range {}", place),
           fmt::format("it is {}..{}, and {}..{} elsewhere for {}", range.min, range.max, known.min, known.max,
                       input.symbols[d]),
           "Give the extents of one name the same range");
    }
  }
  return options;
}

using Shapes = std::map<std::string, Shape>;

// Shapes of inputs that `options` leave open, as load() guesses them; only where ranges leave something to guess.
Shapes guessed_shapes(onnx::ModelFile& file, const CompileOptions& options, const std::vector<InputDims>& inputs) {
  const auto is_open = [&](const InputDims& input) {
    bool ranges = false, open = false;
    for (size_t d = 0; d < input.extents.size(); ++d) {
      const bool has_range = !range_of(options, input, d).empty();
      ranges = ranges || has_range;
      open = open || (input.extents[d] < 0 && !has_range);
    }
    return ranges && open && !options.shapes.contains(input.name);
  };
  Shapes shapes;
  if (std::none_of(inputs.begin(), inputs.end(), is_open)) return shapes;
  const onnx::Imported imported = file.import(import_options(options));
  for (const ir::Graph::Port& port : imported.graph.inputs()) shapes[port.name] = imported.graph.shape(port.value);
  return shapes;
}

// `guessed` has the extents that neither the model nor the options give.
CompileOptions with_extents(CompileOptions options, const std::vector<InputDims>& inputs, const Extents& extents,
                            bool keeps_given, const Shapes& guessed = {}) {
  for (const InputDims& input : inputs) {
    const bool given = options.shapes.contains(input.name);
    if (given && keeps_given) continue;
    Shape shape = given ? options.shapes.at(input.name) : input.extents;
    if (shape.size() != input.extents.size()) continue;
    const auto guess = guessed.find(input.name);
    bool ranges = false;
    for (size_t d = 0; d < shape.size(); ++d) {
      const auto extent = extents.find(range_of(options, input, d));
      ranges = ranges || extent != extents.end();
      if (extent != extents.end()) {
        shape[d] = extent->second;
      } else if (shape[d] < 0 && guess != guessed.end()) {
        shape[d] = guess->second[d];
      }
    }
    if (ranges) options.shapes[input.name] = shape;
  }
  return options;
}

Extents largest(const CompileOptions& options) {
  Extents extents;
  for (const auto& [name, range] : options.ranges) extents[name] = range.max;
  return extents;
}

// What decides the form of kernels are small extents, multiples of vectors and orders of magnitude.
std::vector<int64_t> samples(const ExtentRange& range) {
  constexpr int64_t kAll = 32, kVector = 16;
  std::set<int64_t> values;
  const auto add = [&](int64_t value) {
    if (value >= range.min && value <= range.max) values.insert(value);
  };
  for (int64_t i = 0; i < kAll; ++i) add(range.min + i);
  for (int64_t value = std::max(range.min, kAll); value < range.max; value += std::max(value / 8, int64_t{1})) {
    for (const int64_t near : {int64_t{0}, int64_t{1}}) add(value / kVector * kVector + near);
    add(value);
  }
  add(range.max);
  return {values.begin(), values.end()};
}

}  // namespace

CompileOptions with_largest_extents(const std::string& path, CompileOptions options) {
  if (is_ir_file(path)) {
    check_ranges(path, options, {});
    return options;
  }
  onnx::ModelFile file(path, import_options(options));
  const std::vector<InputDims> inputs = file.input_dims(import_options(options));
  check_ranges(path, options, inputs);
  options = with_named_ranges(std::move(options), inputs);
  const Shapes guessed = guessed_shapes(file, options, inputs);
  return with_extents(options, inputs, largest(options), true, guessed);
}

std::vector<CompileOptions> samples_of_ranges(const std::string& path, const CompileOptions& options) {
  const std::vector<InputDims> inputs =
      onnx::ModelFile(path, import_options(options)).input_dims(import_options(options));
  std::vector<CompileOptions> all;
  for (const auto& [name, range] : options.ranges) {
    for (const int64_t value : samples(range)) {
      Extents extents = largest(options);
      extents[name] = value;
      all.push_back(with_extents(options, inputs, extents, false));
      all.back().progress = nullptr;
    }
  }
  return all;
}

}  // namespace heddle::driver
