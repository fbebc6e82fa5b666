#pragma once

#include <string>
#include <string_view>

#include "codegen/codegen.h"

namespace heddle::codegen {

inline constexpr std::string_view kEntry = "extern \"C\"";

// A kernel of a CPU but for its name.
struct CpuFunction {
  std::string comment;
  std::string body = {};
  KernelSource source = {};  // without its text; `symbol` is what the name begins with

  std::string text(std::string_view linkage, std::string_view name) const;
  // The name that the text yields.
  std::string symbol() const;
  // Under that name; where numbers have marks, with the prefix for a symbol and the stand-in in the text.
  KernelSource kernel(bool marked) const;
};

}  // namespace heddle::codegen
