#include "lang/analysis/waits.h"

#include <algorithm>

namespace heddle::lang {
namespace {

bool hears_outside_of_inner_loops(const Region& region) {
  return std::any_of(region.ops.begin(), region.ops.end(), [](const Op& op) {
    if (op.code == OpCode::kWhile) return false;
    return hears_others(op) || std::any_of(op.regions.begin(), op.regions.end(), hears_outside_of_inner_loops);
  });
}

template <typename F>
bool has(const Region& region, const F& wanted) {
  bool found = false;
  for_each_op(region, [&](const Op& op) { found = found || wanted(op); });
  return found;
}

}  // namespace

bool is_volatile(const Op& op) {
  if (op.code != OpCode::kLoad && op.code != OpCode::kLoadView) return false;
  return op.attributes.integer("volatile") != 0 || op.attributes.word("cache") == "cv";
}

bool hears_others(const Op& op) {
  return is_volatile(op) || op.code == OpCode::kAtomicRmw || op.code == OpCode::kAtomicCas;
}

bool orders_loads(const Op& op) {
  return hears_others(op) || op.code == OpCode::kAtomicView || op.code == OpCode::kBarrier;
}

bool orders_loads(const Region& region) {
  return has(region, [](const Op& op) { return orders_loads(op); });
}

bool waits(const Op& op) {
  return op.code == OpCode::kWhile && std::any_of(op.regions.begin(), op.regions.end(), hears_outside_of_inner_loops);
}

bool has_wait(const Kernel& kernel) {
  return has(kernel.body, waits);
}

bool has_volatile_load(const Kernel& kernel) {
  return has(kernel.body, is_volatile);
}

}  // namespace heddle::lang
