// What the collector declares itself, against NVIDIA's headers where there are any.
#include <gtest/gtest.h>

#if __has_include(<cupti.h>) && __has_include(<cuda.h>)
#include <cuda.h>
#include <cupti.h>
#include <cupti_pcsampling.h>

#include <algorithm>
#include <cstddef>

#include "profile/gpu/callback_ids.h"
#include "profile/gpu/cupti_types.h"

namespace heddle::profile::cupti {
namespace {

#define SAME(OURS, OUR_FIELD, THEIRS, THEIR_FIELD)                            \
  static_assert(offsetof(OURS, OUR_FIELD) == offsetof(THEIRS, THEIR_FIELD) && \
                sizeof(OURS::OUR_FIELD) <= sizeof(THEIRS) - offsetof(THEIRS, THEIR_FIELD))

SAME(CallData, site, CUpti_CallbackData, callbackSite);
SAME(CallData, context, CUpti_CallbackData, context);
SAME(CallData, correlation, CUpti_CallbackData, correlationId);
SAME(ResourceData, graph, CUpti_ResourceData, resourceDescriptor);
SAME(GraphData, node, CUpti_GraphData, node);
SAME(GraphData, original_node, CUpti_GraphData, originalNode);
SAME(GraphData, executable, CUpti_GraphData, graphExec);
static_assert(sizeof(CallData) == sizeof(CUpti_CallbackData) && sizeof(GraphData) == sizeof(CUpti_GraphData));
#if CUPTI_API_VERSION >= 130000
static_assert(sizeof(SubscriberParams) == sizeof(CUpti_SubscriberParams));

SAME(KernelRecord, registers, CUpti_ActivityKernel10, registersPerThread);
SAME(KernelRecord, start, CUpti_ActivityKernel10, start);
SAME(KernelRecord, end, CUpti_ActivityKernel10, end);
SAME(KernelRecord, device, CUpti_ActivityKernel10, deviceId);
SAME(KernelRecord, stream, CUpti_ActivityKernel10, streamId);
SAME(KernelRecord, grid, CUpti_ActivityKernel10, gridX);
SAME(KernelRecord, block, CUpti_ActivityKernel10, blockX);
SAME(KernelRecord, static_shared, CUpti_ActivityKernel10, staticSharedMemory);
SAME(KernelRecord, dynamic_shared, CUpti_ActivityKernel10, dynamicSharedMemory);
SAME(KernelRecord, local_bytes, CUpti_ActivityKernel10, localMemoryPerThread);
SAME(KernelRecord, correlation, CUpti_ActivityKernel10, correlationId);
SAME(KernelRecord, name, CUpti_ActivityKernel10, name);
SAME(KernelRecord, graph_node, CUpti_ActivityKernel10, graphNodeId);
SAME(KernelRecord, graph, CUpti_ActivityKernel10, graphId);

SAME(CopyRecord, direction, CUpti_ActivityMemcpy6, copyKind);
SAME(CopyRecord, from, CUpti_ActivityMemcpy6, srcKind);
SAME(CopyRecord, to, CUpti_ActivityMemcpy6, dstKind);
SAME(CopyRecord, bytes, CUpti_ActivityMemcpy6, bytes);
SAME(CopyRecord, start, CUpti_ActivityMemcpy6, start);
SAME(CopyRecord, end, CUpti_ActivityMemcpy6, end);
SAME(CopyRecord, device, CUpti_ActivityMemcpy6, deviceId);
SAME(CopyRecord, stream, CUpti_ActivityMemcpy6, streamId);
SAME(CopyRecord, correlation, CUpti_ActivityMemcpy6, correlationId);
SAME(CopyRecord, graph_node, CUpti_ActivityMemcpy6, graphNodeId);

SAME(PeerCopyRecord, bytes, CUpti_ActivityMemcpyPtoP4, bytes);
SAME(PeerCopyRecord, stream, CUpti_ActivityMemcpyPtoP4, streamId);
SAME(PeerCopyRecord, correlation, CUpti_ActivityMemcpyPtoP4, correlationId);
SAME(PeerCopyRecord, graph_node, CUpti_ActivityMemcpyPtoP4, graphNodeId);

SAME(MemsetRecord, bytes, CUpti_ActivityMemset4, bytes);
SAME(MemsetRecord, start, CUpti_ActivityMemset4, start);
SAME(MemsetRecord, device, CUpti_ActivityMemset4, deviceId);
SAME(MemsetRecord, stream, CUpti_ActivityMemset4, streamId);
SAME(MemsetRecord, correlation, CUpti_ActivityMemset4, correlationId);
SAME(MemsetRecord, graph_node, CUpti_ActivityMemset4, graphNodeId);

SAME(SynchronisationRecord, type, CUpti_ActivitySynchronization2, type);
SAME(SynchronisationRecord, start, CUpti_ActivitySynchronization2, start);
SAME(SynchronisationRecord, end, CUpti_ActivitySynchronization2, end);
SAME(SynchronisationRecord, correlation, CUpti_ActivitySynchronization2, correlationId);
SAME(SynchronisationRecord, stream, CUpti_ActivitySynchronization2, streamId);

SAME(MemoryRecord, operation, CUpti_ActivityMemory4, memoryOperationType);
SAME(MemoryRecord, correlation, CUpti_ActivityMemory4, correlationId);
SAME(MemoryRecord, bytes, CUpti_ActivityMemory4, bytes);
SAME(MemoryRecord, time, CUpti_ActivityMemory4, timestamp);
SAME(MemoryRecord, device, CUpti_ActivityMemory4, deviceId);
SAME(MemoryRecord, stream, CUpti_ActivityMemory4, streamId);

SAME(OverheadRecord, what, CUpti_ActivityOverhead3, overheadKind);
SAME(OverheadRecord, start, CUpti_ActivityOverhead3, start);
SAME(OverheadRecord, end, CUpti_ActivityOverhead3, end);
#endif

static_assert(static_cast<int>(kDriver) == CUPTI_CB_DOMAIN_DRIVER_API);
static_assert(static_cast<int>(kRuntime) == CUPTI_CB_DOMAIN_RUNTIME_API);
static_assert(static_cast<int>(kResource) == CUPTI_CB_DOMAIN_RESOURCE);
static_assert(static_cast<int>(kNodeCreated) == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
static_assert(static_cast<int>(kNodeCloned) == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
static_assert(static_cast<int>(kExecutableCreated) == CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED);
static_assert(static_cast<int>(kKernel) == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
static_assert(static_cast<int>(kPeerCopy) == CUPTI_ACTIVITY_KIND_MEMCPY2);
static_assert(static_cast<int>(kSynchronisation) == CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
static_assert(static_cast<int>(kMemory) == CUPTI_ACTIVITY_KIND_MEMORY2);
static_assert(static_cast<int>(kOverhead) == CUPTI_ACTIVITY_KIND_OVERHEAD);
static_assert(kManySubscribers == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
static_assert(kInsufficientPrivileges == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);

SAME(SamplingCall, context, CUpti_PCSamplingStartParams, ctx);
SAME(CountStallsCall, count, CUpti_PCSamplingGetNumStallReasonsParams, numStallReasons);
SAME(NameStallsCall, count, CUpti_PCSamplingGetStallReasonsParams, numStallReasons);
SAME(NameStallsCall, numbers, CUpti_PCSamplingGetStallReasonsParams, stallReasonIndex);
SAME(NameStallsCall, names, CUpti_PCSamplingGetStallReasonsParams, stallReasons);
SAME(StallSamples, samples, CUpti_PCSamplingStallReason, samples);
SAME(PcSamples, offset, CUpti_PCSamplingPCData, pcOffset);
SAME(PcSamples, function, CUpti_PCSamplingPCData, functionName);
SAME(PcSamples, reasons, CUpti_PCSamplingPCData, stallReasonCount);
SAME(PcSamples, by_reason, CUpti_PCSamplingPCData, stallReason);
SAME(SampledData, room, CUpti_PCSamplingData, collectNumPcs);
SAME(SampledData, samples, CUpti_PCSamplingData, totalSamples);
SAME(SampledData, dropped, CUpti_PCSamplingData, droppedSamples);
SAME(SampledData, counters, CUpti_PCSamplingData, totalNumPcs);
SAME(SampledData, left, CUpti_PCSamplingData, remainingNumPcs);
SAME(SampledData, by_counter, CUpti_PCSamplingData, pPcData);
SAME(ReadSamplesCall, data, CUpti_PCSamplingGetDataParams, pcSamplingData);
SAME(SamplingOption, status, CUpti_PCSamplingConfigurationInfo, attributeStatus);
SAME(SamplingOption, data, CUpti_PCSamplingConfigurationInfo, attributeData);
SAME(ConfigureSamplingCall, count, CUpti_PCSamplingConfigurationInfoParams, numAttributes);
SAME(ConfigureSamplingCall, options, CUpti_PCSamplingConfigurationInfoParams, pPCSamplingConfigurationInfo);
static_assert(sizeof(PcSamples) == sizeof(CUpti_PCSamplingPCData));
static_assert(sizeof(SampledData) == sizeof(CUpti_PCSamplingData));
static_assert(sizeof(SamplingOption) == sizeof(CUpti_PCSamplingConfigurationInfo));
static_assert(int{kSampledData} == int{CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER});
static_assert(int{kStartStop} == int{CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL});

template <size_t N>
bool has(const std::array<uint32_t, N>& calls, int id) {
  return std::find(calls.begin(), calls.end(), static_cast<uint32_t>(id)) != calls.end();
}

TEST(CuptiNumbers, CallsAreThoseOfTheHeaders) {
  for (const int id : {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                       CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
                       CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
                       CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
                       CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
                       CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
                       CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz,
                       CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2,
                       CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2,
                       CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2,
                       CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync,
                       CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeerAsync,
                       CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async,
                       CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async,
                       CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize,
                       CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize,
                       CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize,
                       CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2,
                       CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2,
                       CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync}) {
    EXPECT_TRUE(has(kDriverCalls, id)) << id;
  }
  for (const int id :
       {CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000,
        CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
        CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020,
        CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2DAsync_ptsz_v7000,
        CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyToSymbol_ptds_v7000, CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020,
        CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020, CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020,
        CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020, CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020}) {
    EXPECT_TRUE(has(kRuntimeCalls, id)) << id;
  }
}

}  // namespace
}  // namespace heddle::profile::cupti
#else
TEST(CuptiNumbers, CallsAreThoseOfTheHeaders) {
  GTEST_SKIP() << "there are no headers of CUPTI";
}
#endif
