#include "emulator/cupti/recorder.h"

#include <algorithm>
#include <cstring>

namespace heddle::emulator {
namespace {

// Times are made up of what is done, so that a test knows them: the clock begins in November 2023.
constexpr uint64_t kBegin = 1700000000ull * 1000000000;
constexpr uint64_t kGap = 500, kOverlap = 200;

uint64_t duration_of(const Work& work) {
  switch (work.kind) {
    case Work::Kind::kKernel:
      return 1000 + 8 * uint64_t{work.grid[0]} * work.grid[1] * work.grid[2];
    case Work::Kind::kCopy:
      return 500 + work.bytes / 10;
    case Work::Kind::kMemset:
      return 300 + work.bytes / 20;
    case Work::Kind::kSync:
      return 100;
    default:
      return 0;
  }
}

bool is_nth(uint64_t count, uint64_t n) {
  return n != 0 && count % n == 0;
}

}  // namespace

Recorder& Recorder::get() {
  static auto* one = new Recorder();
  return *one;
}

bool Recorder::subscribe(Callback callback, void* user, const Faults& faults) {
  const std::lock_guard lock(mutex_);
  if (callback_ != nullptr) return false;
  callback_ = callback;
  user_ = user;
  faults_ = faults;
  callbacks_.clear();
  records_ = dropped_ = 0;
  clock_ = kBegin;
  latest_.clear();
  return true;
}

void Recorder::unsubscribe() {
  const std::lock_guard lock(mutex_);
  callback_ = nullptr;
}

void Recorder::enable_callback(bool enable, int domain, uint32_t id) {
  const std::lock_guard lock(mutex_);
  if (enable) {
    callbacks_.insert({domain, id});
  } else {
    callbacks_.erase({domain, id});
  }
}

void Recorder::enable_activity(bool enable, uint32_t kind) {
  const std::lock_guard lock(mutex_);
  if (enable) {
    activities_.insert(kind);
  } else {
    activities_.erase(kind);
  }
}

void Recorder::set_buffers(BufferRequested requested, BufferCompleted completed) {
  const std::lock_guard lock(mutex_);
  requested_ = requested;
  completed_ = completed;
}

uint64_t Recorder::take_dropped() {
  const std::lock_guard lock(mutex_);
  return std::exchange(dropped_, 0);
}

Faults Recorder::faults() const {
  const std::lock_guard lock(mutex_);
  return faults_;
}

void Recorder::call_back(int domain, uint32_t id, const void* data) {
  Callback callback = nullptr;
  void* user = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!callbacks_.contains({domain, id})) return;
    callback = callback_;
    user = user_;
  }
  if (callback != nullptr) callback(user, domain, id, data);
}

// The host's waits are short and take none of the device's time. A launch that began early ends behind the one in
// front.
Times Recorder::times_of(const Work& work) {
  const uint64_t duration = duration_of(work);
  const bool of_host = work.kind == Work::Kind::kSync || duration == 0;
  if (of_host) return {clock_, clock_ + duration};
  uint64_t start = clock_ + kGap;
  const Times& before = latest_[work.stream];
  if (work.early && before.end == clock_) start = std::max(before.start + 1, clock_ - kOverlap);
  const Times times{start, std::max(start + duration, clock_ + 1)};
  clock_ = times.end;
  latest_[work.stream] = times;
  return times;
}

void Recorder::done(const Work& work) {
  std::vector<uint8_t> unknown, record;
  {
    const std::lock_guard lock(mutex_);
    if (!activities_.contains(activity_of(work.kind))) return;
    const Times times = times_of(work);
    ++records_;
    if (is_nth(records_, faults_.lost)) {
      ++dropped_;
      return;
    }
    const char* name = names_.insert(work.name).first->c_str();
    record = record_of(work, is_nth(records_, faults_.zero) ? Times{} : times, name, faults_.old);
    if (is_nth(records_, faults_.unknown)) unknown = unknown_record();
  }
  if (!unknown.empty()) append(unknown);
  append(record);
}

void Recorder::append(const std::vector<uint8_t>& record) {
  Buffer full;
  {
    std::unique_lock lock(mutex_);
    if (filling_.memory != nullptr && filling_.valid + record.size() > filling_.bytes) {
      std::swap(full, filling_);
      if (faults_.late) full_.push_back(std::exchange(full, {}));
    }
    if (filling_.memory == nullptr) {
      const BufferRequested requested = requested_;
      lock.unlock();
      Buffer fresh;
      size_t most_records = 0;
      if (requested != nullptr) requested(&fresh.memory, &fresh.bytes, &most_records);
      lock.lock();
      if (filling_.memory == nullptr) {
        filling_ = fresh;
      } else {
        full_.push_back(fresh);  // of another thread, which was faster: given back empty
      }
    }
    if (filling_.memory == nullptr || filling_.valid + record.size() > filling_.bytes) {
      ++dropped_;
    } else {
      std::memcpy(filling_.memory + filling_.valid, record.data(), record.size());
      filling_.valid += record.size();
    }
  }
  if (full.memory != nullptr) deliver(full);
}

void Recorder::deliver(const Buffer& buffer) {
  BufferCompleted completed = nullptr;
  size_t valid = buffer.valid;
  {
    const std::lock_guard lock(mutex_);
    completed = completed_;
    constexpr size_t kCut = 30;
    if (faults_.cut) valid -= std::min(valid, kCut);
  }
  if (completed != nullptr) completed(nullptr, 0, buffer.memory, buffer.bytes, valid);
}

void Recorder::flush(bool forced) {
  std::vector<Buffer> buffers;
  {
    const std::lock_guard lock(mutex_);
    if (faults_.late && !forced) return;
    buffers.swap(full_);
    if (filling_.memory != nullptr) buffers.push_back(std::exchange(filling_, {}));
  }
  for (const Buffer& buffer : buffers) deliver(buffer);
}

}  // namespace heddle::emulator
