#pragma once

#include <functional>
#include <string>

namespace heddle::cli {

// What `work` prints on this thread (output.h), instead of printing it: plain text.
std::string captured(const std::function<void()>& work);

// Where that goes now; null: to stdout.
std::string* captive();

}  // namespace heddle::cli
