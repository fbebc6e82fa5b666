#include "lang/passes/shorten_offsets.h"

#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace heddle::lang {
namespace {

class Shortener {
 public:
  static constexpr size_t kLong = 16;  // additions of a chain that stay as they are

  explicit Shortener(Kernel& kernel) : kernel_(kernel) {}

  void run() { visit(kernel_.body); }

 private:
  // A scalar that an addition moves its tile by, or a constant.
  struct Amount {
    ValueId scalar = -1;
    int64_t constant = 0;
  };
  // A tile as another one and what that was moved by.
  struct Chain {
    ValueId root = -1;
    std::vector<Amount> amounts;
    bool summed = false;  // the amounts are a sum already
  };

  void visit(Region& region) {
    const size_t outer = made_.size();
    std::vector<Op> ops;
    ops.reserve(region.ops.size());
    for (Op& op : region.ops) {
      for (Region& inner : op.regions) visit(inner);
      note_uniform(op);
      if (op.code == OpCode::kAddPtr || op.code == OpCode::kAdd) shorten(op, ops);
      ops.push_back(std::move(op));
    }
    region.ops = std::move(ops);
    for (; made_.size() > outer; made_.pop_back()) known_.erase(made_.back());
  }

  // Tiles that are the same everywhere.
  void note_uniform(const Op& op) {
    if (op.results.size() != 1) return;
    const Type& type = kernel_.type(op.results[0]);
    if (!type.is_tile() || type.pointer || !is_int(type.element)) return;
    if (op.code == OpCode::kConstant) {
      uniform_[op.results[0]] = {-1, op.attributes.integer("value")};
    } else if (op.code == OpCode::kSplat) {
      uniform_[op.results[0]] = {op.operands[0], 0};
    } else if (op.code == OpCode::kBroadcast || op.code == OpCode::kExpandDims) {
      const auto found = uniform_.find(op.operands[0]);
      if (found != uniform_.end()) uniform_[op.results[0]] = Amount(found->second);
    }
  }

  void shorten(Op& op, std::vector<Op>& before) {
    const Type type = kernel_.type(op.results[0]);  // a copy: values are added
    if (!type.is_tile() || (!type.pointer && !is_int(type.element))) return;
    const bool swapped = op.code == OpCode::kAdd && !uniform_.contains(op.operands[1]);
    const auto amount = uniform_.find(op.operands[swapped ? 0 : 1]);
    if (amount == uniform_.end()) return;
    const ValueId moved = op.operands[swapped ? 1 : 0];
    const auto found = chains_.find(moved);
    Chain chain = found == chains_.end() ? Chain{moved, {}, false} : found->second;
    chain.amounts.push_back(amount->second);
    if (chain.summed || chain.amounts.size() > kLong) {
      const Type scalar = Type::scalar(type.pointer ? Element::kI64 : type.element);
      chain.amounts = {sum_of(chain.amounts, scalar, before, op.frame)};
      chain.summed = true;
      const Amount& sum = chain.amounts[0];
      const Type tile = scalar.with_shape(type.shape);
      op.operands = {chain.root, sum.scalar < 0 ? add(before, OpCode::kConstant, {}, tile, op.frame, sum.constant)
                                                : add(before, OpCode::kSplat, {sum.scalar}, tile, op.frame)};
    }
    chains_[op.results[0]] = std::move(chain);
  }

  static uint64_t bits(int64_t value) { return static_cast<uint64_t>(value); }

  // The sum as one amount: modulo the width of the type, as the additions were.
  Amount sum_of(const std::vector<Amount>& amounts, const Type& type, std::vector<Op>& before, int frame) {
    Amount sum;
    for (const Amount& amount : amounts) {
      if (amount.scalar < 0) {
        sum.constant = static_cast<int64_t>(bits(sum.constant) + bits(amount.constant));
        continue;
      }
      ValueId by = amount.scalar;
      if (kernel_.type(by) != type) by = add(before, OpCode::kCast, {by}, type, frame);
      sum.scalar = sum.scalar < 0 ? by : add(before, OpCode::kAdd, {sum.scalar, by}, type, frame);
    }
    sum.constant = wrapped(sum.constant, type.element);
    if (sum.scalar < 0 || sum.constant == 0) return sum;
    const ValueId constant = add(before, OpCode::kConstant, {}, type, frame, sum.constant);
    return {add(before, OpCode::kAdd, {sum.scalar, constant}, type, frame), 0};
  }

  static int64_t wrapped(int64_t value, Element element) {
    const int unused = 64 - bits_of(element);
    const auto high = static_cast<int64_t>(bits(value) << unused);
    return is_signed_int(element) ? high >> unused : static_cast<int64_t>(bits(high) >> unused);
  }

  // An op of one result, unless the same one is in sight already.
  ValueId add(std::vector<Op>& to, OpCode code, std::vector<ValueId> operands, Type type, int frame,
              int64_t constant = 0) {
    const Made made(code, operands, type.element, type.shape, constant);
    if (const auto found = known_.find(made); found != known_.end()) return found->second;
    Op op;
    op.code = code;
    op.operands = std::move(operands);
    op.frame = frame;
    if (code == OpCode::kConstant) {
      Attribute value = Attribute::of(constant);
      if (type.element == Element::kU64 && constant < 0) {
        value.beyond_signed = true;
        value.number = static_cast<double>(bits(constant));
      }
      op.attributes.set("value", std::move(value));
    }
    const ValueId result = kernel_.add_value(std::move(type));
    op.results = {result};
    to.push_back(std::move(op));
    made_.push_back(made);
    return known_[made] = result;
  }

  using Made = std::tuple<OpCode, std::vector<ValueId>, Element, std::vector<int64_t>, int64_t>;

  Kernel& kernel_;
  std::unordered_map<ValueId, Amount> uniform_;
  std::unordered_map<ValueId, Chain> chains_;
  std::map<Made, ValueId> known_;
  std::vector<Made> made_;  // the keys of `known_`, those of inner regions last
};

}  // namespace

void shorten_offsets(Kernel& kernel) {
  size_t additions = 0;
  for_each_op(kernel.body,
              [&](const Op& op) { additions += op.code == OpCode::kAddPtr || op.code == OpCode::kAdd ? 1 : 0; });
  if (additions > Shortener::kLong) Shortener(kernel).run();
}

}  // namespace heddle::lang
