#include "emulator/races/races.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

#include "emulator/driver/module.h"
#include "emulator/grid.h"

namespace heddle::emulator {
namespace {

constexpr uint32_t kNever = ~0u;  // the time of an access that completes with its launch

bool is_write(Access kind) {
  return kind == Access::kWrite || kind == Access::kAtomicWrite;
}
bool is_atomic(Access kind) {
  return kind != Access::kRead && kind != Access::kWrite;
}
bool conflict(Access a, Access b) {
  return (is_write(a) || is_write(b)) && !(is_atomic(a) && is_atomic(b));
}
// Whatever races with `old` and comes after `next` races with `next`, too.
bool covers(Access next, Access old) {
  return next == Access::kWrite || next == old || (next == Access::kAtomicWrite && old == Access::kAtomicRead);
}

const char* verb(Access kind) {
  switch (kind) {
    case Access::kRead:
      return "reads";
    case Access::kWrite:
      return "writes";
    case Access::kAtomicWrite:
      return "updates atomically";
    default:
      return "reads atomically";
  }
}

// "gemm.h:12". Instrumented code knows its address only, which binutils translate.
std::string text_of(Place place) {
  if (place.line != 0) {
    const std::string_view path = place.file;
    return fmt::format("{}:{}", path.substr(path.find_last_of('/') + 1), place.line);
  }
  Dl_info info{};
  if (::dladdr(place.file, &info) == 0 || info.dli_fname == nullptr) return "?";
  std::string file = info.dli_fname;
  constexpr std::string_view kSelf = "/proc/self/";
  if (file.starts_with(kSelf)) file = fmt::format("/proc/{}/{}", ::getpid(), file.substr(kSelf.size()));
  const auto offset = place.file - static_cast<const char*>(info.dli_fbase);
  FILE* lines = ::popen(fmt::format("addr2line -s -e '{}' {:#x} 2>/dev/null", file, offset - 1).c_str(), "r");
  if (lines == nullptr) return fmt::format("{:#x}", offset);
  char line[256] = {};
  const bool found = std::fgets(line, sizeof line, lines) != nullptr;
  ::pclose(lines);
  std::string text = line;
  text.resize(std::min(text.size(), text.find_first_of(" \n")));
  return found && !text.empty() ? text : fmt::format("{:#x}", offset);
}

}  // namespace

Races& races() {
  static Races* const one = new Races();  // threads may still call while the process ends
  return *one;
}

void Races::forget(uint64_t address, uint64_t bytes) {
  for (uint64_t number = address / kPage; number <= (address + bytes) / kPage; ++number) pages_.erase(number);
  last_ = nullptr;
}

void Races::number_next(bool early) {
  next_ = ++launches_;
  if (!early) chain_ = next_;
}

uint32_t Races::begin(bool early, bool ahead) {
  if (next_ == 0 || ahead) {
    ++launches_;
    if (!early) chain_ = launches_;
    return launches_;
  }
  return std::exchange(next_, 0);
}

Clock Races::start_of(uint32_t launch, bool early) const {
  auto clock = std::make_shared<VectorClock>();
  clock->ended = early ? std::min(chain_, launch) : launch;
  return clock;
}

bool Races::happens_before(const Slot& earlier, const ThreadClock& thread) {
  if (earlier.launch < thread.before->ended) return true;
  if (earlier.launch != thread.launch || earlier.time == kNever) return false;
  if (earlier.block == thread.block && earlier.thread == thread.thread) return true;
  return thread.before->time_of(VectorClock::block_key(earlier.launch, earlier.block), earlier.thread) >= earlier.time;
}

Races::Granule& Races::granule_at(uint64_t address) {
  const uint64_t number = address / kPage;
  if (last_ == nullptr || last_number_ != number) {
    auto& page = pages_[number];
    if (page == nullptr) page = std::make_unique<Page>();
    last_ = page.get();
    last_number_ = number;
  }
  return (*last_)[address % kPage / kGranule];
}

void Races::remember(Granule& granule, const Slot& slot, const ThreadClock& thread) {
  Slot* to = nullptr;
  for (Slot& old : granule) {
    const bool same_thread = old.launch == slot.launch && old.block == slot.block && old.thread == slot.thread;
    if (same_thread && old.kind == slot.kind && old.time == slot.time) {
      old.bytes |= slot.bytes;
      old.place = slot.place;
      return;
    }
    const bool replaces = (old.bytes & ~slot.bytes) == 0 && covers(slot.kind, old.kind) && happens_before(old, thread);
    if (to == nullptr && (old.bytes == 0 || replaces)) to = &old;
  }
  if (to == nullptr) to = &granule[turn_++ % granule.size()];
  *to = slot;
}

bool Races::access(const ThreadClock& thread, const Memory& memory, const MemoryAccess& access, std::string* race) {
  const auto& [address, bytes, kind, place, is_async] = access;
  Slot slot{thread.launch, thread.block, thread.thread, is_async ? kNever : thread.now, 0, kind, place};
  for (uint64_t at = address; at < address + bytes;) {
    const uint64_t first = at % kGranule, count = std::min(kGranule - first, address + bytes - at);
    slot.bytes = static_cast<uint8_t>(((1u << count) - 1) << first);
    Granule& granule = granule_at(at);
    for (const Slot& old : granule) {
      if ((old.bytes & slot.bytes) == 0 || !conflict(old.kind, kind) || happens_before(old, thread)) continue;
      const std::string which =
          old.launch == thread.launch
              ? ""
              : fmt::format(" of {} launch", old.launch < thread.launch ? "an earlier" : "a later");
      *race += fmt::format(
          "a race: thread {} of block {} {} {} bytes at {:#x}{} ({}), which thread {} of block {}{} {} ({}), and "
          "nothing orders the two",
          thread.thread, thread.block, verb(kind), bytes, address, memory.offset_of(address), text_of(place),
          old.thread, old.block, which, verb(old.kind), text_of(old.place));
      return false;
    }
    remember(granule, slot, thread);
    at += count;
  }
  return true;
}

// What a fence released before a relaxed store, a fence acquires after a relaxed load of it.
void Races::atomic(ThreadClock& thread, uint64_t address, Access kind) {
  const auto found = words_.find(address);
  if (found != words_.end() && kind != Access::kAtomicWrite) {
    const Clock clock = found->second.clock();
    Clock& to = kind == Access::kAcquire ? thread.before : thread.observed;
    to = join(to, clock);
  }
  if (kind != Access::kAtomicWrite) return;
  SyncClock& word = words_[address];
  thread.observed = join(thread.observed, word.clock());
  word.add(thread.fenced);
}

void LaunchClocks::begin(const Kernel& kernel, const LaunchShape& shape, bool ahead) {
  finds_races_ = kernel.module->info().reports_accesses;
  early_ = shape.early;
  launch_ = races().begin(early_, ahead);
}

void LaunchClocks::end() {
  if (finds_races_) races().end(launch_);
}

void LaunchClocks::start(std::span<Thread* const> threads) const {
  if (!finds_races_) return;
  const Clock clock = races().start_of(launch_, early_);
  for (Thread* thread : threads) {
    const Block& block = *thread->owner;
    const emulated::Dim &at = block.block_index, &dim = block.grid_dim;
    const uint32_t number = at.x + dim.x * (at.y + dim.y * at.z);
    thread->clock = {launch_, number, thread->linear, static_cast<uint32_t>(block.threads.size()), 1, clock, {}, {}};
  }
}

void LaunchClocks::wait(ThreadClock& thread) const {
  if (finds_races_) thread.before = join(thread.before, races().start_of(launch_, false));
}

void LaunchClocks::release(ThreadClock& thread, SyncClock& to) const {
  if (!finds_races_) return;
  to.add(thread);
  ++thread.now;
}

void LaunchClocks::acquire(ThreadClock& thread, SyncClock& from) const {
  if (!finds_races_) return;
  thread.before = join(thread.before, from.clock());
  thread.fenced = join(thread.fenced, from.fenced());
  thread.observed = join(thread.observed, from.observed());
}

void LaunchClocks::fence(ThreadClock& thread) const {
  if (!finds_races_) return;
  thread.before = join(thread.before, thread.observed);
  SyncClock own;
  release(thread, own);
  thread.fenced = own.clock();
}

bool LaunchClocks::access(ThreadClock& thread, const Memory& memory, const MemoryAccess& access,
                          std::string* race) const {
  if (!finds_races_ || access.bytes == 0 || !memory.contains(access.address, 1)) return true;
  if (is_atomic(access.kind)) races().atomic(thread, access.address, access.kind);
  return races().access(thread, memory, access, race);
}

}  // namespace heddle::emulator
