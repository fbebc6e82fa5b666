#pragma once

#include <string>

#include "profile/gpu/cupti_types.h"

namespace heddle::profile::cupti {

// NVIDIA's CUPTI, loaded at run time.
struct Library {
  Result (*version)(uint32_t* version);
  Result (*error_text)(Result result, const char** text);
  Result (*subscribe)(Subscriber* subscriber, Callback callback, void* user);
  Result (*subscribe_named)(Subscriber* subscriber, Callback callback, void* user,
                            SubscriberParams* params);  // null before 13.0
  Result (*unsubscribe)(Subscriber subscriber);
  Result (*enable_callback)(uint32_t enable, Subscriber subscriber, Domain domain, uint32_t id);
  Result (*register_buffers)(BufferRequested requested, BufferCompleted completed);
  Result (*enable)(Activity kind);
  Result (*disable)(Activity kind);
  Result (*next_record)(uint8_t* buffer, size_t valid, const uint8_t** record);
  Result (*flush)(uint32_t forced);
  Result (*dropped)(void* context, uint32_t stream, size_t* dropped);
  Result (*graph_node_id)(void* node, uint64_t* id);
  Result (*graph_id)(void* graph, uint32_t* id);
  Result (*executable_id)(void* executable, uint32_t* id);
  // The following functions are null if this CUPTI cannot sample program counters.
  Result (*sampling_enable)(SamplingCall* call);
  Result (*sampling_disable)(SamplingCall* call);
  Result (*sampling_start)(SamplingCall* call);
  Result (*sampling_stop)(SamplingCall* call);
  Result (*sampling_configure)(ConfigureSamplingCall* call);
  Result (*sampling_read)(ReadSamplesCall* call);
  Result (*count_stalls)(CountStallsCall* call);
  Result (*name_stalls)(NameStallsCall* call);

  uint32_t number = 0;  // the number that `version` returns
  std::string path;
};

// Returns the CUPTI library. If the process has already loaded a CUPTI, uses that. Otherwise loads the first that
// exists of: the library that $HEDDLE_CUPTI names, those of Python packages, those of CUDA toolkits. The library stays
// loaded, and later calls return it again. Throws kDevice if none is found.
const Library& library();

// Throws kDevice for an error that a call of the library returned. The message names the remedy.
[[noreturn]] void refuse(const Library& library, Result result, const char* call);

}  // namespace heddle::profile::cupti
