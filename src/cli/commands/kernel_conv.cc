// `heddle kernel conv` and `heddle kernel b2b`: the candidates of a convolution, or of two contractions back to back,
// their times and whether the fastest is right.
#include <algorithm>
#include <charconv>
#include <limits>

#include "cli/commands/kernel_group.h"
#include "driver/tune/conv_bench.h"

namespace heddle::cli {
namespace {

using driver::ConvProblem;

void refuse_size(const std::string& where, const std::string& why, const std::string& remedy = "") {
  fail(ErrorCode::kInvalidArgument, where, why, remedy);
}

std::string option_text(const char* name, int64_t value) {
  return fmt::format("{} {}", name, value);
}

// Products of two sizes have to fit 64 bits.
constexpr int64_t kMostSize = std::numeric_limits<int32_t>::max();

void require_at_least(const char* option, int64_t value, int64_t least) {
  if (value > kMostSize) refuse_size(option_text(option, value), fmt::format("it has to be at most {}", kMostSize));
  if (value < least) refuse_size(option_text(option, value), fmt::format("it has to be at least {}", least));
}

ConvProblem::Extents numbers_of(const char* option, const std::string& text, int64_t least) {
  ConvProblem::Extents numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(at, end, value);
    if (error != std::errc() || (stop != end && *stop != ',')) {
      refuse_size(fmt::format("{} {}", option, text), "it is no list of numbers", "Separate numbers by commas: 3,5");
    }
    require_at_least(option, value, least);
    numbers.push_back(value);
    if (stop == end) return numbers;
    at = stop + 1;
  }
}

// One number for each of so many dimensions.
ConvProblem::Extents extents_of(const char* option, const std::string& text, int64_t least, size_t dims) {
  ConvProblem::Extents numbers = numbers_of(option, text, least);
  if (numbers.size() == 1) numbers.resize(dims, numbers[0]);
  if (numbers.size() != dims) {
    refuse_size(fmt::format("{} {}", option, text), fmt::format("it has {} numbers, the image {} {}", numbers.size(),
                                                                dims, dims == 1 ? "dimension" : "dimensions"));
  }
  return numbers;
}

ConvProblem::Extents image_of(const ConvArguments& a) {
  if (a.length > 0) {
    require_at_least("--length", a.length, 1);
    return {a.length};
  }
  const int64_t width = a.width == 0 ? a.height : a.width;
  require_at_least("--height", a.height, 1);
  require_at_least("--width", width, 1);
  if (a.depth == 0) return {a.height, width};
  require_at_least("--depth", a.depth, 1);
  return {a.depth, a.height, width};
}

// Zeros around the image; of a transposed convolution, around the image with zeros between its elements. There padding
// is what the result loses, as in ONNX and PyTorch.
void set_padding(ConvProblem& p, const ConvArguments& a) {
  const size_t dims = p.image.size();
  p.before.assign(dims, 0), p.after = p.before;
  if (a.padding.empty()) {
    for (size_t d = 0; d < dims; ++d) {
      const int64_t all = p.span(d) - 1 + (p.transposed ? p.stride[d] - 1 : 0);
      p.before[d] = p.transposed ? all / 2 : p.span(d) / 2, p.after[d] = all - p.before[d];
    }
    return;
  }
  ConvProblem::Extents before = numbers_of("--padding", a.padding, 0), after;
  if (before.size() == 2 * dims) {
    after.assign(before.begin() + static_cast<std::ptrdiff_t>(dims), before.end());
    before.resize(dims);
  } else {
    before = extents_of("--padding", a.padding, 0, dims), after = before;
  }
  const ConvProblem::Extents more = extents_of("--output-padding", a.output_padding, 0, dims);
  for (size_t d = 0; d < dims; ++d) {
    if (more[d] > 0 && more[d] >= std::max(p.stride[d], p.dilation[d])) {
      refuse_size(
          "--output-padding " + a.output_padding,
          fmt::format("it has to be less than the stride or the dilation, {} and {}", p.stride[d], p.dilation[d]));
    }
    const int64_t reach = p.span(d) - 1;
    p.before[d] = p.transposed ? reach - before[d] : before[d];
    p.after[d] = p.transposed ? reach - after[d] + more[d] : after[d];
  }
}

void require_result(const ConvProblem& p, const ConvArguments& a) {
  for (size_t d = 0; d < p.image.size(); ++d) {
    if (p.padded(d) >= p.span(d)) continue;
    if (p.transposed) {
      refuse_size("--padding " + a.padding, fmt::format("it leaves nothing of the result's {} elements in dimension {}",
                                                        (p.image[d] - 1) * p.stride[d] + p.span(d), d));
    }
    refuse_size("--window " + a.window,
                fmt::format("it spans {} elements in dimension {}, the padded image has {}", p.span(d), d, p.padded(d)),
                "Take a smaller window or --dilation, a larger image or --padding");
  }
}

ConvProblem problem_of(const ConvArguments& a) {
  ConvProblem p;
  p.type = parse_dtype(a.type).value();
  require_at_least("--rows", a.rows, 0);
  require_at_least("--out", a.out, 0);
  require_at_least("--batch", a.batch, 1);
  require_at_least("--channels", a.channels, 1);
  require_at_least(a.out > 0 ? "--inner" : "--filters", a.filters, 1);
  require_at_least("--groups", a.groups, 1);
  if (a.channels % a.groups != 0 || a.filters % a.groups != 0) {
    refuse_size(option_text("--groups", a.groups),
                fmt::format("it does not divide {} channels and {} filters", a.channels, a.filters));
  }
  p.rows = a.rows, p.batch = a.batch, p.channels = a.channels, p.filters = a.filters, p.groups = a.groups;
  p.out = a.out, p.transposed = a.transposed;
  p.image = image_of(a);
  p.window = extents_of("--window", a.window, 1, p.image.size());
  p.stride = extents_of("--stride", a.stride, 1, p.image.size());
  p.dilation = extents_of("--dilation", a.dilation, 1, p.image.size());
  set_padding(p, a);
  require_result(p, a);
  return p;
}

}  // namespace

int kernel_conv_command(const Arguments& arguments) {
  const ConvArguments& a = arguments.conv;
  const ConvProblem p = problem_of(a);
  ConvProblem::Extents result;
  for (size_t d = 0; d < p.image.size(); ++d) result.push_back(p.result(d));
  const nlohmann::json description = {{"type", a.type},         {"rows", p.rows},
                                      {"batch", p.batch},       {"image", p.image},
                                      {"channels", p.channels}, {"filters", p.filters},
                                      {"window", p.window},     {"stride", p.stride},
                                      {"dilation", p.dilation}, {"transposed", p.transposed},
                                      {"groups", p.groups},     {"out", p.out},
                                      {"result", result}};
  const Target target = group_target(arguments);
  return run_group(conv_problem(p, target), target, description, arguments);
}

}  // namespace heddle::cli
