#include "driver/compile/kernel_file.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "driver/target/backend.h"

namespace heddle::driver {
namespace {

constexpr std::string_view kBegin = "// Heddle kernel ", kThen = ", written as ";

std::string first_line(std::string_view symbol, std::string_view rest) {
  return fmt::format("{}{}{}{}\n", kBegin, symbol, kThen, hash_text(rest).hex().substr(0, 16));
}

}  // namespace

std::string kernel_file_name(const std::string& symbol, const Target& target) {
  return symbol + std::string(backend_of(target).text_suffix());
}

std::string kernel_file(const codegen::KernelText& kernel, const std::string& comment) {
  const std::string rest = comment + codegen::join_texts({&kernel});
  return first_line(kernel.symbol, rest) + rest;
}

bool is_unedited(std::string_view file) {
  const size_t end = file.find('\n'), then = file.find(kThen);
  if (!file.starts_with(kBegin) || end == std::string_view::npos || then >= end) return false;
  return file.substr(0, end + 1) == first_line(file.substr(kBegin.size(), then - kBegin.size()), file.substr(end + 1));
}

}  // namespace heddle::driver
