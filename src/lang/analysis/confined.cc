#include "lang/analysis/confined.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace heddle::lang {
namespace {

class Follower {
 public:
  Follower(const Kernel& kernel, const WindowAnalysis& windows, const Polynomial& start, const Polynomial& size)
      : kernel_(kernel), windows_(windows), start_(start), size_(size) {
    for_each_op(kernel.body, [&](const Op& op) {
      for (const Region& region : op.regions) {
        for (const Op& inner : region.ops) parents_.emplace(&inner, &op);
      }
    });
  }

  bool run(ValueId tile, size_t dim) {
    mark(tile, dim);
    while (!open_.empty()) {
      const auto [value, along] = open_.back();
      open_.pop_back();
      for (const Op* user : windows_.uses().users(value)) {
        if (!follow(*user, value, along)) return false;
      }
    }
    return true;
  }

 private:
  void mark(ValueId value, size_t dim) {
    if (seen_.emplace(value, dim).second) open_.emplace_back(value, dim);
  }
  void mark_all(const std::vector<ValueId>& values, size_t dim) {
    for (const ValueId v : values) mark(v, dim);
  }

  // Whether start and size are the same numbers in every trip of a loop.
  bool are_outside_of(const Region& body) const {
    std::set<const Region*> inner{&body};
    for_each_op(body, [&](const Op& op) {
      for (const Region& r : op.regions) inner.insert(&r);
    });
    for (const Polynomial* p : {&start_, &size_}) {
      for (const auto& [product, factor] : p->terms()) {
        for (const ValueId v : product) {
          if (inner.count(windows_.uses().region(v)) != 0) return false;
        }
      }
    }
    return true;
  }

  bool follow(const Op& op, ValueId value, size_t dim) {
    switch (op.code) {
      case OpCode::kDot: {
        const auto rank = static_cast<size_t>(kernel_.type(op.results[0]).rank());
        const bool summed =
            (op.operands[0] == value && dim == rank - 1) || (op.operands[1] == value && dim == rank - 2);
        if (summed) return false;
        return mark(op.results[0], dim), true;
      }
      case OpCode::kExpandDims:
        return mark(op.results[0], dim + (static_cast<size_t>(op.attributes.integer("axis")) <= dim ? 1 : 0)), true;
      case OpCode::kBroadcast:
        return mark(op.results[0], dim), true;
      case OpCode::kPermute: {
        const std::vector<int64_t> order = op.attributes.list("order");
        const auto at = std::find(order.begin(), order.end(), static_cast<int64_t>(dim));
        return mark(op.results[0], static_cast<size_t>(at - order.begin())), true;
      }
      case OpCode::kReduce: {
        const auto axis = static_cast<size_t>(op.attributes.integer("axis"));
        if (axis == dim) return false;
        return mark_all(op.results, dim - (axis < dim ? 1 : 0)), true;
      }
      case OpCode::kFor:
        for (size_t k = 0; k + 3 < op.operands.size(); ++k) {
          if (op.operands[3 + k] != value) continue;
          mark(op.regions[0].arguments[1 + k], dim);
          mark(op.results[k], dim);
        }
        return true;
      case OpCode::kYield:
        return follow_yield(op, value, dim);
      case OpCode::kStore:
        return is_left_out(op, value, dim);
      default:
        if (!info_of(op.code).has(kElementwise) || !op.regions.empty()) return false;
        return mark_all(op.results, dim), true;
    }
  }

  bool follow_yield(const Op& yield, ValueId value, size_t dim) {
    const Op& parent = *parents_.at(&yield);
    if (parent.code != OpCode::kFor && parent.code != OpCode::kIf) return false;
    if (parent.code == OpCode::kFor && !are_outside_of(parent.regions[0])) return false;
    for (size_t k = 0; k < yield.operands.size(); ++k) {
      if (yield.operands[k] != value) continue;
      if (parent.code == OpCode::kFor) mark(parent.regions[0].arguments[1 + k], dim);
      mark(parent.results[k], dim);
    }
    return true;
  }

  bool is_left_out(const Op& store, ValueId value, size_t dim) const {
    if (store.operands.size() < 3 || store.operands[0] == value || store.operands[2] == value) return false;
    const std::optional<Window> window = windows_.window(store.operands[0], store.operands[2]);
    if (!window) return false;
    const Window::Dim& along = window->dims[dim];
    return !along.wraps && along.size == size_ && along.start == start_;
  }

  const Kernel& kernel_;
  const WindowAnalysis& windows_;
  const Polynomial &start_, &size_;
  std::unordered_map<const Op*, const Op*> parents_;
  std::set<std::pair<ValueId, size_t>> seen_;
  std::vector<std::pair<ValueId, size_t>> open_;
};

}  // namespace

bool is_confined(const Kernel& kernel, const WindowAnalysis& windows, ValueId tile, size_t dim, const Polynomial& start,
                 const Polynomial& size) {
  return Follower(kernel, windows, start, size).run(tile, dim);
}

}  // namespace heddle::lang
