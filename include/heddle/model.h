#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "heddle/tensor.h"

namespace heddle {

struct CompileOptions {
  std::string target = "cpu";           // "cpu", "cuda", "cuda:1"
  std::string precision = "f32";        // "f32", "tf32", "f16", "bf16"
  int threads = 0;                      // 0: as many as cores this process may use
  std::map<std::string, Shape> shapes;  // input name -> shape, for inputs whose model shape is symbolic
  std::map<std::string, Tensor>
      values;                     // values of inputs that decide shapes (for example the shape operand of Reshape)
  std::string fusion = "stitch";  // "none", "basic", "stitch"
  std::vector<std::string> disabled_passes;
  bool use_cache = true;
  std::function<void(const std::string& stage, double fraction)> progress;
};

struct PortInfo {
  std::string name;
  DType dtype;
  Shape shape;
};

// A compiled model. Copies share it; run() may be called from several threads at once.
class Model {
 public:
  // Reads an ONNX file or a plan file and compiles it (or takes it from the cache). Throws Error.
  static Model load(const std::string& path, const CompileOptions& options = {});

  const std::vector<PortInfo>& inputs() const;
  const std::vector<PortInfo>& outputs() const;

  // Inputs by name; all are required, dtype and shape must match. Returns the outputs in order.
  std::vector<Tensor> run(const std::map<std::string, Tensor>& inputs) const;

  // Writes a plan file that load() takes in place of the model, without compiler or source.
  void save(const std::string& path) const;

  class Impl;
  explicit Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace heddle
