#pragma once

#include <cstdint>
#include <string>

#include "heddle/model.h"

namespace heddle::onnx {

// The remaining resources of one import (ImportLimits). A call that would exceed a limit throws kLimit, before the work
// is done or the memory is allocated. The message contains `where`, the limit, and the option that raises the limit.
class Budget {
 public:
  // Throws kInvalidArgument if a limit is not valid.
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
