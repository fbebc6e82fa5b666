#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/schema.h"

namespace heddle::ir {

// `call {target = "tile", program, results}`: launches of kernels of the tile language on the node's operands.
bool calls_tile_program(const Node& node);

// "f32[4,8] i64[]" of the attribute `results`, and back; nothing for another text.
std::string print_types(const std::vector<TensorType>& types);
std::optional<std::vector<TensorType>> parse_types(std::string_view text);

// What evaluates such nodes. The tile language lies above this folder and nodes are evaluated at many depths of passes,
// so the function is no argument: the driver sets it before it imports a model or runs a plan. Null: there is none.
using TileEvaluator = std::vector<Array> (*)(const EvalContext&);
void set_tile_evaluator(TileEvaluator evaluator);
TileEvaluator tile_evaluator();

}  // namespace heddle::ir
