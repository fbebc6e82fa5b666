#include "codegen/region/cuda/reduction_text.h"

#include "codegen/scalar/text_value.h"

namespace heddle::codegen {

std::string value_type(const CudaReduction& r) {
  return std::string(computed_type(r.dtype));
}

std::string combiner(const CudaReduction& r) {
  if (r.squares) return "tile::moments_of";
  return is_arg(r.combine) ? "tile::best_of" : fmt::format("tile::{}_of", to_string(r.combine));
}

std::string accumulator_type(const schedule::ExprPool& pool, const CudaReduction& r, int width) {
  if (is_arg(r.combine)) {
    return fmt::format("tile::arg_accumulator<{}, {}, {}, {}, {}>", r.combine == Combine::kArgMax, r.last,
                       value_type(r), computed_type(pool[r.position].dtype), width);
  }
  if (r.squares) return fmt::format("tile::moments_accumulator<{}, {}>", value_type(r), width);
  if (r.compensated) return fmt::format("tile::compensated_sum<{}, {}>", value_type(r), width);
  return fmt::format("tile::accumulator<{}, {}, {}>", combiner(r), value_type(r), width);
}

std::string result_name(const CudaReduction& r) {
  return fmt::format("{}{}", to_string(r.combine), r.local);
}

std::string result_type(const CudaReduction& r, int width) {
  if (is_arg(r.combine)) return fmt::format("tile::vec<int64_t, {}>", width);
  if (r.dtype == DType::kBool) return fmt::format("tile::mask<1, {}>", width);
  return fmt::format("tile::vec<{}, {}>", value_type(r), width);
}

void declare_together(Writer& out, const std::vector<std::pair<std::string, std::string>>& variables) {
  std::string line;
  for (size_t i = 0; i < variables.size(); ++i) {
    const auto& [type, name] = variables[i];
    line += i > 0 && variables[i - 1].first == type ? ", " + name : type + " " + name;
    if (i + 1 < variables.size() && variables[i + 1].first == type) continue;
    out.line("{};", line);
    line.clear();
  }
}

}  // namespace heddle::codegen
