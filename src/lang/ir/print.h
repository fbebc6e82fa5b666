#pragma once

#include <string>

#include "lang/ir/kernel.h"

namespace heddle::lang {

// The text form of a kernel. parse(print(k)) equals k, except that unnamed values get names.
std::string print(const Kernel& kernel);

}  // namespace heddle::lang
