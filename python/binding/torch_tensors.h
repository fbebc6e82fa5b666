#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <span>

#include "dlpack.h"

namespace heddle::python {

// Reads tensors of PyTorch in a few nanoseconds each: by the C interface that PyTorch has for exported programs, whose
// handle of a tensor is the address of the at::Tensor inside of the Python object. Where it lies there is found by
// looking for what PyTorch says of a tensor made for that. If that fails, reads by DLPack and Python's attributes.
class TorchTensors {
 public:
  // Throws kInvalidArgument for a class without the C interface of DLPack.
  explicit TorchTensors(nanobind::handle tensor_class);

  // Where the first element lies.
  void* data_of(PyObject* tensor) const;
  // The same if it has these extents, and these strides in dimensions of more than one element.
  std::optional<void*> data_if(PyObject* tensor, std::span<const int64_t> shape,
                               std::span<const int64_t> strides) const;
  // How often PyTorch counted changes of it; nothing if it does not count them (inference_mode() made it).
  std::optional<int64_t> version_of(PyObject* tensor) const;
  void* current_stream(int device) const;

 private:
  struct CInterface {
    int32_t (*data)(void* tensor, void** out);
    int32_t (*rank)(void* tensor, int64_t* out);
    int32_t (*sizes)(void* tensor, int64_t** out);
    int32_t (*strides)(void* tensor, int64_t** out);
    int64_t (*version)(const void* tensor);  // at::TensorBase::_version(); may throw
    size_t offset;                           // of the at::Tensor in the Python object
  };

  static std::optional<CInterface> find_interface(nanobind::handle tensor_class);
  static bool is_right(const CInterface& found, nanobind::handle torch);
  // The at::Tensor, or null if it has to be read by DLPack.
  void* inside(PyObject* tensor) const;
  dlpack::Tensor view(PyObject* tensor) const;

  const dlpack::ExchangeApi& api_;
  nanobind::handle class_;
  std::optional<CInterface> c_;
  nanobind::object version_;  // the property of the class, which is found sooner than the attribute of a tensor
  descrgetfunc get_version_ = nullptr;
};

void register_torch_tensors(nanobind::module_& module);

}  // namespace heddle::python
