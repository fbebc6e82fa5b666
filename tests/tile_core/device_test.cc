// The headers that kernels share compile alone where a device compiler is: NVRTC in this process, nvcc as a command.
// Neither needs a GPU.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = HEDDLE_SOURCE_DIR;
constexpr std::array kArchitectures = {"sm_80", "sm_90a"};

std::vector<std::string> core_headers() {
  std::vector<std::string> headers;
  for (const auto& entry : fs::directory_iterator(kRoot / "tile/core")) {
    if (entry.path().extension() == ".h") headers.push_back("tile/core/" + entry.path().filename().string());
  }
  return headers;
}

// A kernel that walks along an im2col view, so that more than declarations is compiled.
std::string kernel() {
  return R"(
#include "tile/core/view.h"
using namespace heddle::tile;
template <typename C>
TILE_HD constexpr auto im2col(int n, int x, C c) {
  constexpr auto same = make_tuple(dims<0>{}, dims<1>{}, dims<2>{});
  const auto padded = transform(make_packed(n, x, c),
                                make_tuple(pass_through(), pad(fixed<1>(), fixed<1>()), pass_through()), same, same);
  const auto windows = transform(padded, make_tuple(pass_through(), embed(make_tuple(fixed<3>(), x),
                                 make_tuple(fixed<1>(), fixed<1>())), pass_through()), same,
                                 make_tuple(dims<0>{}, dims<2, 1>{}, dims<3>{}));
  return transform(windows, make_tuple(merge(), merge()), make_tuple(dims<0, 1>{}, dims<2, 3>{}),
                   make_tuple(dims<0>{}, dims<1>{}));
}
using View = decltype(im2col(1, 1, fixed<8>()));
static_assert(known_vector_length<1, View>(64) == 8);
extern "C" __global__ void sum_rows(float* out, const float* in, View view) {
  auto at = view.at(int(blockIdx.x), int(threadIdx.x));
  float sum = 0;
  for (int i = 0; i < 24; i += 8, at.move_along<1>(fixed<8>())) sum += at.is_valid() ? in[at.offset()] : 0.f;
  out[blockIdx.x * 8 + threadIdx.x] = sum;
}
)";
}

// The part of NVRTC's interface that compiling takes.
class Nvrtc {
 public:
  Nvrtc() {
    for (const char* name : {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"}) {
      if ((library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL)) != nullptr) break;
    }
  }
  bool found() const { return library_ != nullptr; }
  // The log of a compilation that failed, else nothing. With `prepared`, standard headers and unmarked functions are
  // taken as the JIT arranges it; without, NVRTC is as it comes.
  std::string compile(const std::string& source, const char* architecture, bool prepared) const {
    using Program = void*;
    const auto create = function<int(Program*, const char*, const char*, int, const char* const*, const char* const*)>(
        "nvrtcCreateProgram");
    const auto compile = function<int(Program, int, const char* const*)>("nvrtcCompileProgram");
    const auto log_size = function<int(Program, size_t*)>("nvrtcGetProgramLogSize");
    const auto get_log = function<int(Program, char*)>("nvrtcGetProgramLog");
    const auto destroy = function<int(Program*)>("nvrtcDestroyProgram");
    const std::string arch = std::string("-arch=") + architecture, include = "-I" + kRoot.string();
    const std::array options = {"-std=c++20", arch.c_str(), include.c_str(), "-default-device"};
    const std::array names = {"stdint.h", "stddef.h"};
    const std::array texts = {
        "#pragma once\n"
        "typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;\n"
        "typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned uint32_t;\n"
        "typedef unsigned long uint64_t;\n",
        "#pragma once\n"};
    Program program = nullptr;
    if (create(&program, source.c_str(), "unit.cu", prepared ? 2 : 0, texts.data(), names.data()) != 0)
      return "no program";
    std::string log;
    if (compile(program, prepared ? 4 : 3, options.data()) != 0) {
      size_t size = 0;
      log_size(program, &size);
      log.resize(size);
      get_log(program, log.data());
      if (log.empty()) log = "failed without a log";
    }
    destroy(&program);
    return log;
  }

 private:
  template <typename F>
  F* function(const char* name) const {
    return reinterpret_cast<F*>(dlsym(library_, name));
  }
  void* library_ = nullptr;  // stays loaded: NVRTC keeps threads
};

TEST(DeviceCompilers, NvrtcTakesEachCoreHeaderAlone) {
  const Nvrtc nvrtc;
  if (!nvrtc.found()) GTEST_SKIP() << "no NVRTC on this machine";
  for (const std::string& header : core_headers()) {
    for (const char* architecture : kArchitectures) {
      EXPECT_EQ(nvrtc.compile("#include \"" + header + "\"\n", architecture, true), "")
          << header << " " << architecture;
    }
  }
  for (const char* architecture : kArchitectures) {
    EXPECT_EQ(nvrtc.compile(kernel(), architecture, true), "") << architecture;
    EXPECT_EQ(nvrtc.compile(kernel(), architecture, false), "") << architecture;
  }
}

TEST(DeviceCompilers, NvccTakesTheCoreHeaders) {
  const char* home = std::getenv("CUDA_HOME");
  const fs::path nvcc = fs::path(home != nullptr ? home : "/usr/local/cuda") / "bin/nvcc";
  if (!fs::exists(nvcc)) GTEST_SKIP() << "no nvcc on this machine";
  // One unit for all: where one header needs another, the compilation of each alone by NVRTC and the host shows it.
  const fs::path folder = fs::path(::testing::TempDir()) / ("tile_core_nvcc_" + std::to_string(getpid()));
  fs::create_directories(folder);
  std::ofstream unit(folder / "unit.cu");
  for (const std::string& header : core_headers()) unit << "#include \"" << header << "\"\n";
  unit << kernel();
  unit.close();
  for (const char* architecture : kArchitectures) {
    const std::string command = nvcc.string() + " -std=c++20 -arch=" + architecture + " --cubin -I" + kRoot.string() +
                                " -o " + (folder / "unit.cubin").string() + " " + (folder / "unit.cu").string();
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
  fs::remove_all(folder);
}

}  // namespace
