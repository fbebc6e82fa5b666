#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "array.h"
#include "heddle/model.h"
#include "source.h"

namespace heddle::python {

// The optional arguments of a call.
struct CallOptions {
  nanobind::handle out, workspace, stream;  // None: the model allocates or chooses it
};

// A compiled model. Several threads may call it at once.
class PyModel {
 public:
  explicit PyModel(const Source& source);
  ~PyModel();

  // Runs the model. `inputs` has one array for each of Model::Impl::ports(); a null handle stands for the default.
  // Returns the results in the model's order.
  nanobind::list run(const std::vector<nanobind::handle>& inputs, const CallOptions& call);

  const Model& model() const { return model_; }
  bool on_gpu() const { return device_ != kHost; }
  int device() const { return device_; }
  const std::vector<std::string>& input_names() const { return input_names_; }
  // Returns the workspace size and the outputs for inputs of these shapes. Compiles the model for these shapes if
  // necessary.
  std::shared_ptr<const EnqueueNeeds> needs(const std::vector<Shape>& shapes);

 private:
  // The checked inputs, in the order of Model::Impl::ports(). An input is an array with its family, a text, or neither
  // if it keeps its default.
  struct Given {
    std::vector<Array> arrays;
    std::vector<Tensor> texts;
    std::vector<const Family*> families;
    bool on_gpu = false;

    const Family& family() const;  // the family of the first array; also used for the results
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
  // The members below are guarded by the GIL.
  std::vector<Prepared> prepared_;                              // most recently used first
  std::vector<std::pair<void*, nanobind::object>> workspaces_;  // (stream, heddle.Tensor)
};

void register_model(nanobind::module_& module);

}  // namespace heddle::python
