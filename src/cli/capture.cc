#include "cli/capture.h"

#include <memory>

namespace heddle::cli {
namespace {

thread_local std::string* text_of_thread = nullptr;

}  // namespace

std::string* captive() {
  return text_of_thread;
}

std::string captured(const std::function<void()>& work) {
  std::string text;
  const std::shared_ptr<void> restore(nullptr, [before = text_of_thread](const void*) { text_of_thread = before; });
  text_of_thread = &text;
  work();
  return text;
}

}  // namespace heddle::cli
