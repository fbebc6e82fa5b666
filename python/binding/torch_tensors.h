#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dlpack.h"

namespace heddle::python {

// Reads the address, layout and version of PyTorch tensors in a few nanoseconds each. Uses the C interface that PyTorch
// offers to exported programs. The handle of this interface is the address of the at::Tensor inside the Python object.
// The offset of the at::Tensor is found by searching a test tensor for its known handle. If the search fails, tensors
// are read through DLPack and Python attributes.
class TorchTensors {
 public:
  // Throws kInvalidArgument if the class lacks the C interface of DLPack.
  explicit TorchTensors(nanobind::handle tensor_class);

  // The address of the first element.
  void* data_of(PyObject* tensor) const;
  // Returns the address of the first element if the tensor has extents `shape` and strides `strides`, otherwise
  // nullopt. Strides of dimensions with at most one element are not compared.
  std::optional<void*> data_if(PyObject* tensor, std::span<const int64_t> shape,
                               std::span<const int64_t> strides) const;
  // The tensor's version counter: the number of in-place changes that PyTorch has counted. Returns nullopt if PyTorch
  // does not count them, as for tensors created under inference_mode().
  std::optional<int64_t> version_of(PyObject* tensor) const;
  void* current_stream(int device) const;
  // The GPU that PyTorch allocates on by default, -1 where PyTorch knows no GPUs.
  int current_gpu() const;
  // Appends words that tell dtype, device, extents and strides. Returns false for tensors whose memory is not what
  // their class says: subclasses, other layouts than strides, devices without memory of ours, and lazily negated
  // tensors.
  bool describe(PyObject* tensor, std::vector<uint64_t>& words) const;

 private:
  struct CInterface {
    int32_t (*data)(void* tensor, void** out);
    int32_t (*rank)(void* tensor, int64_t* out);
    int32_t (*sizes)(void* tensor, int64_t** out);
    int32_t (*strides)(void* tensor, int64_t** out);
    int64_t (*version)(const void* tensor);  // at::TensorBase::_version(), which may throw
    int32_t (*dtype)(void* tensor, int32_t* out);
    int32_t (*layout)(void* tensor, int32_t* out);
    int32_t (*device_type)(void* tensor, int32_t* out);
    int32_t (*device_index)(void* tensor, int32_t* out);
    size_t offset;  // offset of the at::Tensor in the Python object
  };

  static std::optional<CInterface> find_interface(nanobind::handle tensor_class);
  static bool is_right(const CInterface& found, nanobind::handle torch);
  // The address of the at::Tensor in the Python object; null if the tensor must be read through DLPack.
  void* inside(PyObject* tensor) const;
  dlpack::Tensor view(PyObject* tensor) const;

  const dlpack::ExchangeApi& api_;
  nanobind::handle class_;
  nanobind::object parameter_;    // torch.nn.Parameter
  nanobind::object is_negated_;   // Tensor.is_neg
  nanobind::object current_gpu_;  // torch._C._cuda_getDevice; None where PyTorch knows no GPUs
  std::optional<CInterface> c_;
  nanobind::object version_;  // the class's property `_version`, cached to avoid an attribute lookup per tensor
  descrgetfunc get_version_ = nullptr;
};

void register_torch_tensors(nanobind::module_& module);

}  // namespace heddle::python
