#pragma once

#include "tests/fuzz/generator_state.h"

namespace heddle::fuzz {

// Steps that add parts of quantised networks, in the forms in which models have them: conversions to bytes and back
// (QuantizeLinear, DequantizeLinear), operators on bytes (QLinear...), products whose operands are quantised at run
// time, and weights of few bits. Scales and zero points belong to whole tensors or vary along one dimension.
void add_quantisation(State& s);
void add_dequantisation(State& s);
void add_dequantised_dot(State& s);
void add_dequantised_conv(State& s);
void add_integer_dot(State& s);
void add_integer_conv(State& s);
void add_dynamic_dot(State& s);
void add_dot_of_few_bits(State& s);
void add_residual(State& s);
void add_pool_of_bytes(State& s);
void add_loop_of_bytes(State& s);

}  // namespace heddle::fuzz
