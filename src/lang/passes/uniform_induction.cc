#include "lang/passes/uniform_induction.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/check.h"

namespace heddle::lang {
namespace {

class Rewriter {
 public:
  explicit Rewriter(Kernel& kernel) : kernel_(kernel) {}

  void run() { visit(kernel_.body); }

 private:
  void visit(Region& region) {
    for (size_t i = 0; i < region.ops.size(); ++i) {
      for (Region& inner : region.ops[i].regions) visit(inner);
      if (region.ops[i].code == OpCode::kFor) i += rewrite_loop(region, i);
    }
  }

  using Definers = std::unordered_map<ValueId, const Op*>;
  static const Op* find(const Definers& definers, ValueId value) {
    const auto found = definers.find(value);
    return found == definers.end() ? nullptr : found->second;
  }

  // The scalar of which a tile is made, and where that is a constant its op.
  struct Amount {
    ValueId scalar = -1;
    const Op* constant = nullptr;
  };
  std::optional<Amount> uniform_amount(const Definers& definers, ValueId tile) const {
    const Op* op = find(definers, tile);
    while (op != nullptr && (op->code == OpCode::kBroadcast || op->code == OpCode::kExpandDims)) {
      op = find(definers, op->operands[0]);
    }
    if (op == nullptr) return std::nullopt;
    if (op->code == OpCode::kSplat) return Amount{op->operands[0], nullptr};
    if (op->code == OpCode::kConstant) return Amount{-1, op};
    return std::nullopt;
  }

  // What `value` is beyond the argument, by additions of uniform tiles: nothing where it is another thing.
  std::optional<std::vector<Amount>> moved_by(const Definers& definers, ValueId argument, ValueId value) const {
    std::vector<Amount> amounts;
    while (value != argument) {
      const Op* op = find(definers, value);
      if (op != nullptr && op->code == OpCode::kHint) {
        value = op->operands[0];
        continue;
      }
      if (op == nullptr || (op->code != OpCode::kAddPtr && op->code != OpCode::kAdd)) return std::nullopt;
      size_t moves = 1;
      std::optional<Amount> amount = uniform_amount(definers, op->operands[1]);
      if (!amount && op->code == OpCode::kAdd) {
        moves = 0;
        amount = uniform_amount(definers, op->operands[0]);
      }
      if (!amount) return std::nullopt;
      amounts.push_back(*amount);
      value = op->operands[1 - moves];
    }
    if (amounts.empty()) return std::nullopt;
    return amounts;
  }

  ValueId add_op(std::vector<Op>& to, OpCode code, std::vector<ValueId> operands, Type type, int frame) {
    Op op;
    op.code = code;
    op.operands = std::move(operands);
    op.frame = frame;
    const ValueId result = kernel_.add_value(std::move(type));
    op.results = {result};
    to.push_back(std::move(op));
    return result;
  }

  // first + offset, of which the first is a tile.
  ValueId add_moved(std::vector<Op>& to, ValueId first, ValueId offset, int frame) {
    const Type type = kernel_.type(first), scalar = kernel_.type(offset);
    const ValueId tile = add_op(to, OpCode::kSplat, {offset}, scalar.with_shape(type.shape), frame);
    return add_op(to, type.pointer ? OpCode::kAddPtr : OpCode::kAdd, {first, tile}, type, frame);
  }

  static void replace(Region& region, ValueId from, ValueId to) {
    for (Op& op : region.ops) {
      std::replace(op.operands.begin(), op.operands.end(), from, to);
      for (Region& inner : op.regions) replace(inner, from, to);
    }
  }

  // One carried tile of the loop `region.ops[at]` becomes an offset. Returns how many ops now stand behind it more.
  void rewrite_carried(Op& loop, size_t k, const std::vector<Amount>& amounts, std::vector<Op>& before,
                       std::vector<Op>& behind) {
    Region& body = loop.regions[0];
    const ValueId first = loop.operands[3 + k], argument = body.arguments[1 + k], result = loop.results[k];
    const Type tile = kernel_.type(first);
    const Type scalar = Type::scalar(tile.pointer ? Element::kI64 : tile.element);
    Op zero;
    zero.code = OpCode::kConstant;
    zero.attributes.set("value", Attribute::of(int64_t{0}));
    zero.frame = loop.frame;
    zero.results = {kernel_.add_value(scalar)};
    before.push_back(zero);
    const ValueId offset = kernel_.add_value(scalar), last = kernel_.add_value(scalar);

    std::vector<Op> next;
    ValueId sum = offset;
    for (const Amount& amount : amounts) {
      ValueId by = amount.scalar;
      if (amount.constant != nullptr) {
        Op constant = *amount.constant;
        by = kernel_.add_value(kernel_.type(amount.constant->results[0]).scalar_type());
        constant.results = {by};
        next.push_back(std::move(constant));
      }
      if (kernel_.type(by) != scalar) by = add_op(next, OpCode::kCast, {by}, scalar, loop.frame);
      sum = add_op(next, OpCode::kAdd, {sum, by}, scalar, loop.frame);
    }
    std::vector<Op> head;
    const ValueId moved = add_moved(head, first, offset, loop.frame);
    replace(body, argument, moved);
    body.ops.back().operands[k] = sum;
    body.ops.insert(body.ops.end() - 1, std::make_move_iterator(next.begin()), std::make_move_iterator(next.end()));
    body.ops.insert(body.ops.begin(), std::make_move_iterator(head.begin()), std::make_move_iterator(head.end()));
    body.arguments[1 + k] = offset;
    loop.operands[3 + k] = zero.results[0];
    loop.results[k] = last;
    const ValueId after = add_moved(behind, first, last, loop.frame);
    replaced_.emplace_back(result, after);
  }

  size_t rewrite_loop(Region& region, size_t at) {
    Definers definers;
    for_each_op(kernel_.body, [&](const Op& op) {
      for (const ValueId result : op.results) definers.emplace(result, &op);
    });
    std::vector<std::pair<size_t, std::vector<Amount>>> moving;
    const Op& loop = region.ops[at];
    for (size_t k = 0; k + 3 < loop.operands.size(); ++k) {
      const Type& type = kernel_.type(loop.operands[3 + k]);
      if (!type.is_tile() || (!type.pointer && !is_int(type.element))) continue;
      const auto amounts = moved_by(definers, loop.regions[0].arguments[1 + k], loop.regions[0].ops.back().operands[k]);
      if (amounts) moving.emplace_back(k, with_own_constants(*amounts));
    }
    if (moving.empty()) return 0;
    std::vector<Op> before, behind;
    replaced_.clear();
    for (const auto& [k, amounts] : moving) rewrite_carried(region.ops[at], k, amounts, before, behind);
    const size_t more = before.size() + behind.size();
    const auto place = region.ops.begin() + static_cast<std::ptrdiff_t>(at);
    const size_t first_behind = at + before.size() + 1 + behind.size();
    region.ops.insert(place + 1, std::make_move_iterator(behind.begin()), std::make_move_iterator(behind.end()));
    region.ops.insert(region.ops.begin() + static_cast<std::ptrdiff_t>(at), std::make_move_iterator(before.begin()),
                      std::make_move_iterator(before.end()));
    for (const auto& [from, to] : replaced_) {
      for (size_t i = first_behind; i < region.ops.size(); ++i) {
        Op& op = region.ops[i];
        std::replace(op.operands.begin(), op.operands.end(), from, to);
        for (Region& inner : op.regions) replace(inner, from, to);
      }
    }
    return more;
  }

  // Copies of the constants' ops: the body is about to move them.
  std::vector<Amount> with_own_constants(std::vector<Amount> amounts) {
    for (Amount& amount : amounts) {
      if (amount.constant == nullptr) continue;
      constants_.push_back(std::make_unique<Op>(*amount.constant));
      amount.constant = constants_.back().get();
    }
    return amounts;
  }

  Kernel& kernel_;
  std::vector<std::pair<ValueId, ValueId>> replaced_;
  std::vector<std::unique_ptr<Op>> constants_;
};

}  // namespace

void uniform_induction(Kernel& kernel) {
  Rewriter(kernel).run();
}

}  // namespace heddle::lang
