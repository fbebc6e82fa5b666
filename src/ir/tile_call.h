#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/schema.h"

namespace heddle::ir {

// True for `call {target = "tile", program, results}`. Such a node launches kernels of the tile language on its
// operands.
bool calls_tile_program(const Node& node);

// Print and parse the attribute `results`: "f32[4,8] i64[]". The parser returns nullopt for any other text.
std::string print_types(const std::vector<TensorType>& types);
std::optional<std::vector<TensorType>> parse_types(std::string_view text);

// Evaluates nodes that call a tile program. The evaluator is a global function pointer for two reasons: this folder may
// not include the tile language, and nodes are evaluated by compiler passes at many depths of the call stack. The
// driver sets the pointer before it imports a model or runs a plan. Null: not set.
using TileEvaluator = std::vector<Array> (*)(const EvalContext&);
void set_tile_evaluator(TileEvaluator evaluator);
TileEvaluator tile_evaluator();

}  // namespace heddle::ir
