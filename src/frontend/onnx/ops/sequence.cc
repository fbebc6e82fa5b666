#include <algorithm>
#include <array>

#include "frontend/onnx/node_context.h"
#include "frontend/onnx/op_registry.h"

// Sequences and optionals live only while a model is imported: their operators rearrange lists of values.
namespace heddle::onnx {
namespace {

using ir::Ints;
using ir::ValueId;

const std::vector<Value>& sequence(const NodeContext& ctx, size_t i) {
  const Value& value = ctx.value(i);
  if (value.kind() != Value::Kind::kSequence) ctx.invalid(fmt::format("input {} is not a sequence", i));
  return value.items();
}

// A position in a sequence; [-n, n), or up to n where one is inserted.
size_t position(const NodeContext& ctx, size_t input, size_t count, bool insert) {
  const int64_t at = ctx.constant_int(input);
  const auto n = static_cast<int64_t>(count);
  if (at < -n || at > n || (at == n && !insert)) {
    ctx.fail(ErrorCode::kValueOutOfRange, fmt::format("position {} of a sequence of {}", at, n));
  }
  return static_cast<size_t>(at < 0 ? at + n : at);
}

void lower_empty(NodeContext& ctx) {
  ctx.set(0, Value::sequence({}));
}

void lower_construct(NodeContext& ctx) {
  std::vector<Value> items;
  for (size_t i = 0; i < ctx.input_count(); ++i) items.push_back(ctx.value(i));
  ctx.set(0, Value::sequence(std::move(items)));
}

void lower_at(NodeContext& ctx) {
  const auto& items = sequence(ctx, 0);
  ctx.set(0, items[position(ctx, 1, items.size(), false)]);
}

void lower_insert(NodeContext& ctx) {
  const auto& before = sequence(ctx, 0);
  const size_t at = ctx.has(2) ? position(ctx, 2, before.size(), true) : before.size();
  std::vector<Value> items;
  for (size_t i = 0; i <= before.size(); ++i) {
    if (i == at) items.push_back(ctx.value(1));
    if (i < before.size()) items.push_back(before[i]);
  }
  ctx.set(0, Value::sequence(std::move(items)));
}

void lower_erase(NodeContext& ctx) {
  std::vector<Value> items = sequence(ctx, 0);
  if (items.empty()) ctx.fail(ErrorCode::kValueOutOfRange, "the sequence is empty");
  const size_t at = ctx.has(1) ? position(ctx, 1, items.size(), false) : items.size() - 1;
  items.erase(items.begin() + static_cast<int64_t>(at));
  ctx.set(0, Value::sequence(std::move(items)));
}

void lower_length(NodeContext& ctx) {
  const auto count = static_cast<int64_t>(sequence(ctx, 0).size());
  ctx.set(0, ctx.b.constant(Tensor::of<int64_t>(DType::kI64, {}, {count})));
}

// Extents of the parts of a dimension of n elements.
Ints split_sizes(const NodeContext& ctx, int64_t n) {
  if (!ctx.has(1)) return Ints(static_cast<size_t>(n), 1);
  const Ints split = ctx.constant_ints(1);
  if (ctx.rank(1) == 1) {
    int64_t sum = 0;
    for (int64_t size : split) {
      if (size < 0 || size > n - sum) ctx.invalid(fmt::format("the parts do not make up the {} elements", n));
      sum += size;
    }
    if (sum != n) ctx.invalid(fmt::format("the parts add up to {} of {} elements", sum, n));
    return split;
  }
  if (split.size() != 1 || split[0] < 1) ctx.invalid("split must be positive");
  Ints sizes;
  for (int64_t at = 0; at < n; at += split[0]) sizes.push_back(std::min(split[0], n - at));
  return sizes;
}

void lower_split(NodeContext& ctx) {
  const ValueId x = ctx.in(0);
  const int64_t axis = ctx.axis(ctx.attr_int("axis", 0), ctx.rank(0));
  const bool keep = ctx.has(1) || ctx.attr_int("keepdims", 1) != 0;
  std::vector<Value> items;
  int64_t at = 0;
  for (int64_t size : split_sizes(ctx, ctx.shape(0)[static_cast<size_t>(axis)])) {
    ValueId part = ctx.b.slice_dim(x, axis, at, at + size);
    if (!keep) {
      Shape shape = ctx.b.shape(part);
      shape.erase(shape.begin() + axis);
      part = ctx.b.reshape(part, std::move(shape));
    }
    items.emplace_back(part);
    at += size;
  }
  ctx.set(0, Value::sequence(std::move(items)));
}

void lower_concat(NodeContext& ctx) {
  const bool stack = ctx.attr_int("new_axis", 0) != 0;
  std::vector<ValueId> parts;
  int64_t axis = ctx.attr_int("axis");
  for (const Value& item : sequence(ctx, 0)) {
    if (!item.is_tensor()) ctx.invalid("the sequence holds values that are not tensors");
    const ValueId part = item.tensor();
    const int64_t rank = ctx.b.rank(part);
    const int64_t at = ctx.axis(axis, stack ? rank + 1 : rank);
    Shape shape = ctx.b.shape(part);
    if (stack) shape.insert(shape.begin() + at, 1);
    parts.push_back(ctx.b.reshape(part, std::move(shape)));
  }
  if (parts.empty()) ctx.invalid("an empty sequence cannot be concatenated");
  const int64_t rank = ctx.b.rank(parts[0]);
  ctx.set(0, ctx.b.concat(parts, ctx.axis(axis, rank)));
}

void lower_map(NodeContext& ctx) {
  const GraphProto& body = ctx.attr_graph("body");
  const size_t count = sequence(ctx, 0).size();
  std::vector<std::vector<Value>> results(ctx.output_count());
  for (size_t i = 0; i < count; ++i) {
    std::vector<Value> inputs;
    for (size_t k = 0; k < ctx.input_count(); ++k) {
      const Value& value = ctx.value(k);
      if (value.kind() != Value::Kind::kSequence) {
        inputs.push_back(value);
      } else if (value.items().size() == count) {
        inputs.push_back(value.items()[i]);
      } else {
        ctx.invalid(fmt::format("sequences of {} and {} items", count, value.items().size()));
      }
    }
    const std::vector<Value> values = ctx.inline_graph(body, inputs);
    if (values.size() < results.size()) ctx.invalid("the node has more outputs than its body");
    for (size_t k = 0; k < results.size(); ++k) results[k].push_back(values[k]);
  }
  for (size_t k = 0; k < results.size(); ++k) {
    if (ctx.wants(k)) ctx.set(k, Value::sequence(std::move(results[k])));
  }
}

void lower_optional(NodeContext& ctx) {
  ctx.set(0, ctx.has(0) ? ctx.value(0) : Value::none());
}

void lower_get_element(NodeContext& ctx) {
  if (!ctx.has(0) || ctx.value(0).kind() == Value::Kind::kNone) {
    ctx.fail(ErrorCode::kValueOutOfRange, "the optional is empty");
  }
  ctx.set(0, ctx.value(0));
}

void lower_has_element(NodeContext& ctx) {
  const bool full = ctx.has(0) && ctx.value(0).kind() != Value::Kind::kNone;
  ctx.set(0, ctx.b.scalar(DType::kBool, full ? 1 : 0));
}

}  // namespace

std::span<const OpHandler> sequence_ops() {
  static constexpr std::array kHandlers = {
      OpHandler{"", "SequenceEmpty", 11, kNewestOpset, lower_empty},
      OpHandler{"", "SequenceConstruct", 11, kNewestOpset, lower_construct},
      OpHandler{"", "SequenceAt", 11, kNewestOpset, lower_at},
      OpHandler{"", "SequenceInsert", 11, kNewestOpset, lower_insert},
      OpHandler{"", "SequenceErase", 11, kNewestOpset, lower_erase},
      OpHandler{"", "SequenceLength", 11, kNewestOpset, lower_length},
      OpHandler{"", "SplitToSequence", 11, kNewestOpset, lower_split},
      OpHandler{"", "ConcatFromSequence", 11, kNewestOpset, lower_concat},
      OpHandler{"", "SequenceMap", 17, kNewestOpset, lower_map},
      OpHandler{"", "Optional", 15, kNewestOpset, lower_optional},
      OpHandler{"", "OptionalGetElement", 15, kNewestOpset, lower_get_element},
      OpHandler{"", "OptionalHasElement", 15, kNewestOpset, lower_has_element},
  };
  return kHandlers;
}

}  // namespace heddle::onnx
