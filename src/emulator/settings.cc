#include "emulator/settings.h"

#include <algorithm>
#include <cstdlib>

namespace heddle::emulator {
namespace {

uint64_t number(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return fallback;
  char* end = nullptr;
  const uint64_t value = std::strtoull(text, &end, 10);
  return end == text ? fallback : value;
}

}  // namespace

Settings Settings::now() {
  Settings s;
  s.sm = number("HEDDLE_EMULATED_SM", 90) == 80 ? 80 : 90;
  const char* gfx = std::getenv("HEDDLE_EMULATED_GFX");
  s.gfx = gfx == nullptr || *gfx == '\0' ? "gfx942" : gfx;
  s.sms = static_cast<int>(std::clamp<uint64_t>(number("HEDDLE_EMULATED_SMS", s.sm == 90 ? 132 : 108), 1, 4096));
  s.memory_bytes = number("HEDDLE_EMULATED_MEMORY", uint64_t{16} << 30);
  s.seed = number("HEDDLE_EMULATOR_SEED", 1);
  const char* fault = std::getenv("HEDDLE_EMULATED_FAULT");
  s.fault = fault == nullptr ? "" : fault;
  return s;
}

}  // namespace heddle::emulator
