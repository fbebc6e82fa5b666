#pragma once

#include <cstdint>

namespace heddle::profile {

// Functions of NVTX do nothing until a library takes them over. When a program first uses NVTX, the library that
// NVTX_INJECTION64_PATH names is loaded. Its InitializeInjectionNvtx2() gets a table of the functions that it may take
// over. Layouts and numbers are those of NVTX 3 (nvtx3/nvtxDetail/nvtxTypes.h) and also of version 2. Each library of a
// process may have its own NVTX.
using NvtxExportTable = const void* (*)(uint32_t table);

// Takes over the ranges that threads push and pop (nvtx/ranges.h). False: this NVTX does not give its table.
bool take_over_nvtx(NvtxExportTable export_table);

}  // namespace heddle::profile
