#pragma once

#include <cstdint>

namespace heddle::profile {

// NVTX, whose functions do nothing until a library takes them over: one that NVTX_INJECTION64_PATH names is loaded when
// a program first uses NVTX, and its InitializeInjectionNvtx2() is given the table of what can be taken over. Layouts
// and numbers as in NVTX 3 (nvtx3/nvtxDetail/nvtxTypes.h), which version 2 has as well. Each library of a process may
// have an NVTX of its own.
using NvtxExportTable = const void* (*)(uint32_t table);

// Takes over the ranges that threads push and pop (nvtx/ranges.h). False: this NVTX does not give its table.
bool take_over_nvtx(NvtxExportTable export_table);

}  // namespace heddle::profile
