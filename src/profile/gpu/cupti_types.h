#pragma once

#include <cstddef>
#include <cstdint>

// The part of CUPTI's binary interface that the collector uses, for CUPTI 11.8 to 13. New CUPTI versions append fields
// to records. The structs here have only the fields that all these versions share.
namespace heddle::profile::cupti {

using Result = int;
inline constexpr Result kSuccess = 0, kNotInitialised = 15, kInsufficientPrivileges = 35, kManySubscribers = 39,
                        kVirtualNoPrivileges = 40, kUnknownError = 999;

enum Domain : int { kDriver = 1, kRuntime = 2, kResource = 3 };
enum Site : int { kEnter = 0, kExit = 1 };
enum ResourceId : uint32_t { kNodeCreated = 13, kExecutableCreated = 18, kNodeCloned = 20 };

struct CallData {
  Site site;
  const char* function;
  const void* parameters;
  void* result;
  const char* symbol;
  void* context;
  uint32_t context_id;
  uint64_t* shared;  // shared by the callbacks of one call
  uint32_t correlation;
};
struct GraphData {
  void *graph = nullptr, *original_graph = nullptr;
  void *node = nullptr, *original_node = nullptr;
  int node_type = 0;
  void* dependency = nullptr;
  void* executable = nullptr;
};
struct ResourceData {
  void* context;
  void* stream;
  const GraphData* graph;  // only for resources of graphs
};
struct SubscriberParams {
  size_t bytes = sizeof(SubscriberParams);
  const char* name = nullptr;
  char* holder = nullptr;  // receives the name of the current subscriber; at least 64 bytes
  size_t holder_bytes = 0;
};

using Subscriber = void*;
using Callback = void (*)(void* user, Domain domain, uint32_t id, const void* data);
using BufferRequested = void (*)(uint8_t** buffer, size_t* bytes, size_t* most_records);
using BufferCompleted = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t bytes, size_t valid);

enum Activity : uint32_t {
  kCopy = 1,
  kMemset = 2,
  kSerialKernel = 3,  // never enabled, since it serialises kernels; its records have the same layout
  kKernel = 10,
  kOverhead = 17,
  kPeerCopy = 22,
  kSynchronisation = 38,
  kMemory = 49,
};

struct KernelRecord {
  uint32_t kind;
  uint8_t caches;
  uint8_t cache_requested;
  uint16_t registers;
  uint32_t partitioned_cache[2];
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3];
  int32_t static_shared, dynamic_shared;
  uint32_t local_bytes, local_total;
  uint32_t correlation;
  int64_t grid_id;
  const char* name;
  void* reserved;
  uint64_t queued, submitted;
  uint8_t launch_type, shared_memory_requested;
  uint16_t more[3];
  uint64_t graph_node;
  uint32_t shared_limit, graph;
};
struct CopyRecord {
  uint32_t kind;
  uint8_t direction, from, to, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation, runtime_correlation, padding;
  void* reserved;
  uint64_t graph_node;
};
struct PeerCopyRecord {
  uint32_t kind;
  uint8_t direction, from, to, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream;
  uint32_t from_device, from_context, to_device, to_context;
  uint32_t correlation;
  void* reserved;
  uint64_t graph_node;
};
struct MemsetRecord {
  uint32_t kind, value;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation;
  uint16_t flags, memory;
  uint32_t padding;
  void* reserved;
  uint64_t graph_node;
};
struct SynchronisationRecord {
  uint32_t kind, type;
  uint64_t start, end;
  uint32_t correlation, context, stream, event;
};
struct MemoryRecord {
  uint32_t kind, operation, memory, correlation;
  uint64_t address, bytes, time, counter;
  uint32_t process, device, context, stream;
};
struct OverheadRecord {
  uint32_t kind, what, object_kind;
  uint8_t object[12];
  uint64_t start, end;
};

// Sampling of program counters. Each call takes a struct whose first field is the size of the struct.
struct SamplingCall {  // for enable, disable, start and stop
  size_t bytes = sizeof(SamplingCall);
  void* reserved = nullptr;
  void* context = nullptr;
};
struct CountStallsCall {
  size_t bytes = sizeof(CountStallsCall);
  void* reserved = nullptr;
  void* context = nullptr;
  size_t* count = nullptr;
};
struct NameStallsCall {
  size_t bytes = sizeof(NameStallsCall);
  void* reserved = nullptr;
  void* context = nullptr;
  size_t count = 0;
  uint32_t* numbers = nullptr;
  char** names = nullptr;  // 128 bytes for each name
};
struct StallSamples {
  uint32_t reason, samples;
};
struct PcSamples {
  size_t bytes = sizeof(PcSamples);
  uint64_t cubin_crc = 0, offset = 0;
  uint32_t function_number = 0, padding = 0;
  char* function = nullptr;
  size_t reasons = 0;
  StallSamples* by_reason = nullptr;
  uint32_t correlation = 0;
};
struct SampledData {
  size_t bytes = sizeof(SampledData);
  size_t room = 0;  // the number of counters that fit
  uint64_t samples = 0, dropped = 0;
  size_t counters = 0, left = 0;  // counters returned; counters that did not fit
  uint64_t range = 0;
  PcSamples* by_counter = nullptr;
  uint64_t elsewhere = 0;  // samples in kernels that do not belong to the program
  uint8_t device_full = 0;
};
struct ReadSamplesCall {
  size_t bytes = sizeof(ReadSamplesCall);
  void* reserved = nullptr;
  void* context = nullptr;
  SampledData* data = nullptr;
};
enum SamplingOptionKind : int {
  kSamplingPeriod = 1,
  kStallReasons = 2,
  kScratchBytes = 3,
  kSamplingMode = 5,
  kStartStop = 6,
  kOutputFormat = 7,
  kSampledData = 8,
};
struct SamplingOption {
  SamplingOptionKind kind;
  Result status = 0;
  union {
    uint64_t data[3] = {};
    uint32_t number;
    size_t size;
    void* pointer;
    struct {
      size_t count;
      uint32_t* numbers;
    } reasons;
  };
};
struct ConfigureSamplingCall {
  size_t bytes = sizeof(ConfigureSamplingCall);
  void* reserved = nullptr;
  void* context = nullptr;
  size_t count = 0;
  SamplingOption* options = nullptr;
};

}  // namespace heddle::profile::cupti
