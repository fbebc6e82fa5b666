#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "emulator/driver/module.h"
#include "emulator/driver/observer.h"
#include "emulator/memory.h"
#include "emulator/scheduler.h"
#include "emulator/settings.h"

#define HEDDLE_EXPORT extern "C" __attribute__((visibility("default")))

namespace heddle::emulator {

// Results of the driver's interface, with its numbers.
enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialised = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kOutOfResources = 701,
  kLaunchFailed = 719,
  kCooperativeTooLarge = 720,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kUnknown = 999,
};

// What a stream or a graph does in order.
struct Operation {
  std::function<Result()> run;
  // Of a launch: runs it, or what is left of it if it has begun. `run` is empty then.
  std::function<Result(bool begun)> launch;
  // Of a launch that may begin before the one in front has ended: begins it, so that this one is run before it goes on.
  std::function<void()> begin;
  Work work = {};
};

struct Graph {
  uint32_t id = 0;
  std::vector<Operation> operations;

  uint64_t node(size_t operation) const { return uint64_t{id} << 32 | (operation + 1); }
};

// Operations run when somebody waits for them, or some time before: what the host reads or frees too early shows.
struct Stream {
  std::shared_ptr<Graph> capture;  // null: it does not capture
  bool blocking = false;           // waits for, and is waited for by, the default stream
  bool draining = false;
  uint32_t number = 0;
  std::deque<Operation> queue;
  Result error = kSuccess;  // of the first operation that failed, until a call that waits returns it
  std::string detail;
};

struct Event {
  struct State {
    bool done = false;
    double seconds = -1;       // when; before the first time negative
    Stream* stream = nullptr;  // where it was recorded
  };
  std::shared_ptr<State> state = std::make_shared<State>();
  std::shared_ptr<Graph> capture;
};

// Everything that the calls of this process share. Each call holds the lock.
struct Driver {
  std::recursive_mutex mutex;
  bool initialised = false;
  bool lost = false;  // every later call fails, that for another context too
  int contexts = 0;   // that were retained and not released
  int launches = 0;
  uint64_t seeds = 0;  // that launches took
  uint32_t graphs = 0, numbered_streams = 0;
  // A launch runs on the scheduler that has its turn, one that begins early meanwhile on the other.
  std::array<Scheduler, 2> schedulers;
  size_t turn = 0;
  Memory memory;
  std::set<Stream*> streams;
  std::map<uint64_t, size_t> pinned;  // memory of the host that copies read and write late
  Random random{1};
  std::string detail;  // of the last error, for cuGetErrorString()

  static Driver& get();
  // Keeps what went wrong for cuGetErrorString().
  Result error(Result result, std::string why);
  // Adds `operation` to the stream or to what it captures; on the default stream (null) it runs now.
  Result submit(void* stream, Operation operation);
  Result submit(void* stream, std::function<Result()> run, const Work& work = {});
  // Does it now and tells the observer. `begun`: a launch that has begun already.
  Result perform(const Operation& operation, bool begun = false);
  void tell(Work work);  // of what has no operation
  // Runs what the stream still has to do; the error stays with it.
  void drain(Stream* stream);
  void drain_all();
  // The same, and takes the error.
  Result wait(Stream* stream);
  bool is_pinned(const void* pointer) const;
};

// Holds the lock for one call.
struct Call {
  Driver& driver = Driver::get();
  std::lock_guard<std::recursive_mutex> lock{driver.mutex};
  // Of a call that needs a working device.
  Result ready() const;
};

}  // namespace heddle::emulator
