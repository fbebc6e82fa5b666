#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heddle::jit {

// What the metadata of a code object says about a kernel.
struct HipKernel {
  std::string name;
  int vector_registers = 0, scalar_registers = 0;
  int spilled = 0;                       // vector registers of a thread that are kept in memory
  int lds_bytes = 0, private_bytes = 0;  // static LDS of a block; memory of a thread
};

// Reads the kernels from the note "AMDGPU" of a code object. Throws kDamagedArtefact if `bytes` is none.
std::vector<HipKernel> kernels_of(std::string_view bytes);

// Returns a log of a code object in the form of ptxas, with a line for each kernel that spills, as spilling_kernels()
// and spilled_bytes() (jit/cuda/nvrtc.h) read it.
std::string resource_log(const std::vector<HipKernel>& kernels);

}  // namespace heddle::jit
