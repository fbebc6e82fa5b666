#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <string>

#include "base/file/file.h"
#include "jit/compiler.h"
#include "jit/library.h"

namespace heddle::jit {

// Sets a variable of the environment for the life of the object.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (old_) {
      ::setenv(name_, old_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

class Jit : public testing::Test {
 protected:
  TempDir dir_;
  Variable cache_{"HEDDLE_CACHE_DIR", dir_.path() + "/cache"};
  CpuTarget target_ = Target::host_cpu(2).cpu;
};

inline std::string unit(const std::string& symbol, int factor) {
  return "#include <stdint.h>\nextern \"C\" void " + symbol +
         "(void* const* operands, void*, int64_t begin, int64_t end) {\n"
         "  auto* x = static_cast<float*>(operands[0]);\n"
         "  for (int64_t i = begin; i < end; ++i) x[i] *= " +
         std::to_string(factor) + ";\n}\n";
}

inline float call(const CompiledLibrary& library, const std::string& symbol) {
  const auto loaded = Library::load(library.bytes);
  std::array<float, 3> data = {1, 1, 1};
  void* operands[] = {data.data()};
  loaded->find(symbol)(operands, nullptr, 1, 3);
  EXPECT_EQ(data[0], 1);
  EXPECT_EQ(data[1], data[2]);
  return data[1];
}

}  // namespace heddle::jit
