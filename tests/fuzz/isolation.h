#pragma once

#include <functional>
#include <string>

namespace heddle::fuzz {

// Runs `work` in a child process and returns what killed it ("" if nothing did): "crash: signal 11 (...)",
// "hang: ..." after `seconds`. The child sends lines to the parent by calling its argument; `line` receives them.
std::string run_isolated(const std::function<void(const std::function<void(const std::string&)>& send)>& work,
                         const std::function<void(const std::string&)>& line, int seconds);

}  // namespace heddle::fuzz
