#include "lang/cpu/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/divide.h"
#include "lang/analysis/waits.h"
#include "lang/cpu/types.h"

namespace heddle::lang::cpu {

std::string State::fresh(ValueId value) {
  std::string name;
  for (const char c : kernel.values[static_cast<size_t>(value)].name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    name += plain ? c : '_';
  }
  if (name.empty() || (name[0] >= '0' && name[0] <= '9') || name[0] == '_') name = "v" + name;
  name += "_";  // apart from what the tile library calls so
  const int count = names_[name]++;
  return count == 0 ? name : fmt::format("{}{}", name, count);
}

std::vector<ValueId> State::scalars_since(size_t changes) const {
  std::vector<ValueId> values;
  for (size_t i = changes; i < replaced_.size(); ++i) {
    if (at(replaced_[i].first).kind == Held::Kind::kScalar) values.push_back(replaced_[i].first);
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

void State::undo_to(size_t changes) {
  for (; replaced_.size() > changes; replaced_.pop_back()) {
    auto& [value, held] = replaced_.back();
    held_[static_cast<size_t>(value)] = std::move(held);
  }
}

std::string State::new_buffer(ValueId value) {
  const Type& type = kernel.type(value);
  return add_buffer(value, buffer_type(type), type.elements(), buffer_size(type));
}

std::string State::new_floats(ValueId value, int64_t elements) {
  return add_buffer(value, "float", elements, sizeof(float));
}

std::string State::add_buffer(ValueId value, std::string type, int64_t elements, int64_t size) {
  constexpr int64_t kLine = 64;
  Buffer buffer{fresh(value), std::move(type), elements, -1};
  const int64_t bytes = round_up(elements * size, kLine);
  if (bytes <= kMostStackBuffer && stack_ + bytes <= kMostStack) {
    stack_ += bytes;
  } else {
    buffer.scratch = scratch_;
    scratch_ += bytes;
  }
  buffers_.push_back(buffer);
  return buffer.name;
}

Writer State::buffer_declarations() const {
  Writer lines;
  for (const Buffer& b : buffers_) {
    if (b.scratch < 0) {
      lines.line("alignas(64) {0} {1}stack[{2}];", b.type, b.name, b.elements);
      lines.line("{0}* {1} = {1}stack;", b.type, b.name);
    } else {
      lines.line("{0}* {1} = reinterpret_cast<{0}*>(static_cast<char*>(scratch) + {2});", b.type, b.name, b.scratch);
    }
  }
  return lines;
}

bool is_lazy(const Kernel& kernel, const Op& op) {
  if (op.results.empty() || !kernel.type(op.results[0]).is_tile()) return false;
  if (info_of(op.code).has(kElementwise)) return true;
  if (is_volatile(op)) return false;
  switch (op.code) {
    case OpCode::kIota:
    case OpCode::kSplat:
    case OpCode::kExpandDims:
    case OpCode::kBroadcast:
    case OpCode::kReshape:
    case OpCode::kPermute:
    case OpCode::kSplit:
    case OpCode::kGather:
    case OpCode::kFlip:
    case OpCode::kSlice:
    case OpCode::kLoad:
    case OpCode::kLoadView:
    case OpCode::kGatherView:
      return true;
    default:
      return false;
  }
}

namespace {

bool reads(OpCode code) {
  return code == OpCode::kLoad || code == OpCode::kLoadView || code == OpCode::kGatherView;
}

int own_cost(const Op& op, const Kernel& kernel) {
  switch (op.code) {
    case OpCode::kConstant:
    case OpCode::kIota:
    case OpCode::kSplat:
    case OpCode::kExpandDims:
    case OpCode::kBroadcast:
    case OpCode::kReshape:
    case OpCode::kPermute:
    case OpCode::kSlice:
    case OpCode::kHint:
      return 0;
    default:
      break;
  }
  if (!info_of(op.code).has(kElementwise)) return 1;
  const Type& type = kernel.type(op.operands[0]);
  const ir::OpCost cost = ir::cost_of(op.code);
  const double cycles = is_float(type.element) ? cost.f32 : cost.integer;
  return cycles > 8 ? State::kHeavy : cycles > 1 ? State::kHeavy / 2 : 1;
}

}  // namespace

int State::cost(ValueId value) const {
  if (!is_pending(value)) return 0;
  const Op* op = uses.definer(value);
  if (op == nullptr) return 0;
  int total = own_cost(*op, kernel) + (reads(op->code) ? kHeavy : 0);
  for (const ValueId operand : op->operands) {
    if (total >= kHeavy) return total;
    total += cost(operand);
  }
  return total;
}

bool State::has_load(ValueId value) const {
  if (!is_pending(value)) return false;
  const Op* op = uses.definer(value);
  if (op == nullptr) return false;
  return reads(op->code) ||
         std::any_of(op->operands.begin(), op->operands.end(), [&](ValueId operand) { return has_load(operand); });
}

std::optional<int64_t> State::constant(ValueId value) const {
  const Op* op = uses.definer(value);
  if (op == nullptr) return std::nullopt;
  switch (op->code) {
    case OpCode::kConstant:
      if (is_float(type(value).element)) return std::nullopt;
      return op->attributes.integer("value");
    case OpCode::kSplat:
    case OpCode::kExpandDims:
    case OpCode::kBroadcast:
    case OpCode::kReshape:
    case OpCode::kHint:
      return constant(op->operands[0]);
    case OpCode::kCast:
      if (is_float(type(value).element) || is_mask(type(op->operands[0]))) return std::nullopt;
      if (bits_of(type(value).element) < bits_of(type(op->operands[0]).element)) return std::nullopt;
      return constant(op->operands[0]);
    default:
      return std::nullopt;
  }
}

bool State::is_zero(ValueId value) const {
  const Op* op = uses.definer(value);
  if (op == nullptr) return false;
  if (op->code == OpCode::kSplat || op->code == OpCode::kBroadcast) return is_zero(op->operands[0]);
  if (op->code != OpCode::kConstant) return false;
  const Attribute& constant = *op->attributes.find("value");
  return constant.integer == 0 && constant.number == 0 && !std::signbit(constant.number);
}

Coords operand_coords(const Kernel& kernel, const Op& op, const Coords& coords) {
  Coords result = coords;
  switch (op.code) {
    case OpCode::kExpandDims:
      result.erase(result.begin() + op.attributes.integer("axis"));
      return result;
    case OpCode::kBroadcast: {
      const std::vector<int64_t>& from = kernel.type(op.operands[0]).shape;
      for (size_t d = 0; d < from.size(); ++d) {
        if (from[d] == 1) result[d] = {"0"};
      }
      return result;
    }
    case OpCode::kPermute: {
      const std::vector<int64_t> order = op.attributes.list("order");
      for (size_t d = 0; d < order.size(); ++d) result[static_cast<size_t>(order[d])] = coords[d];
      return result;
    }
    case OpCode::kSlice: {
      Index& index = result[static_cast<size_t>(op.attributes.integer("axis"))];
      if (op.attributes.integer("start") != 0) {
        index.text = fmt::format("({} + {})", index.text, op.attributes.integer("start"));
      }
      return result;
    }
    case OpCode::kSplat:
      return {};
    default:
      return result;
  }
}

std::string place_comment(const Kernel& kernel, const Op& op) {
  const std::string place = kernel.short_place(op.frame);
  return place.empty() ? "" : codegen::comment_of(place);
}

}  // namespace heddle::lang::cpu
