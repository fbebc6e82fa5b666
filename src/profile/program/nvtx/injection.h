#pragma once

#include <cstdint>

namespace heddle::profile {

// NVTX functions do nothing until a library replaces them. When a program first uses NVTX, NVTX loads the library that
// NVTX_INJECTION64_PATH names and calls the library's InitializeInjectionNvtx2() with a table of the replaceable
// functions. The layouts and numbers used here are those of NVTX 3 (nvtx3/nvtxDetail/nvtxTypes.h), which also hold for
// version 2. Each library of a process may contain its own copy of NVTX.
using NvtxExportTable = const void* (*)(uint32_t table);

// Replaces the NVTX functions with which threads push and pop ranges (nvtx/ranges.h). Returns false if this copy of
// NVTX does not provide its table.
bool take_over_nvtx(NvtxExportTable export_table);

}  // namespace heddle::profile
