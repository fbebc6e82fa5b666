#include "torch_tensors.h"

#include <dlfcn.h>

#include <cstring>

#include "array.h"
#include "errors.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

const dlpack::ExchangeApi& api_of(nb::handle tensor_class) {
  const dlpack::ExchangeApi* api = exchange_api_of(tensor_class);
  if (api == nullptr || api->view == nullptr) {
    refuse_argument(class_name(tensor_class), "its tensors have no C interface of DLPack", "Update PyTorch");
  }
  return *api;
}

void* word_at(PyObject* object, size_t offset) {
  void* word = nullptr;
  std::memcpy(&word, reinterpret_cast<const char*>(object) + offset, sizeof word);
  return word;
}

void* data_in(const dlpack::Tensor& view) {
  return static_cast<char*>(view.data) + view.byte_offset;
}

template <typename Function>
bool look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool has_layout(std::span<const int64_t> shape, std::span<const int64_t> strides, const int64_t* found_shape,
                const int64_t* found_strides) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (found_shape[d] != shape[d]) return false;
    if (found_strides != nullptr && shape[d] != 1 && found_strides[d] != strides[d]) return false;
  }
  return true;
}

}  // namespace

TorchTensors::TorchTensors(nb::handle tensor_class)
    : api_(api_of(tensor_class)),
      class_(tensor_class),
      parameter_(nb::module_::import_("torch.nn").attr("Parameter")),
      is_negated_(tensor_class.attr("is_neg")),
      current_gpu_(nb::getattr(nb::module_::import_("torch").attr("_C"), "_cuda_getDevice", nb::none())),
      c_(find_interface(tensor_class)),
      version_(tensor_class.attr("_version")) {
  get_version_ = reinterpret_cast<descrgetfunc>(PyType_GetSlot(Py_TYPE(version_.ptr()), Py_tp_descr_get));
  if (get_version_ == nullptr) {
    refuse_argument(class_name(tensor_class), "its _version is no property", "Update Heddle");
  }
}

std::optional<TorchTensors::CInterface> TorchTensors::find_interface(nb::handle tensor_class) {
  void* const library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return std::nullopt;
  CInterface c = {};
  int32_t (*end)(void* handle) = nullptr;
  if (!look_up(library, "aoti_torch_get_data_ptr", c.data) || !look_up(library, "aoti_torch_get_dim", c.rank) ||
      !look_up(library, "aoti_torch_get_sizes", c.sizes) || !look_up(library, "aoti_torch_get_strides", c.strides) ||
      !look_up(library, "aoti_torch_get_dtype", c.dtype) || !look_up(library, "aoti_torch_get_layout", c.layout) ||
      !look_up(library, "aoti_torch_get_device_type", c.device_type) ||
      !look_up(library, "aoti_torch_get_device_index", c.device_index) ||
      !look_up(library, "aoti_torch_delete_tensor_object", end) ||
      !look_up(library, "_ZNK2at10TensorBase8_versionEv", c.version)) {
    return std::nullopt;
  }
  try {
    const nb::object torch = nb::module_::import_("torch");
    const nb::object probe = torch.attr("empty")(nb::make_tuple(2, 3), nb::arg("device") = "cpu");
    const nb::object handles =
        torch.attr("_C").attr("_aoti").attr("unsafe_alloc_void_ptrs_from_tensors")(nb::make_tuple(probe));
    void* const handle = PyCapsule_GetPointer(nb::object(handles[0]).ptr(), nullptr);
    if (handle == nullptr) nb::raise_python_error();
    const void* const wanted = *static_cast<void**>(handle);
    end(handle);
    const auto size = nb::cast<size_t>(tensor_class.attr("__basicsize__"));
    for (c.offset = sizeof(PyObject); c.offset + sizeof(void*) <= size; c.offset += sizeof(void*)) {
      if (word_at(probe.ptr(), c.offset) == wanted) return is_right(c, torch) ? std::optional(c) : std::nullopt;
    }
  } catch (const nb::python_error&) {  // this PyTorch is made otherwise
  }
  return std::nullopt;
}

bool TorchTensors::is_right(const CInterface& found, nb::handle torch) {
  const nb::object tensor = torch.attr("zeros")(nb::make_tuple(2, 3), nb::arg("device") = "cpu");
  for (const nb::object& one : {tensor, nb::object(torch.attr("nn").attr("Parameter")(tensor, false))}) {
    void* const inside = reinterpret_cast<char*>(one.ptr()) + found.offset;
    void* data = nullptr;
    int64_t rank = 0, *sizes = nullptr, *strides = nullptr;
    if (found.data(inside, &data) != 0 || found.rank(inside, &rank) != 0 || found.sizes(inside, &sizes) != 0 ||
        found.strides(inside, &strides) != 0) {
      return false;
    }
    const int64_t before = found.version(inside);
    one.attr("zero_")();
    if (reinterpret_cast<uintptr_t>(data) != nb::cast<uintptr_t>(one.attr("data_ptr")()) || rank != 2 ||
        sizes[0] != 2 || sizes[1] != 3 || strides[0] != 3 || strides[1] != 1 || found.version(inside) != before + 1) {
      return false;
    }
  }
  return true;
}

void* TorchTensors::inside(PyObject* tensor) const {
  if (!c_) return nullptr;
  auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(tensor));
  if (type != class_.ptr() && PyType_IsSubtype(Py_TYPE(tensor), reinterpret_cast<PyTypeObject*>(class_.ptr())) == 0) {
    return nullptr;
  }
  return reinterpret_cast<char*>(tensor) + c_->offset;
}

dlpack::Tensor TorchTensors::view(PyObject* tensor) const {
  dlpack::Tensor view;
  if (api_.view(tensor, &view) != 0) nb::raise_python_error();
  return view;
}

void* TorchTensors::data_of(PyObject* tensor) const {
  void* data = nullptr;
  void* const at = inside(tensor);
  return at != nullptr && c_->data(at, &data) == 0 ? data : data_in(view(tensor));
}

std::optional<void*> TorchTensors::data_if(PyObject* tensor, std::span<const int64_t> shape,
                                           std::span<const int64_t> strides) const {
  void* const at = inside(tensor);
  void* data = nullptr;
  int64_t rank = 0, *found_shape = nullptr, *found_strides = nullptr;
  if (at != nullptr && c_->data(at, &data) == 0 && c_->rank(at, &rank) == 0 && c_->sizes(at, &found_shape) == 0 &&
      c_->strides(at, &found_strides) == 0) {
    const bool is_same =
        static_cast<size_t>(rank) == shape.size() && has_layout(shape, strides, found_shape, found_strides);
    return is_same ? std::optional(data) : std::nullopt;
  }
  const dlpack::Tensor seen = view(tensor);
  const bool is_same =
      static_cast<size_t>(seen.rank) == shape.size() && has_layout(shape, strides, seen.shape, seen.strides);
  return is_same ? std::optional(data_in(seen)) : std::nullopt;
}

std::optional<int64_t> TorchTensors::version_of(PyObject* tensor) const {
  if (const void* const at = inside(tensor); at != nullptr) {
    try {
      return c_->version(at);
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }
  const nb::object version =
      nb::steal(get_version_(version_.ptr(), tensor, reinterpret_cast<PyObject*>(Py_TYPE(tensor))));
  if (!version.is_valid()) {
    PyErr_Clear();
    return std::nullopt;
  }
  return PyLong_AsLongLong(version.ptr());
}

void* TorchTensors::current_stream(int device) const {
  void* stream = nullptr;
  if (api_.current_stream(dlpack::kCuda, device, &stream) != 0) nb::raise_python_error();
  return stream;
}

int TorchTensors::current_gpu() const {
  return current_gpu_.is_none() ? -1 : nb::cast<int>(current_gpu_());
}

bool TorchTensors::describe(PyObject* tensor, std::vector<uint64_t>& words) const {
  auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(tensor));
  if (type != class_.ptr() && type != parameter_.ptr()) return false;
  const nb::object is_negated = nb::steal(PyObject_CallOneArg(is_negated_.ptr(), tensor));
  if (!is_negated.is_valid()) nb::raise_python_error();
  if (is_negated.ptr() != Py_False) return false;
  int64_t rank = 0, *shape = nullptr, *strides = nullptr;
  int32_t dtype = 0, layout = 0, place = 0, index = 0;
  void* const at = inside(tensor);
  dlpack::Tensor seen;
  if (at != nullptr) {
    if (c_->dtype(at, &dtype) != 0 || c_->layout(at, &layout) != 0 || layout != 0 || c_->device_type(at, &place) != 0 ||
        c_->device_index(at, &index) != 0 || place > 1 || c_->rank(at, &rank) != 0 || c_->sizes(at, &shape) != 0 ||
        c_->strides(at, &strides) != 0) {
      return false;
    }
  } else {
    if (api_.view(tensor, &seen) != 0) {
      PyErr_Clear();
      return false;
    }
    if (seen.device.type != dlpack::kCpu && seen.device.type != dlpack::kCuda) return false;
    rank = seen.rank, shape = seen.shape, strides = seen.strides;
    dtype = int32_t{seen.dtype.code} << 8 | seen.dtype.bits;
    place = seen.device.type, index = seen.device.id;
  }
  words.push_back(static_cast<uint64_t>(dtype) << 32 | static_cast<uint64_t>(place) << 24 |
                  static_cast<uint64_t>(index + 1) << 8 | static_cast<uint64_t>(rank));
  for (int64_t d = 0; d < rank; ++d) words.push_back(static_cast<uint64_t>(shape[d]));
  if (strides == nullptr) return true;
  for (int64_t d = 0; d < rank; ++d) words.push_back(static_cast<uint64_t>(strides[d]));
  return true;
}

void register_torch_tensors(nb::module_& module) {
  nb::class_<TorchTensors>(module, "TorchTensors", "Reads tensors of PyTorch's class.")
      .def(nb::init<nb::handle>(), nb::arg("tensor_class"));
}

}  // namespace heddle::python
