#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/thread/thread_pool.h"
#include "driver/api/model_impl.h"
#include "ort/gpu.h"
#include "ort/graph/model_writer.h"
#include "ort/options.h"
#include "ort/replay.h"
#include "ort/trace.h"

namespace heddle::ort {

// A compiled region in a session: ONNX Runtime runs it as one node.
class FusedNode : public OrtNodeComputeInfo {
 public:
  // What a fused node is in its session.
  struct Place {
    std::string name;                          // as ONNX Runtime calls it
    std::string model;                         // of the session, for messages
    std::vector<std::string> inputs, outputs;  // the names of the node's, in their order
    std::shared_ptr<ThreadPool> pool;          // of the session
    Gpu* gpu = nullptr;                        // of the session; null: the CPU
    std::shared_ptr<Trace> trace;              // of the session
    std::shared_ptr<Replays> replays;          // of the session, if it has CUDA graphs
  };

  // Compiles a model or loads a plan file. `file`: keeps the file at `path`, which other shapes need again. Throws the
  // errors of Model::load().
  FusedNode(const Runtime& runtime, Place place, const std::string& path, std::shared_ptr<const ModelFolder> file,
            const Options& options);

  const Model::Impl& model() const { return *model_; }
  const Place& place() const { return place_; }
  bool needs_host() const { return needs_host_; }

 private:
  static OrtStatus* create_state(OrtNodeComputeInfo*, OrtNodeComputeContext*, void** state);
  static OrtStatus* compute_node(OrtNodeComputeInfo* self, void* state, OrtKernelContext* context);
  static void release_state(OrtNodeComputeInfo*, void*) {}

  // A tensor of the session.
  struct Operand {
    const void* data;
    Shape shape;
    size_t bytes;
    bool is_on_gpu;
  };

  void prepare();
  void run(OrtKernelContext* context) const;
  void run_on_gpu(OrtKernelContext* context) const;
  void run_through_host(OrtKernelContext* context) const;
  Operand input(OrtKernelContext* context, size_t port) const;
  void* output(OrtKernelContext* context, size_t port, const Shape& shape) const;
  std::vector<size_t> places_of(const std::vector<PortInfo>& ports, const std::vector<std::string>& names) const;
  [[noreturn]] void rethrow(const Error& error) const;

  const Runtime& runtime_;
  Place place_;
  std::string path_;
  std::shared_ptr<const ModelFolder> file_;
  std::unique_ptr<const Model::Impl> model_;
  std::vector<size_t> inputs_, outputs_;  // of each port of the model: its place among those of the node
  bool needs_host_ = false;               // on a GPU: a step of the plan runs on the host
};

}  // namespace heddle::ort
