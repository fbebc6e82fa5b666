#pragma once

#include <string>

#include "lang/ir/kernel.h"

namespace heddle::lang {

// The text form of a kernel. parse(print(k)) equals k, except that unnamed values get names.
std::string print(const Kernel& kernel);

// The text of a constant of this type: "-1", "0x1.8p-3", "inf".
std::string print_number(const Attribute& value, const Type& type);

}  // namespace heddle::lang
