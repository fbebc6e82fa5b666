#pragma once

#include <string>

#include "lang/ir/kernel.h"

namespace heddle::lang {

// The text form. parse(print(k)) equals k, except that unnamed values get names.
std::string print(const Kernel& kernel);

// The value of a constant as text for `type`: "-1", "0x1.8p-3", "inf".
std::string print_number(const Attribute& value, const Type& type);

}  // namespace heddle::lang
