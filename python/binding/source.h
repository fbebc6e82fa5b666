#pragma once

#include <nanobind/nanobind.h>

#include <map>
#include <memory>
#include <string>

#include "heddle/model.h"
#include "interrupt.h"

namespace heddle::python {

// A model and how it is to be compiled: what heddle.compile() and the tools are called with.
class Source {
 public:
  // `model`: a path, or the bytes of an ONNX file or of textual IR. `options`: the keywords of heddle.compile(). Throws
  // kInvalidArgument.
  Source(nanobind::handle model, const nanobind::dict& options);

  const std::string& path() const { return path_; }
  // What reports call the model: bytes have no path that means anything to their owner.
  std::string name() const { return file_ == nullptr ? path_ : given_as_; }
  // Without progress().
  const CompileOptions& options() const { return options_; }

  // Calls `work` with options that tell the caller's function of progress, and without the GIL; then raises what that
  // function raised.
  template <typename Work>
  auto with_progress(const Work& work) const;

 private:
  class Progress;
  std::shared_ptr<Progress> progress() const;

  std::string path_, given_as_;
  std::shared_ptr<const void> file_;  // of a model given as bytes, as long as somebody may read it again
  CompileOptions options_;
  nanobind::object progress_;
};

// Host arrays by name, as tensors in their memory. Throws kInvalidInput.
std::map<std::string, Tensor> host_tensors(const nanobind::dict& arrays);

// "3" or (1, 512)
ExtentRange range_of(nanobind::handle extents, const std::string& name);

void register_source(nanobind::module_& module);

// The caller's progress function. Compiling threads call it; an exception from it cancels the compilation.
class Source::Progress {
 public:
  explicit Progress(nanobind::object function) : function_(std::move(function)) {}
  ~Progress();
  void tell(const std::string& stage, double fraction);
  // No call begins after this; with the GIL.
  void end();
  void rethrow();

 private:
  nanobind::object function_;
  std::unique_ptr<nanobind::python_error> raised_;
};

template <typename Work>
auto Source::with_progress(const Work& work) const {
  const std::shared_ptr<Progress> told = progress();
  CompileOptions options = options_;
  if (told != nullptr) {
    options.progress = [told](const std::string& stage, double fraction) { told->tell(stage, fraction); };
  }
  const std::shared_ptr<void> end(nullptr, [&](const void*) {
    if (told != nullptr) told->end();
  });
  auto result = [&] {
    try {
      return interruptible([&] { return work(options); });
    } catch (const Cancelled&) {
      if (told != nullptr) told->rethrow();
      throw;
    }
  }();
  if (told != nullptr) told->rethrow();
  return result;
}

}  // namespace heddle::python
