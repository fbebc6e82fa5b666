#pragma once

#include <array>
#include <cstdint>

namespace heddle::emulator {

struct Graph;

// One activity of the device or request of the host, as the stand-in for CUPTI records it (src/emulator/cupti).
struct Work {
  enum class Kind : uint8_t { kNone, kKernel, kCopy, kMemset, kSync, kAllocate, kFree };
  enum class Place : uint8_t { kPageable = 1, kPinned = 2, kDevice = 3 };  // numbers of CUPTI

  Kind kind = Kind::kNone;
  const char* name = "";  // of a kernel; lives as long as its module
  std::array<uint32_t, 3> grid = {}, block = {}, cluster = {};
  uint32_t shared_bytes = 0;
  uint64_t bytes = 0;
  Place from = Place::kDevice, to = Place::kDevice;  // of a copy
  uint32_t sync = 0;                                 // how the host waited, in CUPTI's numbers
  uint32_t correlation = 0, stream = 0;
  uint64_t graph_node = 0;  // in the executable graph
  bool early = false;       // it began before its predecessor had ended
};

// Callbacks of an observer. They run on the thread that calls the driver, except for `done`, which runs on the thread
// that does the work. The driver's lock is held, except for `enter` and `exit`.
struct Observer {
  uint32_t (*enter)(uint32_t call);  // `call`: CUPTI's number of the API call; returns the correlation of its work
  void (*exit)(uint32_t call, uint32_t correlation);
  void (*node_created)(const Graph& graph, uint64_t node);
  void (*executable_created)(const Graph& graph, const Graph& executable);
  void (*done)(const Work& work);
};

const Observer* observer();  // null: no observer

// One call of the driver API. Nested calls by the driver itself are not reported.
class ApiCall {
 public:
  explicit ApiCall(uint32_t call);
  ~ApiCall();
  ApiCall(const ApiCall&) = delete;
  ApiCall& operator=(const ApiCall&) = delete;
  // Correlation of the call in progress on this thread; 0 without an observer.
  static uint32_t correlation();

 private:
  const Observer* observer_ = nullptr;  // null: no observer, or within another call
  uint32_t call_;
};

}  // namespace heddle::emulator
