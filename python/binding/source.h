#pragma once

#include <nanobind/nanobind.h>

#include <map>
#include <memory>
#include <string>

#include "heddle/model.h"
#include "interrupt.h"

namespace heddle::python {

// A model and its compile options, from the arguments of heddle.compile() or of a tool.
class Source {
 public:
  // `model`: a path, or the bytes of an ONNX file or of textual IR. `options`: the keywords of heddle.compile(). Throws
  // kInvalidArgument.
  Source(nanobind::handle model, const nanobind::dict& options);

  const std::string& path() const { return path_; }
  // The model's name in reports. For a model given as bytes this is not the path, which would mean nothing to the user.
  std::string name() const { return file_ == nullptr ? path_ : given_as_; }
  // The options, without a progress callback.
  const CompileOptions& options() const { return options_; }

  // Calls `work` without the GIL, with options that report progress to the caller's function. If that function raised
  // an exception, raises it afterwards.
  template <typename Work>
  auto with_progress(const Work& work) const;

 private:
  class Progress;
  std::shared_ptr<Progress> progress() const;

  std::string path_, given_as_;
  std::shared_ptr<const void> file_;  // the file of a model given as bytes, kept as long as it may be read again
  CompileOptions options_;
  nanobind::object progress_;
};

// Wraps named host arrays in tensors that share their memory. Throws kInvalidInput.
std::map<std::string, Tensor> host_tensors(const nanobind::dict& arrays);

// Converts the extents that the user gave for the dimension `name`: one extent (3) or a pair for a range ((1, 512)).
ExtentRange range_of(nanobind::handle extents, const std::string& name);

void register_source(nanobind::module_& module);

// The caller's progress function. Compiling threads call it; an exception from it cancels the compilation.
class Source::Progress {
 public:
  explicit Progress(nanobind::object function) : function_(std::move(function)) {}
  ~Progress();
  void tell(const std::string& stage, double fraction);
  // After end(), the function is not called again. Needs the GIL.
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
