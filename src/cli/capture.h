#pragma once

#include <functional>
#include <string>

namespace heddle::cli {

// Runs `work` and returns as plain text what it prints on this thread (output.h). Nothing is written to stdout.
std::string captured(const std::function<void()>& work);

// The string that currently captures this thread's output, or null if the output goes to stdout.
std::string* captive();

}  // namespace heddle::cli
