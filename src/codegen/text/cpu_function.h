#pragma once

#include <string>
#include <string_view>

#include "codegen/codegen.h"

namespace heddle::codegen {

inline constexpr std::string_view kEntry = "extern \"C\"";

// A CPU kernel without its name.
struct CpuFunction {
  std::string comment;
  std::string body = {};
  KernelSource source = {};  // without its text; `symbol` is the prefix of the name

  std::string text(std::string_view linkage, std::string_view name) const;
  // The name that is derived from the text.
  std::string symbol() const;
  // The kernel under that name. If `marked`, its symbol is the prefix, and the text has the stand-in for the name.
  KernelSource kernel(bool marked) const;
};

}  // namespace heddle::codegen
