#pragma once

#include <string>
#include <string_view>

#include "codegen/codegen.h"

namespace heddle::codegen {

inline constexpr std::string_view kEntry = "extern \"C\"";

// The source of a CPU kernel except for its name, which is a hash of the text.
struct CpuFunction {
  std::string comment;
  std::string body = {};
  KernelSource source = {};  // `text` is unset; `symbol` is the prefix of the kernel's name

  std::string text(std::string_view linkage, std::string_view name) const;
  // The kernel's name, derived from the text.
  std::string symbol() const;
  // Returns the kernel with the name symbol(). If `marked`, the kernel's symbol is only the prefix instead, and the
  // text contains the placeholder kStandIn as the name.
  KernelSource kernel(bool marked) const;
};

}  // namespace heddle::codegen
