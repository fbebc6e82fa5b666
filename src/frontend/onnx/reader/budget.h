#pragma once

#include <cstdint>
#include <string>

#include "heddle/model.h"

namespace heddle::onnx {

// What one import may still take (ImportLimits). What would go beyond a limit throws kLimit, naming `where`, the limit
// and the option that raises it, before the work is done or the memory is taken.
class Budget {
 public:
  // Throws kInvalidArgument where a limit is none.
  explicit Budget(const ImportLimits& limits);

  void take_bytes(uint64_t bytes, const std::string& where);
  void check_nodes(uint64_t nodes, const std::string& where) const;
  void check_depth(int depth, const std::string& where) const;
  void check_time(const std::string& where) const;

  const ImportLimits& limits() const { return limits_; }

 private:
  ImportLimits limits_;
  uint64_t bytes_left_;
  double start_;
};

}  // namespace heddle::onnx
