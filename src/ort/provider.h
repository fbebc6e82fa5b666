#pragma once

#include <memory>
#include <set>
#include <string>

#include "ort/context.h"

namespace heddle::ort {

// The provider of one session.
class Provider : public OrtEp {
 public:
  // `gpu`: runs the session; null: the CPU.
  Provider(const Runtime& runtime, Options options, const OrtLogger* logger, Gpu* gpu);

 private:
  static const char* get_name(const OrtEp*) { return kName; }
  static OrtStatus* get_capability(OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* info);
  static OrtStatus* compile(OrtEp* self, const OrtGraph** graphs, const OrtNode** fused_nodes, size_t count,
                            OrtNodeComputeInfo** compute_infos, OrtNode** context_nodes);
  static void release_compute_infos(OrtEp*, OrtNodeComputeInfo** infos, size_t count);
  static const char* get_compatibility_info(OrtEp* self, const OrtGraph*);
  static OrtStatus* sync(OrtEp* self);
  static OrtStatus* create_profiler(OrtEp* self, OrtEpProfilerImpl** profiler);
  void enable_replays();

  void take_regions(const OrtGraph* handle, OrtEpGraphSupportInfo* info);
  Graph read_fused(const OrtGraph* handle) const;
  std::unique_ptr<FusedNode> checked(std::unique_ptr<FusedNode> node) const;
  std::unique_ptr<FusedNode> compile_region(const OrtGraph* handle, const OrtNode* fused, OrtNode** context);

  const Runtime& runtime_;
  Options options_;
  const OrtLogger* logger_;
  Gpu* gpu_;
  std::shared_ptr<ThreadPool> pool_;
  std::shared_ptr<Trace> trace_;
  std::shared_ptr<Replays> replays_;  // null without Options::captures_graphs
  size_t regions_ = 0;                // compiled
  std::string model_;                 // for messages
  std::set<std::string> inferred_;    // names of inferred values
  std::string compatibility_;
  int plans_ = 0;  // in EPContext nodes
};

// Describes the machines that can load plans for the options' target, and the version that makes them.
std::string compatibility_of(const CompileOptions& options);
bool is_compatible(const std::string& description);

}  // namespace heddle::ort
