#include "profile/program/nvtx/ranges.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace heddle::profile {
namespace {

struct Hash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
template <typename T>
using ByText = std::unordered_map<std::string, T, Hash, std::equal_to<>>;

std::atomic<uint64_t> pushed = 0;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// "step 12 of 30" -> "step # of #".
std::string without_numbers(std::string_view text) {
  std::string stem;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!is_digit(text[i])) {
      stem += text[i];
    } else if (i == 0 || !is_digit(text[i - 1])) {
      stem += '#';
    }
  }
  return stem;
}

// All names of the process, by number. Never destroyed: threads may still push when it ends.
class Names {
 public:
  static Names& get() {
    static auto* one = new Names;
    return *one;
  }
  uint32_t number_of(std::string_view text) {
    constexpr int kMostOfAStem = 32;
    constexpr size_t kMost = 1 << 16;
    const std::lock_guard lock(mutex_);
    const auto known = numbers_.find(text);
    if (known != numbers_.end()) return known->second;
    std::string name = "(other ranges)";
    if (names_.size() < kMost) {
      const std::string stem = without_numbers(text);
      name = stem != text && ++of_stem_[stem] > kMostOfAStem ? stem : std::string(text);
    }
    const auto [found, is_new] = numbers_.try_emplace(name, static_cast<uint32_t>(names_.size()));
    if (is_new) names_.push_back(name);
    return found->second;
  }
  std::string name_of(uint32_t number) {
    const std::lock_guard lock(mutex_);
    return number < names_.size() ? names_[number] : "";
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> names_;
  ByText<uint32_t> numbers_;
  ByText<int> of_stem_;
};

struct ThreadRanges {
  std::vector<Range> stack;
  ByText<uint32_t> numbers;  // that the thread met
};

// Null while the thread ends: destructors may push and pop.
ThreadRanges* of_thread() {
  static thread_local bool gone = false;
  struct Owner {
    ThreadRanges ranges;
    ~Owner() { gone = true; }
  };
  static thread_local Owner owner;
  return gone ? nullptr : &owner.ranges;
}

void set_paths(std::vector<Range>& stack, size_t from) {
  for (size_t i = from; i < stack.size(); ++i) {
    const uint64_t above = i == 0 ? 0 : stack[i - 1].path;
    stack[i].path = (above ^ (stack[i].name + 1)) * 0x9E3779B97F4A7C15u;
    stack[i].path ^= stack[i].path >> 32;
  }
}

// What ", seq = 7" says.
int64_t sequence_of(std::string_view text, size_t at) {
  constexpr std::string_view kSequence = ", seq = ";
  if (text.substr(at, kSequence.size()) != kSequence) return -1;
  int64_t value = -1;
  std::from_chars(text.data() + at + kSequence.size(), text.data() + text.size(), value);
  return value;
}

}  // namespace

int push_range(std::string_view text, const void* domain) {
  constexpr size_t kMostNumbers = 4096;
  ThreadRanges* const thread = of_thread();
  if (thread == nullptr) return 0;
  pushed.fetch_add(1, std::memory_order_relaxed);
  Range range;
  const size_t end = std::min({text.find(", seq = "), text.find(", op_id = "), text.size()});
  range.is_operator = end != text.size() || text.starts_with("aten::") || text.starts_with("autograd::");
  range.is_engine = text.starts_with("autograd::engine::");
  range.sequence = sequence_of(text, end);
  range.domain = domain;
  const std::string_view name = text.substr(0, end);
  const auto known = thread->numbers.find(name);
  if (known != thread->numbers.end()) {
    range.name = known->second;
  } else {
    range.name = Names::get().number_of(name);
    if (thread->numbers.size() < kMostNumbers) thread->numbers.emplace(name, range.name);
  }
  if (!thread->stack.empty()) {
    Range& outer = thread->stack.back();
    if (outer.is_engine && outer.sequence < 0) outer.sequence = range.sequence;
  }
  thread->stack.push_back(range);
  set_paths(thread->stack, thread->stack.size() - 1);
  return static_cast<int>(thread->stack.size()) - 1;
}

int pop_range(const void* domain) {
  ThreadRanges* const thread = of_thread();
  if (thread == nullptr) return -1;
  std::vector<Range>& stack = thread->stack;
  const auto found = std::find_if(stack.rbegin(), stack.rend(), [&](const Range& r) { return r.domain == domain; });
  if (found == stack.rend()) return -1;
  const auto erased = stack.erase(std::next(found).base());
  set_paths(stack, static_cast<size_t>(erased - stack.begin()));  // ranges of another domain may stay within it
  return static_cast<int>(stack.size());
}

std::span<const Range> ranges_of_thread() {
  const ThreadRanges* const thread = of_thread();
  return thread == nullptr ? std::span<const Range>() : std::span<const Range>(thread->stack);
}

std::string range_name(uint32_t name) {
  return Names::get().name_of(name);
}

uint64_t ranges_pushed() {
  return pushed.load(std::memory_order_relaxed);
}

}  // namespace heddle::profile
