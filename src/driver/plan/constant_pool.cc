#include "driver/plan/constant_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "base/hash.h"
#include "schedule/product/packing.h"

namespace heddle::driver {
namespace {

constexpr uint64_t kPlansKept = 2;

std::string key_of(const Tensor& tensor, const std::string& what) {
  return fmt::format("{} {}@{}+{}", what, to_string(tensor.dtype()), tensor.data(), tensor.bytes());
}

// A tensor over the memory of another, with a type and shape of its own.
Tensor view_of(const std::shared_ptr<const Tensor>& memory, DType dtype, const Shape& shape) {
  return Tensor::borrow(dtype, shape, memory->data(), memory);
}

using Contents = std::map<std::pair<uint64_t, uint64_t>, std::weak_ptr<const Tensor>>;

// The memory of `constant`, or that of an equal tensor.
std::shared_ptr<const Tensor> memory_of(const Tensor& constant, Contents& contents) {
  Hasher hasher;
  hasher.add(static_cast<int64_t>(constant.bytes()));
  hasher.add(hash_large(constant.data(), constant.bytes(), 1));
  const Hash128 hash = hasher.finish();
  std::weak_ptr<const Tensor>& known = contents[{hash.high, hash.low}];
  std::shared_ptr<const Tensor> memory = known.lock();
  if (memory == nullptr) {
    memory = std::make_shared<const Tensor>(constant);
    known = memory;
  }
  return memory;
}

void forget_ended(Contents& contents) {
  std::erase_if(contents, [](const auto& entry) { return entry.second.expired(); });
}

}  // namespace

void ConstantPool::next_plan() {
  ++plan_;
  std::erase_if(known_, [&](const auto& entry) { return entry.second.used + kPlansKept < plan_; });
  forget_ended(contents_);
}

void ConstantPool::adopt(const std::vector<Tensor>& constants) {
  for (const Tensor& constant : constants) {
    if (constant.bytes() > 0) keep(fmt::format("adopted {}", known_.size()), constant, by_content(constant));
  }
  for (auto& [key, entry] : known_) entry.used = UINT64_MAX - kPlansKept;
}

std::shared_ptr<const Tensor> ConstantPool::by_content(const Tensor& constant) {
  return memory_of(constant, contents_);
}

ConstantPool::Entry* ConstantPool::find(const std::string& key) {
  const auto found = known_.find(key);
  if (found == known_.end()) return nullptr;
  found->second.used = std::max(found->second.used, plan_);
  return &found->second;
}

Tensor ConstantPool::keep(const std::string& key, const Tensor& source, std::shared_ptr<const Tensor> result) {
  Tensor view = view_of(result, source.dtype(), source.shape());
  known_.insert_or_assign(key, Entry{source, std::move(result), plan_});
  return view;
}

Tensor ConstantPool::shared(const Tensor& constant) {
  if (constant.bytes() == 0 || constant.dtype() == DType::kString) return constant;
  const std::string key = key_of(constant, "dense");
  if (const Entry* known = find(key)) return view_of(known->result, constant.dtype(), constant.shape());
  return keep(key, constant, by_content(constant));
}

Tensor ConstantPool::packed(const Tensor& dense, const schedule::Packing& packing) {
  const ir::TensorType type = schedule::packed_type(dense, packing);
  const std::string key = key_of(dense, fmt::format("{}({})", packing.kind, fmt::join(packing.params, ",")));
  if (const Entry* known = find(key)) return view_of(known->result, type.dtype, type.shape);
  Tensor made = Tensor::unfilled(type.dtype, type.shape);
  schedule::pack_constant(dense, packing, made.mutable_data());
  std::shared_ptr<const Tensor> memory = by_content(made);
  keep(key, dense, memory);
  return view_of(memory, type.dtype, type.shape);
}

void share_constants(std::vector<Tensor>& constants, const std::map<std::string, Tensor>& borrowed) {
  static std::mutex mutex;
  static auto* const contents = new Contents;  // never destroyed: models may end after it
  std::set<const void*> caller;
  for (const auto& [name, tensor] : borrowed) caller.insert(tensor.data());
  const std::lock_guard lock(mutex);
  forget_ended(*contents);
  for (Tensor& constant : constants) {
    if (constant.bytes() == 0 || constant.dtype() == DType::kString || caller.contains(constant.data())) continue;
    constant = view_of(memory_of(constant, *contents), constant.dtype(), constant.shape());
  }
}

}  // namespace heddle::driver
