#include "passes/quantized/byte_fields.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/clones.h"
#include "ir/group.h"
#include "ir/reference/scalar.h"
#include "passes/simplify/constant_kernels.h"

namespace heddle::passes {
namespace {

using Field = ByteFields::Field;

// The common value of all elements of a constant, perhaps broadcast.
std::optional<double> uniform(const ir::Graph& graph, ValueId v) {
  constexpr int kMost = 4;
  for (int i = 0; i < kMost && (graph.producer(v).op == Op::kBroadcast || graph.producer(v).op == Op::kReshape); ++i) {
    v = graph.producer(v).inputs[0];
  }
  const Tensor* constant = graph.constant_of(v);
  return constant == nullptr || constant->size() != 1 ? std::nullopt : std::optional(ir::real_at(*constant, 0));
}

// The field that a function of bytes takes, by its values for all bytes.
std::optional<Field> field_of(std::span<const uint8_t> values) {
  const unsigned mask = values[255];
  for (unsigned shift = 0; shift < 8; ++shift) {
    bool is_same = true;
    for (unsigned byte = 0; byte < 256; ++byte) is_same = is_same && values[byte] == (byte >> shift & mask);
    if (is_same) return Field{shift, mask};
  }
  return std::nullopt;
}

// `v` as fields of the elements of a tensor of bytes, in the same order. A chain of elementwise functions is evaluated
// for each of the 256 bytes.
std::optional<std::pair<ValueId, Field>> field_of_bytes(const ir::Graph& graph, ValueId v) {
  constexpr size_t kMost = 8;
  std::vector<const Node*> chain;
  for (;;) {
    const Node& node = graph.producer(v);
    const bool is_function = ir::is_elementwise(node.op) && node.inputs.size() == 2 && uniform(graph, node.inputs[1]);
    if (graph.dtype(v) != DType::kU8 || chain.size() > kMost || (!is_function && node.op != Op::kReshape)) break;
    chain.push_back(&node);
    v = node.inputs[0];
  }
  if (graph.dtype(v) != DType::kU8) return std::nullopt;
  Tensor values = Tensor::unfilled(DType::kU8, {256});
  std::iota(values.mutable_values<uint8_t>().begin(), values.mutable_values<uint8_t>().end(), uint8_t{0});
  for (size_t i = chain.size(); i-- > 0;) {
    if (chain[i]->op == Op::kReshape) continue;
    const std::array operands = {values, ir::splat(DType::kU8, {256}, *uniform(graph, chain[i]->inputs[1]))};
    std::optional<Tensor> next = evaluate_dense(*chain[i], operands);
    if (!next) return std::nullopt;
    values = std::move(*next);
  }
  const std::optional<Field> field = field_of(values.values<uint8_t>());
  return field ? std::optional(std::pair(v, *field)) : std::nullopt;
}

HEDDLE_CLONES void take_two(const uint8_t* from, const Field* f, int64_t count, uint16_t* to) {
  for (int64_t i = 0; i < count; ++i) {
    const unsigned byte = from[i];
    to[i] = static_cast<uint16_t>((byte >> f[0].shift & f[0].mask) | (byte >> f[1].shift & f[1].mask) << 8);
  }
}

HEDDLE_CLONES void take_four(const uint8_t* from, const Field* f, int64_t count, uint32_t* to) {
  for (int64_t i = 0; i < count; ++i) {
    const unsigned byte = from[i];
    to[i] = (byte >> f[0].shift & f[0].mask) | (byte >> f[1].shift & f[1].mask) << 8 |
            (byte >> f[2].shift & f[2].mask) << 16 | (byte >> f[3].shift & f[3].mask) << 24;
  }
}

}  // namespace

std::optional<ByteFields> fields_of_bytes(const ir::Graph& graph, ValueId v) {
  constexpr int kMostReshapes = 4;
  for (int i = 0; i < kMostReshapes && graph.producer(v).op == Op::kReshape; ++i) v = graph.producer(v).inputs[0];
  const Node& node = graph.producer(v);
  if (node.op != Op::kConcat || (node.inputs.size() != 2 && node.inputs.size() != 4)) return std::nullopt;
  if (node.attrs.integer("dim") != static_cast<int64_t>(graph.shape(v).size()) - 1) return std::nullopt;
  ByteFields found{};
  for (const ValueId input : node.inputs) {
    if (graph.shape(input).back() != 1) return std::nullopt;
    const auto field = field_of_bytes(graph, input);
    if (!field || (!found.fields.empty() && field->first != found.source)) return std::nullopt;
    found.source = field->first;
    found.fields.push_back(field->second);
  }
  return found;
}

ir::ByteRows rows_of(const ByteFields& fields, const Tensor& bytes, int64_t length) {
  const int64_t pitch = length / static_cast<int64_t>(fields.fields.size());
  return {pitch == 0 ? 0 : bytes.size() / pitch, length, false,
          [fields, bytes, pitch](int64_t row, uint8_t* buffer) -> const uint8_t* {
            const auto* from = static_cast<const uint8_t*>(bytes.data()) + row * pitch;
            const Field* list = fields.fields.data();
            if (fields.fields.size() == 2) {
              take_two(from, list, pitch, reinterpret_cast<uint16_t*>(buffer));
            } else {
              take_four(from, list, pitch, reinterpret_cast<uint32_t*>(buffer));
            }
            return buffer;
          }};
}

}  // namespace heddle::passes
