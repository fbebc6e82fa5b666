#pragma once

#include <functional>
#include <string>

namespace heddle::cli {

// Runs `work` and returns its output on this thread (output.h) as plain text, instead of printing it.
std::string captured(const std::function<void()>& work);

// The string that collects this thread's output now; null: the output goes to stdout.
std::string* captive();

}  // namespace heddle::cli
