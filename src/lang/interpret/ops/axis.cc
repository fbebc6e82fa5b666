#include <algorithm>
#include <cmath>

#include "lang/interpret/environment.h"
#include "lang/interpret/shapes.h"

namespace heddle::lang {
namespace {

// Neighbours are combined until one is left, so the order of the elements is kept and any associative region is fine.
void reduce(Environment& env, const Op& op) {
  const AxisExtents extents(env.operand_type(op, 0).shape, op.attributes.integer("axis"));
  std::vector<Cells> values;
  for (const ValueId operand : op.operands) values.push_back(env.get(operand));
  size_t length = extents.extent;
  const auto row = [&](const Cells& from, size_t count, size_t first, size_t step) {
    Cells result;
    for (size_t o = 0; o < extents.outer; ++o) {
      for (size_t i = first; i < count; i += step) {
        for (size_t k = 0; k < extents.inner; ++k) result.push_back(from[(o * length + i) * extents.inner + k]);
      }
    }
    return result;
  };
  while (length > 1) {
    const size_t even = length / 2 * 2;
    std::vector<Cells> arguments;
    for (const Cells& value : values) arguments.push_back(row(value, even, 0, 2));
    for (const Cells& value : values) arguments.push_back(row(value, even, 1, 2));
    std::vector<Cells> combined = env.evaluate(op.regions[0], arguments, arguments[0].size());
    const size_t half = length / 2, next = length - half;
    for (size_t v = 0; v < values.size(); ++v) {
      Cells joined(extents.outer * next * extents.inner);
      for (size_t o = 0; o < extents.outer; ++o) {
        for (size_t k = 0; k < extents.inner; ++k) {
          for (size_t i = 0; i < half; ++i) {
            joined[(o * next + i) * extents.inner + k] = combined[v][(o * half + i) * extents.inner + k];
          }
          if (next > half) {
            joined[(o * next + half) * extents.inner + k] = values[v][(o * length + even) * extents.inner + k];
          }
        }
      }
      values[v] = std::move(joined);
    }
    length = next;
  }
  for (size_t v = 0; v < values.size(); ++v) env.set(op.results[v], std::move(values[v]));
}

void scan(Environment& env, const Op& op) {
  const AxisExtents extents(env.operand_type(op, 0).shape, op.attributes.integer("axis"));
  const bool reverse = op.attributes.integer("reverse") != 0;
  std::vector<Cells> values;
  for (const ValueId operand : op.operands) values.push_back(env.get(operand));
  const auto row = [&](const Cells& from, size_t i) {
    Cells result;
    for (size_t o = 0; o < extents.outer; ++o) {
      for (size_t k = 0; k < extents.inner; ++k) result.push_back(from[extents.at(o, i, k)]);
    }
    return result;
  };
  const size_t lanes = extents.outer * extents.inner;
  for (size_t step = 1; step < extents.extent; ++step) {
    const size_t i = reverse ? extents.extent - 1 - step : step, before = reverse ? i + 1 : i - 1;
    std::vector<Cells> arguments;
    for (const Cells& value : values) arguments.push_back(row(value, before));
    for (const Cells& value : values) arguments.push_back(row(value, i));
    const std::vector<Cells> combined = env.evaluate(op.regions[0], arguments, lanes);
    for (size_t v = 0; v < values.size(); ++v) {
      size_t lane = 0;
      for (size_t o = 0; o < extents.outer; ++o) {
        for (size_t k = 0; k < extents.inner; ++k) values[v][extents.at(o, i, k)] = combined[v][lane++];
      }
    }
  }
  for (size_t v = 0; v < values.size(); ++v) env.set(op.results[v], std::move(values[v]));
}

// NaN is the largest.
void sort(Environment& env, const Op& op) {
  const Type& type = env.operand_type(op, 0);
  const AxisExtents extents(type.shape, op.attributes.integer("axis"));
  const bool descending = op.attributes.integer("descending") != 0;
  const auto less = [&](Cell a, Cell b) {
    if (is_float(type.element)) return std::isnan(b.f) ? !std::isnan(a.f) : a.f < b.f;
    return type.element == Element::kU64 ? static_cast<uint64_t>(a.i) < static_cast<uint64_t>(b.i) : a.i < b.i;
  };
  Cells result = env.operand(op, 0);
  Cells line(extents.extent);
  for (size_t o = 0; o < extents.outer; ++o) {
    for (size_t k = 0; k < extents.inner; ++k) {
      for (size_t i = 0; i < extents.extent; ++i) line[i] = result[extents.at(o, i, k)];
      std::sort(line.begin(), line.end(), less);
      if (descending) std::reverse(line.begin(), line.end());
      for (size_t i = 0; i < extents.extent; ++i) result[extents.at(o, i, k)] = line[i];
    }
  }
  env.set(op.results[0], std::move(result));
}

// Values outside of the bins are counted nowhere.
void histogram(Environment& env, const Op& op) {
  const Cells& values = env.operand(op, 0);
  Cells bins(env.elements(op.results[0]), Cell{.i = 0});
  for (size_t i = 0; i < values.size(); ++i) {
    if (op.operands.size() > 1 && env.operand(op, 1)[i].i == 0) continue;
    const auto bin = static_cast<uint64_t>(values[i].i);
    if (bin < bins.size()) ++bins[bin].i;
  }
  env.set(op.results[0], std::move(bins));
}

void map(Environment& env, const Op& op) {
  const auto pack = static_cast<size_t>(op.attributes.integer("pack", 1));
  const size_t lanes = env.elements(op.operands[0]) / pack;
  std::vector<Cells> arguments;
  for (const ValueId operand : op.operands) {
    for (size_t p = 0; p < pack; ++p) {
      Cells& argument = arguments.emplace_back(lanes);
      for (size_t i = 0; i < lanes; ++i) argument[i] = env.get(operand)[i * pack + p];
    }
  }
  const std::vector<Cells> yields = env.evaluate(op.regions[0], arguments, lanes);
  for (size_t r = 0; r < op.results.size(); ++r) {
    Cells result(lanes * pack);
    for (size_t i = 0; i < result.size(); ++i) result[i] = yields[r * pack + i % pack][i / pack];
    env.set(op.results[r], std::move(result));
  }
}

}  // namespace

bool run_axis_op(Environment& env, const Op& op) {
  switch (op.code) {
    case OpCode::kReduce:
      reduce(env, op);
      return true;
    case OpCode::kScan:
      scan(env, op);
      return true;
    case OpCode::kSort:
      sort(env, op);
      return true;
    case OpCode::kHistogram:
      histogram(env, op);
      return true;
    case OpCode::kMap:
      map(env, op);
      return true;
    default:
      return false;
  }
}

}  // namespace heddle::lang
