#pragma once

#include <array>
#include <cstdint>

namespace heddle::emulator {

struct Graph;

// One activity of the device or one request of the host, as recorded by the CUPTI stand-in (src/emulator/cupti).
struct Work {
  enum class Kind : uint8_t { kNone, kKernel, kCopy, kMemset, kSync, kAllocate, kFree };
  enum class Place : uint8_t { kPageable = 1, kPinned = 2, kDevice = 3 };  // CUPTI's numbers

  Kind kind = Kind::kNone;
  const char* name = "";  // kernel name; valid as long as the kernel's module
  std::array<uint32_t, 3> grid = {}, block = {}, cluster = {};
  uint32_t shared_bytes = 0;
  uint64_t bytes = 0;
  Place from = Place::kDevice, to = Place::kDevice;  // of a copy
  uint32_t sync = 0;                                 // how the host synchronised, as CUPTI's number
  uint32_t correlation = 0, stream = 0;
  uint64_t graph_node = 0;  // the node's number in the executable graph
  bool early = false;       // the operation began before its predecessor ended
};

// Callbacks of an observer. `done` runs on the thread that performs the work; the other callbacks run on the thread
// that calls the driver. The driver holds its lock during all callbacks except `enter` and `exit`.
struct Observer {
  uint32_t (*enter)(uint32_t call);  // `call`: CUPTI's number of the API call; returns the correlation ID of its work
  void (*exit)(uint32_t call, uint32_t correlation);
  void (*node_created)(const Graph& graph, uint64_t node);
  void (*executable_created)(const Graph& graph, const Graph& executable);
  void (*done)(const Work& work);
};

const Observer* observer();  // null if there is none

// Reports one call of the driver API to the observer. API calls that the driver makes during this call are not
// reported.
class ApiCall {
 public:
  explicit ApiCall(uint32_t call);
  ~ApiCall();
  ApiCall(const ApiCall&) = delete;
  ApiCall& operator=(const ApiCall&) = delete;
  // The correlation ID of the API call in progress on this thread; 0 without an observer.
  static uint32_t correlation();

 private:
  const Observer* observer_ = nullptr;  // null if there is none or if this call is nested in another API call
  uint32_t call_;
};

}  // namespace heddle::emulator
