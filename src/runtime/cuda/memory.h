#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/cuda/code.h"

namespace heddle::runtime {

// The device memory for the values of one run.
class CudaMemory {
 public:
  explicit CudaMemory(CudaCode& code) : code_(code) {}
  virtual ~CudaMemory() = default;
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  CudaCode& code() const { return code_; }
  virtual uint64_t arena() const = 0;
  virtual uint64_t counters() const = 0;
  virtual uint64_t input(size_t port) = 0;
  virtual uint64_t output(size_t port) = 0;
  virtual uint64_t extra(size_t bytes) = 0;  // for loop state; lives as long as this object

 private:
  CudaCode& code_;
};

// Memory that this object owns.
class CudaRunMemory : public CudaMemory {
 public:
  CudaRunMemory(CudaCode& code, const Plan& plan);

  uint64_t arena() const override { return arena_.address(); }
  uint64_t counters() const override { return counters_.address(); }
  uint64_t input(size_t port) override;   // allocated on first use
  uint64_t output(size_t port) override;  // the same
  uint64_t extra(size_t bytes) override;
  bool has_input(size_t port) const { return inputs_[port] != nullptr; }
  size_t bytes() const;  // in total

 private:
  const Plan& plan_;
  CudaBuffer arena_, counters_;
  std::vector<std::unique_ptr<CudaBuffer>> inputs_, outputs_, extras_;
};

// The caller's memory: inputs, outputs and a workspace, from which everything else that a run needs is taken in
// sequence.
class CudaCallersMemory : public CudaMemory {
 public:
  static constexpr uint64_t kAlignment = 256;  // of the workspace and of each piece of it

  // `addresses`: of the inputs, then of the outputs, then of the workspace. This class does not access them; the
  // programs bound to it do.
  CudaCallersMemory(CudaCode& code, const Plan& plan, std::span<const uint64_t> addresses);

  uint64_t arena() const override { return workspace_; }
  uint64_t counters() const override { return counters_; }
  uint64_t input(size_t port) override { return addresses_[port]; }
  uint64_t output(size_t port) override { return addresses_[inputs_ + port]; }
  uint64_t extra(size_t bytes) override { return take(bytes); }
  size_t workspace_bytes() const { return end_ - workspace_; }  // so far

 private:
  uint64_t take(size_t bytes);

  std::span<const uint64_t> addresses_;
  size_t inputs_;
  uint64_t workspace_, end_, counters_ = 0;
};

}  // namespace heddle::runtime
