#include "emulator/cupti/faults.h"

#include <cstdlib>
#include <sstream>
#include <string>

namespace heddle::emulator {

Faults Faults::now() {
  Faults faults;
  const char* text = std::getenv("HEDDLE_EMULATED_CUPTI");
  std::istringstream words(text == nullptr ? "" : text);
  for (std::string word; std::getline(words, word, ',');) {
    const size_t colon = word.find(':');
    const uint64_t number = colon == std::string::npos ? 1 : std::strtoull(word.c_str() + colon + 1, nullptr, 10);
    const std::string name = word.substr(0, colon);
    if (name == "held") faults.held = true;
    if (name == "denied") faults.denied = true;
    if (name == "old") faults.old = true;
    if (name == "late") faults.late = true;
    if (name == "nameless") faults.nameless = true;
    if (name == "cut") faults.cut = true;
    if (name == "lost") faults.lost = number;
    if (name == "zero") faults.zero = number;
    if (name == "unknown") faults.unknown = number;
  }
  return faults;
}

}  // namespace heddle::emulator
