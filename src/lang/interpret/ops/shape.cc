#include <algorithm>

#include "base/check.h"
#include "lang/interpret/environment.h"
#include "lang/interpret/shapes.h"

namespace heddle::lang {
namespace {

Cells picked(const Cells& from, const std::vector<size_t>& map) {
  Cells result(map.size());
  for (size_t i = 0; i < map.size(); ++i) result[i] = from[map[i]];
  return result;
}

Cells iota(const Op& op, size_t count) {
  Cells result(count);
  for (size_t i = 0; i < count; ++i) result[i].i = op.attributes.integer("start") + static_cast<int64_t>(i);
  return result;
}

void split(Environment& env, const Op& op) {
  const Cells from = env.operand(op, 0);
  for (size_t part = 0; part < 2; ++part) {
    Cells result(from.size() / 2);
    for (size_t i = 0; i < result.size(); ++i) result[i] = from[2 * i + part];
    env.set(op.results[part], std::move(result));
  }
}

Cells join(const Cells& a, const Cells& b) {
  Cells result;
  for (size_t i = 0; i < a.size(); ++i) {
    result.push_back(a[i]);
    result.push_back(b[i]);
  }
  return result;
}

// Each index of the axis of the result is that of the operand which `source` says.
template <typename F>
Cells along_axis(const Environment& env, const Op& op, const F& source) {
  const int64_t axis = op.attributes.integer("axis");
  const Cells& from = env.operand(op, 0);
  const AxisExtents in(env.operand_type(op, 0).shape, axis), out(env.type(op.results[0]).shape, axis);
  Cells result(env.elements(op.results[0]));
  for (size_t o = 0; o < out.outer; ++o) {
    for (size_t i = 0; i < out.extent; ++i) {
      for (size_t k = 0; k < out.inner; ++k) result[out.at(o, i, k)] = from[in.at(o, source(out.at(o, i, k), i), k)];
    }
  }
  return result;
}

Cells gather(const Environment& env, const Op& op) {
  const Cells& index = env.operand(op, 1);
  const AxisExtents in(env.operand_type(op, 0).shape, op.attributes.integer("axis"));
  return along_axis(env, op, [&](size_t at, size_t) {
    const int64_t i = index[at].i;
    if (env.options.checked && (i < 0 || i >= static_cast<int64_t>(in.extent))) {
      fail(ErrorCode::kValueOutOfRange, env.memory.where(at),
           fmt::format("index {} is outside of an axis of {} elements", i, in.extent), "Clamp the index");
    }
    return static_cast<size_t>(std::clamp<int64_t>(i, 0, static_cast<int64_t>(in.extent) - 1));
  });
}

Cells cat(const Cells& a, const Cells& b) {
  Cells result = a;
  result.insert(result.end(), b.begin(), b.end());
  return result;
}

Cells shape_result(const Environment& env, const Op& op) {
  const size_t count = env.elements(op.results[0]);
  switch (op.code) {
    case OpCode::kIota:
      return iota(op, count);
    case OpCode::kSplat:
      return Cells(count, env.operand(op, 0)[0]);
    case OpCode::kExpandDims:
    case OpCode::kReshape:
      return env.operand(op, 0);
    case OpCode::kBroadcast:
      return picked(env.operand(op, 0), expand_map(env.operand_type(op, 0).shape, env.type(op.results[0]).shape));
    case OpCode::kPermute:
      return picked(env.operand(op, 0), permute_map(env.operand_type(op, 0).shape, op.attributes.list("order")));
    case OpCode::kJoin:
      return join(env.operand(op, 0), env.operand(op, 1));
    case OpCode::kCat:
      return cat(env.operand(op, 0), env.operand(op, 1));
    case OpCode::kGather:
      return gather(env, op);
    case OpCode::kFlip: {
      const AxisExtents in(env.operand_type(op, 0).shape, op.attributes.integer("axis"));
      return along_axis(env, op, [&](size_t, size_t i) { return in.extent - 1 - i; });
    }
    case OpCode::kSlice:
      return along_axis(env, op,
                        [&](size_t, size_t i) { return static_cast<size_t>(op.attributes.integer("start")) + i; });
    default:
      return {};
  }
}

}  // namespace

bool run_shape_op(Environment& env, const Op& op) {
  if (op.code == OpCode::kSplit) {
    split(env, op);
    return true;
  }
  if (op.results.size() != 1) return false;
  Cells result = shape_result(env, op);
  if (result.empty()) return false;
  env.set(op.results[0], std::move(result));
  return true;
}

}  // namespace heddle::lang
