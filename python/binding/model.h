#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "array.h"
#include "heddle/model.h"
#include "source.h"

namespace heddle::python {

// What a call may say beside its inputs.
struct CallOptions {
  nanobind::handle out, workspace, stream;  // None: of its own
};

// A compiled model. Calls may come from several threads.
class PyModel {
 public:
  explicit PyModel(const Source& source);
  ~PyModel();

  // One array for each of Model::Impl::ports(), null for a default. Returns the results in the model's order.
  nanobind::list run(const std::vector<nanobind::handle>& inputs, const CallOptions& call);

  const Model& model() const { return model_; }
  bool on_gpu() const { return device_ != kHost; }
  int device() const { return device_; }
  const std::vector<std::string>& input_names() const { return input_names_; }
  // Bytes of device memory and outputs for inputs of these shapes. Compiles where that was not done.
  std::shared_ptr<const EnqueueNeeds> needs(const std::vector<Shape>& shapes);

 private:
  // The examined inputs, in the order of Model::Impl::ports(): a family with its array, text, or neither for an input
  // that keeps its default.
  struct Given {
    std::vector<Array> arrays;
    std::vector<Tensor> texts;
    std::vector<const Family*> families;
    bool on_gpu = false;

    const Family& family() const;  // of the first array; results are of it, too
  };
  Given look_at(const std::vector<nanobind::handle>& inputs, void* stream) const;
  void* stream_for(const std::vector<nanobind::handle>& inputs, nanobind::handle given) const;
  nanobind::list run_on_host(const Given& given, const CallOptions& call);
  nanobind::list run_on_gpu(const Given& given, const CallOptions& call, void* stream);
  std::vector<Array> outputs_given(nanobind::handle out, void* stream, bool on_gpu) const;
  nanobind::object workspace_for(const Family& family, size_t bytes, void* stream);

  struct Prepared {
    std::vector<Shape> shapes;
    std::shared_ptr<const EnqueueNeeds> needs;
  };
  Model model_;
  std::vector<std::string> input_names_, output_names_;  // "input x", "output y": for messages
  int device_ = kHost;
  // Under the GIL.
  std::vector<Prepared> prepared_;                              // the last used first
  std::vector<std::pair<void*, nanobind::object>> workspaces_;  // by stream, of heddle.Tensor
};

void register_model(nanobind::module_& module);

}  // namespace heddle::python
