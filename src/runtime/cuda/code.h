#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/cuda/constants.h"
#include "runtime/cuda/device.h"
#include "runtime/interpreter.h"
#include "runtime/plan.h"

namespace heddle::runtime {

// Device memory with inputs for the bodies of loops: the iteration numbers 0, 1, ... as i64, and a byte with the value
// 1 (the condition "true"). The memory is written once and then never changed.
class CudaNumbers {
 public:
  static constexpr int64_t kMost = 4096;

  explicit CudaNumbers(const CudaContext& context);
  uint64_t device(int64_t number) const;  // `number` must be below kMost
  const int64_t* host(int64_t number) const { return host_.data() + kApart * number; }
  uint64_t one() const;
  size_t bytes() const { return host_.size() * sizeof(int64_t); }

 private:
  static constexpr int64_t kApart = 2;  // distance between numbers: 16 bytes, the alignment that kernels may assume

  std::vector<int64_t> host_;
  std::unique_ptr<CudaBuffer> memory_;
};

// The data that all runs of a plan share on a GPU: loaded kernels, parsed reference steps, and constants. The constants
// are copied to the device when the first run state needs them, unless another plan has already copied them.
// Thread-safe.
class CudaCode {
 public:
  // Loads the kernels of the plan and of its bodies. Throws kDamagedArtefact if a kernel is missing, and kDevice.
  CudaCode(std::shared_ptr<const CudaContext> context, const Plan& plan, const Interpreter* interpreter);

  const CudaContext& context() const { return *context_; }
  CudaDriver::Handle function(const std::string& symbol) const { return functions_.at(symbol); }
  const void* prepared(const ReferenceStep& step) const { return prepared_.at(&step).get(); }
  int64_t counter_bytes() const { return counter_bytes_; }

  // The address of a constant on the device.
  uint64_t constant(const Tensor& tensor);
  // Created on first use.
  const CudaNumbers& numbers();
  // The bytes that all constants and iteration numbers occupy on the device so far, including those that other plans
  // share.
  size_t constant_bytes() const;

 private:
  // The largest requirements of any launch of one kernel.
  struct Needs {
    uint32_t shared_bytes = 0, cluster = 1;
  };
  void collect(const Plan& plan, const Interpreter* interpreter, std::map<std::string, Needs>& needs);

  std::shared_ptr<const CudaContext> context_;
  std::vector<std::unique_ptr<CudaModule>> modules_;
  std::unordered_map<std::string, CudaDriver::Handle> functions_;
  std::unordered_map<const ReferenceStep*, std::shared_ptr<const void>> prepared_;
  int64_t counter_bytes_ = 0;

  const std::shared_ptr<CudaConstants> constants_;
  mutable std::mutex mutex_;
  std::set<std::shared_ptr<const CudaConstants::Chunk>> chunks_;
  std::unique_ptr<const CudaNumbers> numbers_;
};

}  // namespace heddle::runtime
