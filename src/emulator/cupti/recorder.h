#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "emulator/cupti/faults.h"
#include "emulator/cupti/records.h"

namespace heddle::emulator {

using Callback = void (*)(void* user, int domain, uint32_t id, const void* data);
using BufferRequested = void (*)(uint8_t** buffer, size_t* bytes, size_t* most_records);
using BufferCompleted = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t bytes, size_t valid);

// Stores the settings of a CUPTI client, and the client's records until they are delivered. Holds no lock while it
// calls the client.
class Recorder {
 public:
  static Recorder& get();

  // Returns false if another client has already subscribed.
  bool subscribe(Callback callback, void* user, const Faults& faults);
  void unsubscribe();
  void enable_callback(bool enable, int domain, uint32_t id);
  void enable_activity(bool enable, uint32_t kind);
  void set_buffers(BufferRequested requested, BufferCompleted completed);
  void flush(bool forced);
  uint64_t take_dropped();
  Faults faults() const;

  // The emulated driver reports API calls with call_back(), and finished work with done().
  void call_back(int domain, uint32_t id, const void* data);
  void done(const Work& work);

 private:
  struct Buffer {
    uint8_t* memory = nullptr;
    size_t bytes = 0, valid = 0;
  };
  Times times_of(const Work& work);
  void append(const std::vector<uint8_t>& record);
  void deliver(const Buffer& buffer);

  mutable std::mutex mutex_;
  Callback callback_ = nullptr;
  void* user_ = nullptr;
  Faults faults_;
  std::set<std::pair<int, uint32_t>> callbacks_;
  std::set<uint32_t> activities_;
  std::set<std::string> names_;  // the kernel names that records point to
  BufferRequested requested_ = nullptr;
  BufferCompleted completed_ = nullptr;
  Buffer filling_;
  std::vector<Buffer> full_;
  uint64_t dropped_ = 0, records_ = 0;
  uint64_t clock_ = 0;                // the device's clock
  std::map<uint32_t, Times> latest_;  // by stream: the times of the latest work
};

}  // namespace heddle::emulator
