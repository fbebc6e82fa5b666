#pragma once

#include <cstddef>
#include <cstdint>

// Result codes and structures of the emulated CUPTI library, which exports CUPTI's functions under their original
// names.
namespace heddle::emulator {

enum CuptiResult : int {
  kCuptiSuccess = 0,
  kCuptiInvalidParameter = 1,
  kCuptiMaxLimitReached = 12,
  kCuptiInvalidKind = 21,
  kCuptiNoPrivileges = 35,
  kCuptiHeld = 39,
  kCuptiUnknown = 999,
};
// Structures with the same layout as in CUPTI.
struct CallData {
  int site;
  const char* function;
  const void* parameters;
  void* result;
  const char* symbol;
  void* context;
  uint32_t context_id;
  uint64_t* shared;
  uint32_t correlation;
};
static_assert(sizeof(CallData) == 72);
struct GraphData {
  const void *graph, *original_graph, *node, *original_node;
  int node_type;
  const void *dependency, *executable;
};
static_assert(sizeof(GraphData) == 56);
struct ResourceData {
  void *context, *stream;
  const void* descriptor;
};
struct SubscriberParams {
  size_t bytes;
  const char* name;
  char* holder;
  size_t holder_bytes;
};

}  // namespace heddle::emulator
