#include "lang/interpret/argument.h"

#include "base/check.h"
#include "lang/interpret/number.h"

namespace heddle::lang {

std::vector<uint64_t> argument_words(const Kernel& kernel, std::span<const Argument> arguments) {
  if (arguments.size() != kernel.parameters.size()) {
    fail(ErrorCode::kInvalidArgument, "kernel @" + kernel.name,
         fmt::format("it has {} parameters, {} arguments are given", kernel.parameters.size(), arguments.size()));
  }
  std::vector<uint64_t> words;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Type& type = kernel.type(kernel.parameters[i].value);
    if (type.pointer) {
      words.push_back(static_cast<uint64_t>(arguments[i].integer));
    } else if (is_float(type.element)) {
      words.push_back(encode(type.element, {.f = round_float(type.element, arguments[i].number)}));
    } else {
      words.push_back(static_cast<uint64_t>(wrap_int(type.element, arguments[i].integer)));
    }
  }
  return words;
}

}  // namespace heddle::lang
