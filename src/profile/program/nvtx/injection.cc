#include "profile/program/nvtx/injection.h"

#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>

#include "profile/program/nvtx/ranges.h"

namespace heddle::profile {
namespace {

using Function = void (*)();

struct Callbacks {
  size_t bytes;
  // Pointers to the variables that have the functions of a module, by their number, and how many there are.
  int (*functions)(uint32_t module, Function*** table, uint32_t* count);
};
constexpr uint32_t kCallbacksTable = 1, kCore = 1, kCore2 = 5;

struct Attributes {
  uint16_t version, bytes;
  uint32_t category;
  int32_t colour_type;
  uint32_t colour;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;  // 1: ASCII, 2: wide, 3: registered
  union {
    const char* ascii;
    const wchar_t* wide;
    const std::string* registered;
  } message;
};
static_assert(offsetof(Attributes, message_type) == 32 && offsetof(Attributes, message) == 40);

std::string narrow(const wchar_t* text) {
  std::string result;
  for (; text != nullptr && *text != 0; ++text) result += *text < 128 ? static_cast<char>(*text) : '?';
  return result;
}

int push(const void* domain, const Attributes* attributes) {
  if (attributes == nullptr) return push_range("", domain);
  switch (attributes->message_type) {
    case 1:
      return push_range(attributes->message.ascii == nullptr ? "" : attributes->message.ascii, domain);
    case 2:
      return push_range(narrow(attributes->message.wide), domain);
    case 3:
      return push_range(attributes->message.registered == nullptr ? "" : *attributes->message.registered, domain);
    default:
      return push_range("", domain);
  }
}

int push_ascii(const char* text) {
  return push_range(text == nullptr ? "" : text);
}
int push_wide(const wchar_t* text) {
  return push_range(narrow(text));
}
int push_attributes(const Attributes* attributes) {
  return push(nullptr, attributes);
}
int pop() {
  return pop_range();
}
int pop_of_domain(const void* domain) {
  return pop_range(domain);
}

// Handles of strings and domains, which are never given back.
const std::string* keep(std::string text) {
  static auto* mutex = new std::mutex;
  static auto* kept = new std::deque<std::string>;
  const std::lock_guard lock(*mutex);
  return &kept->emplace_back(std::move(text));
}
const std::string* register_ascii(const void* /*domain*/, const char* text) {
  return keep(text == nullptr ? "" : text);
}
const std::string* register_wide(const void* /*domain*/, const wchar_t* text) {
  return keep(narrow(text));
}
const std::string* create_domain(const char* name) {
  return keep(name == nullptr ? "" : name);
}
const std::string* create_wide_domain(const wchar_t* name) {
  return keep(narrow(name));
}

class Module {
 public:
  Module(const Callbacks& callbacks, uint32_t module) {
    if (callbacks.functions(module, &table_, &count_) == 0) count_ = 0;
  }
  template <typename F>
  void set(uint32_t number, F* function) {
    if (number < count_ && table_[number] != nullptr) *table_[number] = reinterpret_cast<Function>(function);
  }
  bool is_there() const { return count_ != 0; }

 private:
  Function** table_ = nullptr;
  uint32_t count_ = 0;
};

}  // namespace

bool take_over_nvtx(NvtxExportTable export_table) {
  if (export_table == nullptr) return false;
  const auto* callbacks = static_cast<const Callbacks*>(export_table(kCallbacksTable));
  if (callbacks == nullptr || callbacks->bytes < sizeof(Callbacks) || callbacks->functions == nullptr) return false;
  Module core(*callbacks, kCore), core2(*callbacks, kCore2);
  core.set(8, push_attributes);
  core.set(9, push_ascii);
  core.set(10, push_wide);
  core.set(11, pop);
  core2.set(4, push);
  core2.set(5, pop_of_domain);
  core2.set(10, register_ascii);
  core2.set(11, register_wide);
  core2.set(12, create_domain);
  core2.set(13, create_wide_domain);
  return core.is_there();
}

}  // namespace heddle::profile
