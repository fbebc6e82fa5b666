#include "ir/tile_call.h"

#include <atomic>
#include <charconv>

namespace heddle::ir {
namespace {

std::atomic<TileEvaluator> evaluator_of_process = nullptr;

// "f32[4,8]"
std::optional<TensorType> parse_type(std::string_view text) {
  const size_t open = text.find('[');
  if (open == std::string_view::npos || text.back() != ']') return std::nullopt;
  const std::optional<DType> dtype = parse_dtype(text.substr(0, open));
  if (!dtype) return std::nullopt;
  TensorType type{*dtype, {}};
  const char* at = text.data() + open + 1;
  const char* const end = text.data() + text.size() - 1;
  while (at < end) {
    int64_t extent = 0;
    const auto [stop, error] = std::from_chars(at, end, extent);
    if (error != std::errc() || (stop < end && *stop != ',')) return std::nullopt;
    type.shape.push_back(extent);
    at = stop + 1;
  }
  return type;
}

}  // namespace

bool calls_tile_program(const Node& node) {
  return node.op == Op::kCall && node.attrs.text("target") == "tile";
}

std::string print_types(const std::vector<TensorType>& types) {
  std::string text;
  for (const TensorType& type : types) text += (text.empty() ? "" : " ") + to_string(type);
  return text;
}

std::optional<std::vector<TensorType>> parse_types(std::string_view text) {
  std::vector<TensorType> types;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::optional<TensorType> type = parse_type(text.substr(0, end));
    if (!type) return std::nullopt;
    types.push_back(*type);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return types;
}

void set_tile_evaluator(TileEvaluator evaluator) {
  evaluator_of_process = evaluator;
}

TileEvaluator tile_evaluator() {
  return evaluator_of_process;
}

}  // namespace heddle::ir
