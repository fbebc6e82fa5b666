#pragma once

#include <cstdint>
#include <string>

namespace heddle::emulator {

// Settings of the emulated device from the environment. They are read again at every use, so a test may change them.
struct Settings {
  int sm;                 // HEDDLE_EMULATED_SM: 90 or 80
  std::string gfx;        // HEDDLE_EMULATED_GFX: architecture of the AMD GPU that HIP's functions find
  int sms;                // HEDDLE_EMULATED_SMS: number of SMs
  uint64_t memory_bytes;  // HEDDLE_EMULATED_MEMORY: device memory in bytes
  uint64_t seed;          // HEDDLE_EMULATOR_SEED: seed of the order in which threads run
  // HEDDLE_EMULATED_FAULT: "" (no fault), "no_device", "old_driver" (CUDA 11.8), "init" (cuInit fails), "lost" (every
  // launch loses the device) or "lost:N" (only launch number N, counted from 0, loses the device).
  std::string fault;

  int64_t shared_bytes_per_block() const { return (sm >= 90 ? 227 : 163) << 10; }
  int64_t shared_bytes_per_sm() const { return (sm >= 90 ? 228 : 164) << 10; }
  int64_t l2_bytes() const { return static_cast<int64_t>(sm >= 90 ? 60 : 40) << 20; }

  static Settings now();
};

}  // namespace heddle::emulator
