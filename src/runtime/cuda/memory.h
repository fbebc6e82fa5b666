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
  virtual uint64_t extra(size_t bytes) = 0;  // allocates loop state, which lives as long as this object

 private:
  CudaCode& code_;
};

// Device memory for a run, allocated and owned by this object.
class CudaRunMemory : public CudaMemory {
 public:
  CudaRunMemory(CudaCode& code, const Plan& plan);

  uint64_t arena() const override { return arena_.address(); }
  uint64_t counters() const override { return counters_.address(); }
  uint64_t input(size_t port) override;   // allocated on first use
  uint64_t output(size_t port) override;  // allocated on first use
  uint64_t extra(size_t bytes) override;
  bool has_input(size_t port) const { return inputs_[port] != nullptr; }
  size_t bytes() const;  // total size of the allocated buffers

 private:
  const Plan& plan_;
  CudaBuffer arena_, counters_;
  std::vector<std::unique_ptr<CudaBuffer>> inputs_, outputs_, extras_;
};

// Device memory that the caller owns: inputs, outputs and a workspace. All other memory of a run is allocated from the
// workspace, one piece after another.
class CudaCallersMemory : public CudaMemory {
 public:
  static constexpr uint64_t kAlignment = 256;  // alignment of the workspace and of each piece in it

  // `addresses`: the addresses of the inputs, followed by those of the outputs and that of the workspace. This class
  // does not access the memory at these addresses; the programs that use this object do.
  CudaCallersMemory(CudaCode& code, const Plan& plan, std::span<const uint64_t> addresses);

  uint64_t arena() const override { return workspace_; }
  uint64_t counters() const override { return counters_; }
  uint64_t input(size_t port) override { return addresses_[port]; }
  uint64_t output(size_t port) override { return addresses_[inputs_ + port]; }
  uint64_t extra(size_t bytes) override { return take(bytes); }
  size_t workspace_bytes() const { return end_ - workspace_; }  // bytes allocated so far

 private:
  uint64_t take(size_t bytes);

  std::span<const uint64_t> addresses_;
  size_t inputs_;
  uint64_t workspace_, end_, counters_ = 0;
};

}  // namespace heddle::runtime
