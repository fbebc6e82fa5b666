#include "lang/interpret/argument.h"

#include "base/check.h"
#include "lang/interpret/number.h"

namespace heddle::lang {

uint64_t argument_word(const Type& type, const Argument& argument) {
  if (type.pointer) return static_cast<uint64_t>(argument.integer);
  if (is_float(type.element)) return encode(type.element, {.f = round_float(type.element, argument.number)});
  return static_cast<uint64_t>(wrap_int(type.element, argument.integer));
}

std::vector<uint64_t> argument_words(const Kernel& kernel, std::span<const Argument> arguments) {
  if (arguments.size() != kernel.parameters.size()) {
    fail(ErrorCode::kInvalidArgument, "kernel @" + kernel.name,
         fmt::format("it has {} parameters, {} arguments are given", kernel.parameters.size(), arguments.size()));
  }
  std::vector<uint64_t> words;
  for (size_t i = 0; i < arguments.size(); ++i) {
    words.push_back(argument_word(kernel.type(kernel.parameters[i].value), arguments[i]));
  }
  return words;
}

}  // namespace heddle::lang
