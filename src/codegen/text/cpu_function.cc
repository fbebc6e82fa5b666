#include "codegen/text/cpu_function.h"

#include "codegen/text/kernel_name.h"
#include "codegen/text/writer.h"

namespace heddle::codegen {

std::string CpuFunction::text(std::string_view linkage, std::string_view name) const {
  return fmt::format("{}\n{} void {}(void* const* operands, void* scratch, int64_t begin, int64_t end) {{\n{}}}\n",
                     comment_of(comment), linkage, name, body);
}

std::string CpuFunction::symbol() const {
  return symbol_of(source.symbol, text(kEntry, kStandIn));
}

KernelSource CpuFunction::kernel(bool marked) const {
  KernelSource kernel = source;
  if (!marked) kernel.symbol = symbol();
  kernel.text = text(kEntry, marked ? kStandIn : kernel.symbol);
  return kernel;
}

}  // namespace heddle::codegen
