#include "lang/program/inline.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "lang/analysis/accesses.h"
#include "lang/analysis/uses.h"
#include "lang/ir/verify.h"

namespace heddle::lang {
namespace {

using Kind = LaunchArgument::Kind;

struct Refusal {
  std::string why;
};

// Pure ops whose results nobody uses.
void drop_unused(Kernel& kernel) {
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<int> uses(kernel.values.size());
    for_each_op(kernel.body, [&](const Op& op) {
      for (const ValueId v : op.operands) ++uses[static_cast<size_t>(v)];
    });
    const auto drop = [&](auto& self, Region& region) -> void {
      const auto is_unused = [&](const Op& op) {
        return info_of(op.code).has(kPure) && std::all_of(op.results.begin(), op.results.end(),
                                                          [&](ValueId v) { return uses[static_cast<size_t>(v)] == 0; });
      };
      changed = std::erase_if(region.ops, is_unused) > 0 || changed;
      for (Op& op : region.ops) {
        for (Region& inner : op.regions) self(self, inner);
      }
    };
    drop(drop, kernel.body);
  }
}

bool is_used(const Kernel& kernel, ValueId value) {
  bool used = false;
  for_each_op(kernel.body, [&](const Op& op) {
    used = used || std::find(op.operands.begin(), op.operands.end(), value) != op.operands.end();
  });
  return used;
}

Element computed(Element element) {
  return element == Element::kF64 || element == Element::kI1 ? element : Element::kF32;
}

// Rewrites the kernel of one launch.
class Inliner {
 public:
  // `memory`: whose accesses change.
  Inliner(const Kernel& from, Launch& launch, const LaunchArgument& memory, const Elementwise& value)
      : from_(from), uses_(from), kernel_(from), launch_(launch), memory_(memory), value_(value) {
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      if (launch.arguments[i].is_same_memory(memory)) parameters_.push_back(from.parameters[i].value);
    }
  }

  // `stored`: what a result becomes; of an operand nothing.
  Kernel run(std::optional<Element> stored) {
    stored_ = stored;
    kernel_.body = rebuilt(from_.body, false);
    drop_unused(kernel_);
    for (const ValueId parameter : parameters_) {
      if (is_used(kernel_, parameter))
        throw Refusal{"its kernel gets at the tensor otherwise than by loads and stores of pointers"};
    }
    for (size_t i = launch_.arguments.size(); i-- > 0;) {
      if (!launch_.arguments[i].is_same_memory(memory_) || i >= from_.parameters.size()) continue;
      launch_.arguments.erase(launch_.arguments.begin() + static_cast<int64_t>(i));
      kernel_.parameters.erase(kernel_.parameters.begin() + static_cast<int64_t>(i));
    }
    for (const auto& [argument, parameter] : added_) {
      launch_.arguments.push_back(argument);
      kernel_.parameters.push_back(parameter);
    }
    verify(kernel_);
    return std::move(kernel_);
  }

 private:
  Region rebuilt(const Region& region, bool in_loop) {
    Region made{region.arguments, {}};
    std::vector<Op>* const outer = std::exchange(out_, &made.ops);
    for (const Op& op : region.ops) {
      frame_ = op.frame;
      if (!stored_ && op.code == OpCode::kLoad && is_ours(op.operands[0])) {
        if (in_loop)
          throw Refusal{"its kernel loads the operand in a loop, where the value would be computed again and again"};
        load(op);
      } else if (stored_ && op.code == OpCode::kStore && is_ours(op.operands[0])) {
        store(op);
      } else {
        Op copy = op;
        const bool loops = in_loop || op.code == OpCode::kFor || op.code == OpCode::kWhile;
        for (size_t r = 0; r < op.regions.size(); ++r) copy.regions[r] = rebuilt(op.regions[r], loops);
        made.ops.push_back(std::move(copy));
      }
    }
    out_ = outer;
    return made;
  }

  // Whether a pointer leads back to a parameter of ours through arithmetic.
  bool is_ours(ValueId pointer) const {
    for (const Op* op = uses_.definer(pointer); op != nullptr; op = uses_.definer(pointer)) {
      if (!is_address(op->code)) return false;
      pointer = op->operands[0];
    }
    return std::find(parameters_.begin(), parameters_.end(), pointer) != parameters_.end();
  }
  static bool is_address(OpCode code) { return code == OpCode::kAddPtr || code == OpCode::kHint || is_shape(code); }
  static bool is_shape(OpCode code) {
    return code == OpCode::kSplat || code == OpCode::kBroadcast || code == OpCode::kExpandDims ||
           code == OpCode::kReshape || code == OpCode::kPermute;
  }

  ValueId emit(OpCode code, std::vector<ValueId> operands, Type type, Attributes attributes = {}) {
    Op op;
    op.code = code;
    op.operands = std::move(operands);
    op.attributes = std::move(attributes);
    op.frame = frame_;
    op.results = {kernel_.add_value(std::move(type))};
    out_->push_back(std::move(op));
    return out_->back().results[0];
  }

  Type like(const Type& shape, Element element, bool pointer = false) const {
    Type type = shape;
    type.pointer = pointer;
    type.element = element;
    return type;
  }

  ValueId constant(const Type& type, Attribute value) {
    Attributes attributes;
    attributes.set("value", std::move(value));
    return emit(OpCode::kConstant, {}, type, attributes);
  }

  ValueId cast(ValueId value, Element to) {
    const Type type = kernel_.type(value);
    return type.element == to ? value : emit(OpCode::kCast, {value}, like(type, to));
  }

  // How many elements a pointer lies behind the first one of its tensor; nothing: none.
  std::optional<ValueId> offset(ValueId pointer) {
    const Op* op = uses_.definer(pointer);
    if (op == nullptr) return std::nullopt;
    const std::optional<ValueId> below = offset(op->operands[0]);
    if (op->code == OpCode::kAddPtr) {
      const ValueId step = cast(op->operands[1], Element::kI32);
      return below ? emit(OpCode::kAdd, {*below, step}, kernel_.type(step)) : step;
    }
    if (!below || op->code == OpCode::kHint) return below;
    return emit(op->code, {*below}, like(from_.type(pointer), Element::kI32), op->attributes);
  }

  ValueId parameter_of(const LaunchArgument& argument, Element element) {
    for (const auto& [known, parameter] : added_) {
      if (known.is_same_memory(argument)) return parameter.value;
    }
    Kernel::Parameter parameter;
    parameter.value = kernel_.add_value(Type::pointer_to(element), fmt::format("neighbour{}", kernel_.values.size()));
    parameter.attributes.set("divisible", Attribute::of(16));
    added_.emplace_back(argument, parameter);
    return parameter.value;
  }

  // Pointers to the elements at some places of a tensor.
  ValueId pointers(ValueId base, ValueId places) {
    const Type type = like(kernel_.type(places), kernel_.type(base).element, true);
    const ValueId all = type.is_tile() ? emit(OpCode::kSplat, {base}, type) : base;
    return emit(OpCode::kAddPtr, {all, places}, type);
  }

  ValueId load_leaf(const Elementwise::Leaf& leaf, ValueId places, const std::vector<ValueId>& mask) {
    LaunchArgument argument;
    argument.kind = Kind::kOperand;
    argument.index = leaf.operand;
    ValueId at = places;
    const Type integers = kernel_.type(places);
    if (leaf.divide > 1) at = emit(OpCode::kDiv, {at, constant(integers, Attribute::of(leaf.divide))}, integers);
    if (leaf.modulo > 0) at = emit(OpCode::kRem, {at, constant(integers, Attribute::of(leaf.modulo))}, integers);
    std::vector<ValueId> operands{pointers(parameter_of(argument, leaf.element), at)};
    operands.insert(operands.end(), mask.begin(), mask.end());
    return cast(emit(OpCode::kLoad, std::move(operands), like(integers, leaf.element)), computed(leaf.element));
  }

  // The value at some places, in the type that it is computed in.
  ValueId computed_value(ValueId places, const std::vector<ValueId>& mask, ValueId self) {
    const Type shape = kernel_.type(places);
    std::vector<ValueId> values;
    for (const Elementwise::Leaf& leaf : value_.leaves) {
      switch (leaf.kind) {
        case Elementwise::Leaf::Kind::kSelf:
          values.push_back(cast(self, computed(kernel_.type(self).element)));
          break;
        case Elementwise::Leaf::Kind::kTensor:
          values.push_back(load_leaf(leaf, places, mask));
          break;
        case Elementwise::Leaf::Kind::kNumber:
          values.push_back(constant(like(shape, computed(leaf.element)), Attribute::of_number(leaf.number)));
      }
    }
    for (const Elementwise::Node& node : value_.nodes) {
      std::vector<ValueId> operands;
      for (const size_t operand : node.operands) operands.push_back(values[operand]);
      values.push_back(emit(node.code, std::move(operands), like(shape, node.element), node.attributes));
    }
    return values.back();
  }

  ValueId places_of(ValueId pointer) {
    if (const std::optional<ValueId> at = offset(pointer)) return *at;
    return constant(like(from_.type(pointer), Element::kI32), Attribute::of(0));
  }

  // The last op gets the results of the one that it stands for.
  void load(const Op& op) {
    std::vector<ValueId> mask;
    if (op.operands.size() > 1) mask.push_back(op.operands[1]);
    const Type& type = from_.type(op.results[0]);
    ValueId value = cast(computed_value(places_of(op.operands[0]), mask, -1), type.element);
    if (!mask.empty()) {
      const bool has_other = op.operands.size() > 2;
      const ValueId other = has_other
                                ? op.operands[2]
                                : constant(type, is_float(type.element) ? Attribute::of_number(0) : Attribute::of(0));
      value = emit(OpCode::kSelect, {mask[0], value, other}, type);
    }
    HEDDLE_CHECK(out_->back().results[0] == value, "a value that is inlined is made by the last op");
    out_->back().results = op.results;
  }

  void store(const Op& op) {
    std::vector<ValueId> mask;
    if (op.operands.size() > 2) mask.push_back(op.operands[2]);
    const ValueId places = places_of(op.operands[0]);
    const ValueId value = cast(computed_value(places, mask, op.operands[1]), *stored_);
    Op made = op;
    made.operands = {pointers(parameter_of(memory_, *stored_), places), value};
    made.operands.insert(made.operands.end(), mask.begin(), mask.end());
    out_->push_back(std::move(made));
  }

  const Kernel& from_;
  const Uses uses_;
  Kernel kernel_;
  Launch& launch_;
  const LaunchArgument memory_;
  const Elementwise& value_;
  std::optional<Element> stored_;
  std::vector<ValueId> parameters_;
  std::vector<std::pair<LaunchArgument, Kernel::Parameter>> added_;
  std::vector<Op>* out_ = nullptr;
  int frame_ = -1;
};

bool names(const Launch& launch, const LaunchArgument& memory) {
  return std::any_of(launch.arguments.begin(), launch.arguments.end(),
                     [&](const LaunchArgument& argument) { return argument.is_same_memory(memory); });
}

std::string inline_at(Program& program, const LaunchArgument& memory, const Elementwise& value,
                      std::optional<Element> stored) {
  Program made = program;
  try {
    for (Launch& launch : made.launches) {
      if (!names(launch, memory)) continue;
      const Kernel from = made.kernels[launch.kernel];
      const std::vector<Accesses> accesses = accesses_of(from);
      for (size_t i = 0; stored && i < accesses.size(); ++i) {
        if (accesses[i].reads && launch.arguments[i].is_same_memory(memory))
          throw Refusal{"its kernels read the result again"};
      }
      made.kernels.push_back(Inliner(from, launch, memory, value).run(stored));
      launch.kernel = made.kernels.size() - 1;
    }
  } catch (const Refusal& refusal) {
    return refusal.why;
  }
  program = std::move(made);
  return "";
}

}  // namespace

std::string inline_at_loads(Program& program, size_t index, const Elementwise& value) {
  LaunchArgument memory;
  memory.kind = Kind::kOperand;
  memory.index = index;
  return inline_at(program, memory, value, std::nullopt);
}

std::string inline_at_stores(Program& program, size_t index, const Elementwise& value, Element stored) {
  LaunchArgument memory;
  memory.kind = Kind::kResult;
  memory.index = index;
  return inline_at(program, memory, value, stored);
}

}  // namespace heddle::lang
