#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

// The part of ONNX Runtime's binary interface that the plug-in uses. ONNX Runtime passes tables of function pointers to
// a plug-in, and takes tables of the plug-in's functions. Both only grow at their ends, so the position of a function
// and the prefix of a table never change. tests/ort runs them against installed releases.
namespace heddle::ort {

// The oldest version of the interface that has what the plug-in needs: that of ONNX Runtime 1.24.
inline constexpr uint32_t kOldestAbi = 24;
// The first version with graph capture.
inline constexpr uint32_t kGraphsAbi = 26;
// The version of the tables that the plug-in implements. An older ONNX Runtime reads their beginnings only.
inline constexpr uint32_t kAbiVersion = 26;

struct OrtEpDevice;
struct OrtEpGraphSupportInfo;
struct OrtGraph;
struct OrtHardwareDevice;
struct OrtKernelContext;
struct OrtKernelRegistry;
struct OrtKeyValuePairs;
struct OrtLogger;
struct OrtMemoryDevice;
struct OrtMemoryInfo;
struct OrtNode;
struct OrtNodeComputeContext;
struct OrtOpAttr;
struct OrtProfilingEvent;
struct OrtProfilingEventsContainer;
struct OrtRunOptions;
struct OrtSessionOptions;
struct OrtStatus;
struct OrtSyncStream;
struct OrtTensorTypeAndShapeInfo;
struct OrtTypeInfo;
struct OrtValue;
struct OrtValueInfo;

enum class StatusCode : int {
  kFail = 1,
  kInvalidArgument = 2,
  kNoSuchFile = 3,
  kInvalidProtobuf = 7,
  kNotImplemented = 9,
  kInvalidGraph = 10,
  kEpFail = 11,
};
enum class Severity : int { kVerbose, kInfo, kWarning, kError };
enum class HardwareType : int { kCpu, kGpu, kNpu };
enum class MemoryType : int { kCpu, kGpu };
enum class ValueKind : int { kUnknown, kTensor };
enum class Compatibility : int { kNotApplicable, kOptimal, kPreferRecompilation, kUnsupported };
enum class EventCategory : int { kSession, kNode, kKernel, kApi };
enum class GraphNodePolicy : int { kAllOnProvider, kShapesOnCpu };
enum class AttributeType : int {
  kUndefined,
  kInt,
  kInts,
  kFloat,
  kFloats,
  kString,
  kStrings,
  kGraph,
  kTensor,
};

// The position of a function in a table, and its type.
template <typename Function>
struct Entry {
  size_t index;
};

// A table of ONNX Runtime's functions.
class Table {
 public:
  explicit Table(const void* functions = nullptr) : functions_(static_cast<const void* const*>(functions)) {}

  template <typename Result, typename... Parameters, typename... Arguments>
  Result operator()(Entry<Result(Parameters...)> entry, Arguments&&... arguments) const {
    const auto function = reinterpret_cast<Result (*)(Parameters...)>(const_cast<void*>(functions_[entry.index]));
    return function(std::forward<Arguments>(arguments)...);
  }

 private:
  const void* const* functions_;
};

// What CreateEpFactories() receives.
struct OrtApiBase {
  const void* (*get_api)(uint32_t version);  // null if ONNX Runtime is older
  const char* (*get_version_string)();
};

// OrtApi.
namespace api {
inline constexpr Entry<OrtStatus*(StatusCode, const char*)> kCreateStatus{0};
inline constexpr Entry<const char*(const OrtStatus*)> kGetErrorMessage{2};
inline constexpr Entry<OrtStatus*(OrtValue*, void**)> kGetTensorMutableData{51};
inline constexpr Entry<OrtStatus*(const OrtTypeInfo*, const OrtTensorTypeAndShapeInfo**)> kCastTypeInfoToTensorInfo{55};
inline constexpr Entry<OrtStatus*(const OrtTypeInfo*, ValueKind*)> kGetOnnxTypeFromTypeInfo{56};
inline constexpr Entry<OrtStatus*(const OrtTensorTypeAndShapeInfo*, int*)> kGetTensorElementType{60};
inline constexpr Entry<OrtStatus*(const OrtTensorTypeAndShapeInfo*, size_t*)> kGetDimensionsCount{61};
inline constexpr Entry<OrtStatus*(const OrtTensorTypeAndShapeInfo*, int64_t*, size_t)> kGetDimensions{62};
inline constexpr Entry<OrtStatus*(const OrtTensorTypeAndShapeInfo*, const char**, size_t)> kGetSymbolicDimensions{63};
inline constexpr Entry<OrtStatus*(const OrtKernelContext*, size_t, const OrtValue**)> kKernelContextGetInput{90};
inline constexpr Entry<OrtStatus*(OrtKernelContext*, size_t, const int64_t*, size_t, OrtValue**)>
    kKernelContextGetOutput{91};
inline constexpr Entry<void(OrtStatus*)> kReleaseStatus{93};
inline constexpr Entry<void(OrtMemoryInfo*)> kReleaseMemoryInfo{94};
inline constexpr Entry<void(OrtValue*)> kReleaseValue{96};
inline constexpr Entry<OrtStatus*(const OrtKernelContext*, void**)> kKernelContextGetGpuComputeStream{193};
inline constexpr Entry<OrtStatus*(const char*, const void*, int, AttributeType, OrtOpAttr**)> kCreateOpAttr{211};
inline constexpr Entry<void(OrtOpAttr*)> kReleaseOpAttr{212};
inline constexpr Entry<OrtStatus*(const OrtLogger*, Severity, const char*, const char*, int, const char*)> kLogMessage{
    247};
inline constexpr Entry<OrtStatus*(const OrtOpAttr*, AttributeType, void*, size_t, size_t*)> kReadOpAttr{272};
inline constexpr Entry<OrtStatus*(const OrtValueInfo*, const char**)> kGetValueInfoName{289};
inline constexpr Entry<OrtStatus*(const OrtValueInfo*, const OrtTypeInfo**)> kGetValueInfoTypeInfo{290};
inline constexpr Entry<const void*()> kGetModelEditorApi{291};
inline constexpr Entry<void(OrtKeyValuePairs**)> kCreateKeyValuePairs{295};
inline constexpr Entry<void(OrtKeyValuePairs*, const char*, const char*)> kAddKeyValuePair{296};
inline constexpr Entry<const char*(const OrtKeyValuePairs*, const char*)> kGetKeyValue{297};
inline constexpr Entry<void(const OrtKeyValuePairs*, const char* const**, const char* const**, size_t*)>
    kGetKeyValuePairs{298};
inline constexpr Entry<void(OrtKeyValuePairs*)> kReleaseKeyValuePairs{300};
inline constexpr Entry<HardwareType(const OrtHardwareDevice*)> kHardwareDeviceType{307};
inline constexpr Entry<uint32_t(const OrtHardwareDevice*)> kHardwareDeviceVendorId{308};
inline constexpr Entry<const void*()> kGetEpApi{317};
inline constexpr Entry<OrtStatus*(const OrtValue*, size_t*)> kGetTensorSizeInBytes{318};
inline constexpr Entry<OrtStatus*(const char*, MemoryType, uint32_t, int32_t, int, size_t, int, OrtMemoryInfo**)>
    kCreateMemoryInfo{320};
inline constexpr Entry<OrtStatus*(const OrtValueInfo*, const OrtValue**)> kValueInfoGetInitializerValue{326};
inline constexpr Entry<OrtStatus*(const OrtValueInfo*, bool*)> kValueInfoIsGraphOutput{330};
inline constexpr Entry<OrtStatus*(const OrtValueInfo*, bool*)> kValueInfoIsConstantInitializer{331};
inline constexpr Entry<OrtStatus*(const OrtValueInfo*, bool*)> kValueInfoIsFromOuterScope{332};
inline constexpr Entry<OrtStatus*(const OrtGraph*, const char**)> kGraphGetName{333};
inline constexpr Entry<OrtStatus*(const OrtGraph*, const char**)> kGraphGetModelPath{334};
inline constexpr Entry<OrtStatus*(const OrtGraph*, size_t*)> kGraphGetNumOperatorSets{336};
inline constexpr Entry<OrtStatus*(const OrtGraph*, const char**, int64_t*, size_t)> kGraphGetOperatorSets{337};
inline constexpr Entry<OrtStatus*(const OrtGraph*, size_t*)> kGraphGetNumInputs{338};
inline constexpr Entry<OrtStatus*(const OrtGraph*, const OrtValueInfo**, size_t)> kGraphGetInputs{339};
inline constexpr Entry<OrtStatus*(const OrtGraph*, size_t*)> kGraphGetNumOutputs{340};
inline constexpr Entry<OrtStatus*(const OrtGraph*, const OrtValueInfo**, size_t)> kGraphGetOutputs{341};
inline constexpr Entry<OrtStatus*(const OrtGraph*, size_t*)> kGraphGetNumNodes{344};
inline constexpr Entry<OrtStatus*(const OrtGraph*, const OrtNode**, size_t)> kGraphGetNodes{345};
inline constexpr Entry<OrtStatus*(const OrtGraph*, const OrtNode**)> kGraphGetParentNode{346};
inline constexpr Entry<OrtStatus*(const OrtNode*, const char**)> kNodeGetName{349};
inline constexpr Entry<OrtStatus*(const OrtNode*, const char**)> kNodeGetOperatorType{350};
inline constexpr Entry<OrtStatus*(const OrtNode*, const char**)> kNodeGetDomain{351};
inline constexpr Entry<OrtStatus*(const OrtNode*, size_t*)> kNodeGetNumInputs{353};
inline constexpr Entry<OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t)> kNodeGetInputs{354};
inline constexpr Entry<OrtStatus*(const OrtNode*, size_t*)> kNodeGetNumOutputs{355};
inline constexpr Entry<OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t)> kNodeGetOutputs{356};
inline constexpr Entry<OrtStatus*(const OrtNode*, size_t*)> kNodeGetNumImplicitInputs{357};
inline constexpr Entry<OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t)> kNodeGetImplicitInputs{358};
inline constexpr Entry<OrtStatus*(const OrtNode*, size_t*)> kNodeGetNumAttributes{359};
inline constexpr Entry<OrtStatus*(const OrtNode*, const OrtOpAttr**, size_t)> kNodeGetAttributes{360};
inline constexpr Entry<OrtStatus*(const OrtNode*, const char*, const OrtOpAttr**)> kNodeGetAttributeByName{361};
inline constexpr Entry<OrtStatus*(const OrtOpAttr*, OrtValue**)> kOpAttrGetTensorAttributeAsOrtValue{362};
inline constexpr Entry<OrtStatus*(const OrtOpAttr*, AttributeType*)> kOpAttrGetType{363};
inline constexpr Entry<OrtStatus*(const OrtOpAttr*, const char**)> kOpAttrGetName{364};
inline constexpr Entry<OrtStatus*(const OrtNode*, size_t*)> kNodeGetNumSubgraphs{365};
inline constexpr Entry<OrtStatus*(const OrtNode*, const OrtGraph**, size_t, const char** attributes)> kNodeGetSubgraphs{
    366};
inline constexpr Entry<OrtStatus*(const OrtNode*, const char**)> kNodeGetEpName{368};
inline constexpr Entry<const char*(const OrtRunOptions*, const char*)> kGetRunConfigEntry{373};
inline constexpr Entry<OrtStatus*(const OrtValue*, const void**)> kGetTensorData{378};
inline constexpr Entry<OrtStatus*(const OrtSessionOptions*, OrtKeyValuePairs**)> kGetSessionOptionsConfigEntries{379};
inline constexpr Entry<bool(const OrtTensorTypeAndShapeInfo*)> kTensorTypeAndShapeHasShape{390};
inline constexpr Entry<OrtStatus*(const OrtValue*, int*, const int64_t**, size_t*)>
    kGetTensorElementTypeAndShapeDataReference{414};
}  // namespace api

// OrtModelEditorApi.
namespace editor_api {
inline constexpr Entry<OrtStatus*(const char*, const char*, const char*, const char* const*, size_t, const char* const*,
                                  size_t, OrtOpAttr**, size_t, OrtNode**)>
    kCreateNode{6};
}  // namespace editor_api

// OrtNodeFusionOptions.
struct OrtNodeFusionOptions {
  uint32_t version = kAbiVersion;
  bool drop_constant_initializers = false;  // the fused node does not receive the constants of its nodes
};

// OrtEpApi.
struct OrtEpFactory;
struct OrtSyncStreamImpl;
namespace ep_api {
inline constexpr Entry<OrtStatus*(OrtEpFactory*, const OrtHardwareDevice*, const OrtKeyValuePairs*,
                                  const OrtKeyValuePairs*, OrtEpDevice**)>
    kCreateEpDevice{0};
inline constexpr Entry<OrtStatus*(OrtEpGraphSupportInfo*, const OrtNode* const*, size_t, const OrtNodeFusionOptions*)>
    kAddNodesToFuse{2};
inline constexpr Entry<OrtStatus*(OrtEpDevice*, const OrtMemoryInfo*)> kAddAllocatorInfo{5};
inline constexpr Entry<const OrtMemoryDevice*(const OrtMemoryInfo*)> kMemoryInfoGetMemoryDevice{6};
inline constexpr Entry<const OrtMemoryDevice*(const OrtValue*)> kValueGetMemoryDevice{7};
inline constexpr Entry<MemoryType(const OrtMemoryDevice*)> kMemoryDeviceGetDeviceType{9};
inline constexpr Entry<uint32_t(const OrtMemoryDevice*)> kMemoryDeviceGetVendorId{11};
inline constexpr Entry<uint32_t(const OrtMemoryDevice*)> kMemoryDeviceGetDeviceId{12};
inline constexpr Entry<const OrtSyncStreamImpl*(const OrtSyncStream*)> kSyncStreamGetImpl{13};
inline constexpr Entry<OrtStatus*(HardwareType, uint32_t, uint32_t, const char*, const OrtKeyValuePairs*,
                                  OrtHardwareDevice**)>
    kCreateHardwareDevice{16};
inline constexpr Entry<void(OrtHardwareDevice*)> kReleaseHardwareDevice{17};
// Since version 25.
inline constexpr Entry<OrtStatus*(EventCategory, int32_t process, int32_t thread, const char* name, int64_t start_us,
                                  int64_t duration_us, const char* const* keys, const char* const* values, size_t count,
                                  OrtProfilingEvent**)>
    kCreateProfilingEvent{65};
inline constexpr Entry<void(OrtProfilingEvent*)> kReleaseProfilingEvent{66};
inline constexpr Entry<OrtStatus*(OrtProfilingEventsContainer*, const OrtProfilingEvent* const*, size_t)>
    kAddProfilingEvents{72};
}  // namespace ep_api

// Device memory. The plug-in implements it, as it does the following tables; functions that are null are optional.
struct OrtAllocator {
  uint32_t version = kAbiVersion;
  void* (*alloc)(OrtAllocator*, size_t bytes) = nullptr;
  void (*free)(OrtAllocator*, void* data) = nullptr;
  const OrtMemoryInfo* (*info)(const OrtAllocator*) = nullptr;
  void* (*reserve)(OrtAllocator*, size_t bytes) = nullptr;
  OrtStatus* (*get_stats)(const OrtAllocator*, OrtKeyValuePairs**) = nullptr;
  void* (*alloc_on_stream)(OrtAllocator*, size_t bytes, OrtSyncStream*) = nullptr;
};

// Copies between devices.
struct OrtDataTransferImpl {
  uint32_t version = kAbiVersion;
  void (*release)(OrtDataTransferImpl*) = nullptr;
  bool (*can_copy)(const OrtDataTransferImpl*, const OrtMemoryDevice* from, const OrtMemoryDevice* to) = nullptr;
  OrtStatus* (*copy_tensors)(OrtDataTransferImpl*, const OrtValue** from, OrtValue** to, OrtSyncStream** streams,
                             size_t count) = nullptr;
};

// An event on a stream.
struct OrtSyncNotificationImpl {
  uint32_t version = kAbiVersion;
  void (*release)(OrtSyncNotificationImpl*) = nullptr;
  OrtStatus* (*activate)(OrtSyncNotificationImpl*) = nullptr;
  OrtStatus* (*wait_on_device)(OrtSyncNotificationImpl*, OrtSyncStream* consumer) = nullptr;
  OrtStatus* (*wait_on_host)(OrtSyncNotificationImpl*) = nullptr;
};

// A stream of a session's run.
struct OrtSyncStreamImpl {
  uint32_t version = kAbiVersion;
  void (*release)(OrtSyncStreamImpl*) = nullptr;
  void* (*get_handle)(OrtSyncStreamImpl*) = nullptr;
  OrtStatus* (*create_notification)(OrtSyncStreamImpl*, OrtSyncNotificationImpl**) = nullptr;
  OrtStatus* (*flush)(OrtSyncStreamImpl*) = nullptr;
  OrtStatus* (*on_session_run_end)(OrtSyncStreamImpl*) = nullptr;
};

// A fused node of a session.
struct OrtNodeComputeInfo {
  uint32_t version = kAbiVersion;
  OrtStatus* (*create_state)(OrtNodeComputeInfo*, OrtNodeComputeContext*, void** state) = nullptr;
  OrtStatus* (*compute)(OrtNodeComputeInfo*, void* state, OrtKernelContext*) = nullptr;
  void (*release_state)(OrtNodeComputeInfo*, void* state) = nullptr;
};

// Adds a provider's events to a profile of ONNX Runtime.
struct OrtEpProfilerImpl {
  uint32_t version = kAbiVersion;
  void (*release)(OrtEpProfilerImpl*) = nullptr;
  OrtStatus* (*start_profiling)(OrtEpProfilerImpl*, int64_t since_start_ns) = nullptr;
  OrtStatus* (*start_event)(OrtEpProfilerImpl*, uint64_t event) = nullptr;
  OrtStatus* (*stop_event)(OrtEpProfilerImpl*, uint64_t event, const OrtProfilingEvent*) = nullptr;
  OrtStatus* (*end_profiling)(OrtEpProfilerImpl*, OrtProfilingEventsContainer*) = nullptr;
};

// The provider of one session.
struct OrtEp {
  uint32_t version = kAbiVersion;
  const char* (*get_name)(const OrtEp*) = nullptr;
  OrtStatus* (*get_capability)(OrtEp*, const OrtGraph*, OrtEpGraphSupportInfo*) = nullptr;
  OrtStatus* (*compile)(OrtEp*, const OrtGraph** graphs, const OrtNode** fused_nodes, size_t count,
                        OrtNodeComputeInfo** compute_infos, OrtNode** context_nodes) = nullptr;
  void (*release_compute_infos)(OrtEp*, OrtNodeComputeInfo**, size_t count) = nullptr;
  OrtStatus* (*get_preferred_layout)(OrtEp*, int*) = nullptr;
  OrtStatus* (*should_convert_layout)(OrtEp*, const char* domain, const char* op_type, int layout, int*) = nullptr;
  OrtStatus* (*set_dynamic_options)(OrtEp*, const char* const* keys, const char* const* values, size_t) = nullptr;
  OrtStatus* (*on_run_start)(OrtEp*, const OrtRunOptions*) = nullptr;
  OrtStatus* (*on_run_end)(OrtEp*, const OrtRunOptions*, bool synchronise) = nullptr;
  OrtStatus* (*create_allocator)(OrtEp*, const OrtMemoryInfo*, OrtAllocator**) = nullptr;
  OrtStatus* (*create_stream)(OrtEp*, const OrtMemoryDevice*, OrtSyncStreamImpl**) = nullptr;
  const char* (*get_compatibility_info)(OrtEp*, const OrtGraph*) = nullptr;
  OrtStatus* (*get_kernel_registry)(OrtEp*, const OrtKernelRegistry**) = nullptr;
  OrtStatus* (*is_concurrent_run_supported)(OrtEp*, bool*) = nullptr;
  // Since version 25.
  OrtStatus* (*sync)(OrtEp*) = nullptr;
  OrtStatus* (*create_profiler)(OrtEp*, OrtEpProfilerImpl**) = nullptr;
  // Since version 26.
  bool (*is_graph_capture_enabled)(const OrtEp*) = nullptr;
  bool (*is_graph_captured)(const OrtEp*, int graph) = nullptr;
  OrtStatus* (*replay_graph)(OrtEp*, int graph) = nullptr;
  GraphNodePolicy (*get_graph_node_policy)(const OrtEp*) = nullptr;
  OrtStatus* (*get_available_resource)(const OrtEp*, void*) = nullptr;
};

// The provider as registered in a process.
struct OrtEpFactory {
  uint32_t version = kAbiVersion;
  const char* (*get_name)(const OrtEpFactory*) = nullptr;
  const char* (*get_vendor)(const OrtEpFactory*) = nullptr;
  OrtStatus* (*get_supported_devices)(OrtEpFactory*, const OrtHardwareDevice* const*, size_t count,
                                      OrtEpDevice** devices, size_t most, size_t* found) = nullptr;
  OrtStatus* (*create_ep)(OrtEpFactory*, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const* metadata,
                          size_t count, const OrtSessionOptions*, const OrtLogger*, OrtEp**) = nullptr;
  void (*release_ep)(OrtEpFactory*, OrtEp*) = nullptr;
  uint32_t (*get_vendor_id)(const OrtEpFactory*) = nullptr;
  const char* (*get_version)(const OrtEpFactory*) = nullptr;
  OrtStatus* (*validate_compatibility_info)(OrtEpFactory*, const OrtHardwareDevice* const*, size_t count,
                                            const char* info, Compatibility*) = nullptr;
  OrtStatus* (*create_allocator)(OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                                 OrtAllocator**) = nullptr;
  void (*release_allocator)(OrtEpFactory*, OrtAllocator*) = nullptr;
  OrtStatus* (*create_data_transfer)(OrtEpFactory*, OrtDataTransferImpl**) = nullptr;
  bool (*is_stream_aware)(const OrtEpFactory*) = nullptr;
  OrtStatus* (*create_stream)(OrtEpFactory*, const OrtMemoryDevice*, const OrtKeyValuePairs*,
                              OrtSyncStreamImpl**) = nullptr;
  void* unused[4] = {};  // device incompatibility, external resources, custom operator domains
};

}  // namespace heddle::ort
