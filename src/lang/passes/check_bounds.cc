#include "lang/passes/check_bounds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>
#include <vector>

#include "lang/analysis/accesses.h"

namespace heddle::lang {
namespace {

Attributes with(std::string name, Attribute value) {
  Attributes attributes;
  attributes.set(std::move(name), std::move(value));
  return attributes;
}

// Where the mask of an access stands among its operands; 0: it has none.
size_t mask_position(OpCode code) {
  switch (code) {
    case OpCode::kLoad:
      return 1;
    case OpCode::kStore:
    case OpCode::kAtomicRmw:
      return 2;
    default:
      return 0;
  }
}

class Checker {
 public:
  explicit Checker(Kernel& kernel) : kernel_(kernel), origins_(origins_of(kernel)) {
    std::vector<bool> is_pointer;
    for (const Kernel::Parameter& parameter : kernel.parameters) {
      const Type& type = kernel.type(parameter.value);
      bounds_.emplace_back(parameter.value, -1);
      is_pointer.push_back(type.pointer);
    }
    for (size_t i = 0; i < bounds_.size(); ++i) {
      if (!is_pointer[i]) continue;
      auto& [parameter, end] = bounds_[i];
      end = kernel_.add_value(Type::scalar(Element::kI64),
                              fmt::format("end_of_{}", kernel_.value_name(parameter).substr(1)));
      kernel_.parameters.push_back({end, {}});
    }
  }

  void visit(Region& region) {
    std::vector<Op> ops;
    for (Op& op : region.ops) {
      for (Region& inner : op.regions) visit(inner);
      out_ = &ops;
      const bool is_access = mask_position(op.code) > 0 || op.code == OpCode::kAtomicCas;
      if (is_access) check(op);
      ops.push_back(std::move(op));
    }
    region.ops = std::move(ops);
  }

 private:
  ValueId emit(OpCode code, std::vector<ValueId> operands, Type type, Attributes attributes = {}) {
    const ValueId result = kernel_.add_value(std::move(type));
    out_->push_back({code, std::move(operands), {result}, std::move(attributes), {}, frame_, 0, 0});
    return result;
  }

  ValueId everywhere(ValueId scalar, const Type& shape) {
    if (!shape.is_tile()) return scalar;
    return emit(OpCode::kSplat, {scalar}, Type::tile(shape.shape, kernel_.type(scalar).element));
  }

  void check(Op& op) {
    frame_ = op.frame;
    const Type pointers = kernel_.type(op.operands[0]);
    const auto of = [&](Element element) { return Type{pointers.kind, false, element, pointers.shape}; };
    const std::vector<bool>& origins = origins_[static_cast<size_t>(op.operands[0])];
    std::vector<std::string> names;
    ValueId inside = -1;
    for (size_t i = 0; i < origins.size(); ++i) {
      if (!origins[i]) continue;
      const auto [parameter, end] = bounds_[i];
      names.push_back(kernel_.value_name(parameter).substr(1));
      const Type scalar = Type::scalar(Element::kI64);
      const ValueId address = emit(OpCode::kBitcast, {op.operands[0]}, of(Element::kI64));
      const ValueId first = emit(OpCode::kBitcast, {parameter}, scalar);
      const ValueId size = emit(OpCode::kConstant, {}, scalar, with("value", Attribute::of(size_of(pointers.element))));
      const ValueId last = emit(OpCode::kSub, {end, size}, scalar);
      const auto compare = [&](OpCode how, ValueId bound) {
        return emit(how, {address, everywhere(bound, pointers)}, of(Element::kI1));
      };
      const ValueId here =
          emit(OpCode::kAnd, {compare(OpCode::kGe, first), compare(OpCode::kLe, last)}, of(Element::kI1));
      inside = inside < 0 ? here : emit(OpCode::kOr, {inside, here}, of(Element::kI1));
    }
    if (inside >= 0)
      guard(op, inside, fmt::format("`{}` reaches outside of {}", to_string(op.code), fmt::join(names, ", ")));
  }

  void guard(Op& op, ValueId inside, std::string message) {
    const size_t position = mask_position(op.code);
    const bool has_mask = position > 0 && op.operands.size() > position;
    std::vector<ValueId> asserted{inside};
    if (has_mask) asserted.push_back(op.operands[position]);
    out_->push_back({OpCode::kAssert,
                     std::move(asserted),
                     {},
                     with("message", Attribute::string(std::move(message))),
                     {},
                     frame_,
                     0,
                     0});
    if (position == 0) return;
    if (has_mask) {
      op.operands[position] = emit(OpCode::kAnd, {op.operands[position], inside}, kernel_.type(inside));
    } else {
      op.operands.push_back(inside);
    }
  }

  Kernel& kernel_;
  const std::vector<std::vector<bool>> origins_;
  std::vector<std::pair<ValueId, ValueId>> bounds_;  // by parameter: it, and the end of its memory (-1: it has none)
  std::vector<Op>* out_ = nullptr;
  int frame_ = -1;
};

}  // namespace

void check_bounds(Kernel& kernel) {
  Checker checker(kernel);
  checker.visit(kernel.body);
}

}  // namespace heddle::lang
