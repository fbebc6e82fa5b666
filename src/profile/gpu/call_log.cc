#include "profile/gpu/call_log.h"

#include <algorithm>

namespace heddle::profile {

CallLog::CallLog() : last_(new Chunk()), first_(last_) {}

CallLog::~CallLog() {
  while (first_ != nullptr) {
    Chunk* const next = first_->next.load(std::memory_order_acquire);
    delete first_;
    first_ = next;
  }
}

void CallLog::add(const GpuCall& call) {
  uint32_t count = last_->count.load(std::memory_order_relaxed);
  if (count == last_->calls.size()) {
    auto* const more = new Chunk();
    last_->next.store(more, std::memory_order_release);
    last_ = more;
    count = 0;
  }
  last_->calls[count] = call;
  last_->count.store(count + 1, std::memory_order_release);
}

void CallLog::take_over() {
  for (;;) {
    const uint32_t count = first_->count.load(std::memory_order_acquire);
    for (; read_ < count; ++read_) {
      const GpuCall& call = first_->calls[read_];
      // The numbers began anew.
      if (!calls_.empty() && call.correlation < calls_.back().correlation) calls_.clear();
      // A call of the runtime and the driver's call within it may have the same number.
      if (!calls_.empty() && call.correlation == calls_.back().correlation) continue;
      calls_.push_back(call);
    }
    Chunk* const next = first_->next.load(std::memory_order_acquire);
    if (read_ < first_->calls.size() || next == nullptr) return;
    delete first_;
    first_ = next;
    read_ = 0;
  }
}

const GpuCall* CallLog::find(uint32_t correlation) {
  constexpr size_t kNear = 4;  // records come nearly in order
  for (size_t i = hint_; i < std::min(hint_ + kNear, calls_.size()); ++i) {
    if (calls_[i].correlation != correlation) continue;
    hint_ = i;
    return &calls_[i];
  }
  const auto found = std::lower_bound(calls_.begin(), calls_.end(), correlation,
                                      [](const GpuCall& call, uint32_t wanted) { return call.correlation < wanted; });
  if (found == calls_.end() || found->correlation != correlation) return nullptr;
  hint_ = static_cast<size_t>(found - calls_.begin());
  return &*found;
}

void CallLog::forget_oldest(size_t count) {
  count = std::min(count, calls_.size());
  calls_.erase(calls_.begin(), calls_.begin() + static_cast<std::ptrdiff_t>(count));
  hint_ = hint_ > count ? hint_ - count : 0;
}

void CallLog::forget_all() {
  take_over();
  calls_ = {};
  hint_ = 0;
}

}  // namespace heddle::profile
