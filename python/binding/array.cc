#include "array.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "dlpack.h"
#include "dtypes.h"
#include "errors.h"
#include "narrow.h"
#include "tensor.h"

namespace nb = nanobind;

namespace heddle::python {

dlpack::ManagedVersioned* managed_of(const PyTensor& tensor);  // tensor.cc

bool Array::is_dense() const {
  int64_t expected = 1;
  if (strides.empty() || element_count(shape) == 0) return true;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != expected) return false;
    expected *= shape[d];
  }
  return true;
}

std::string Array::place() const {
  return device == kHost ? "host memory" : fmt::format("cuda:{}", device);
}

Array Family::view_to_write(nb::handle object, const std::string& where, void* stream) const {
  Array array = view_with_flags(object, where, stream);
  if (array.read_only) refuse_input(where, "its memory is read-only", "Give an array that may be written");
  return array;
}

namespace {

// Keeps what `object` is, and what ends it, as long as somebody holds the result.
template <typename End>
std::shared_ptr<const void> held(const void* object, End end) {
  return {object, [end](const void*) {
            const nb::gil_scoped_acquire gil;
            end();
          }};
}

Array array_of(const dlpack::Tensor& tensor, const std::string& where) {
  Array array;
  array.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  const auto dtype = dtype_of(tensor.dtype);
  if (!dtype) {
    fail(ErrorCode::kUnsupportedType, where, fmt::format("Heddle has no type like {}", describe(tensor.dtype)),
         "Convert it");
  }
  array.dtype = *dtype;
  array.shape.assign(tensor.shape, tensor.shape + tensor.rank);
  if (tensor.strides != nullptr) array.strides.assign(tensor.strides, tensor.strides + tensor.rank);
  switch (tensor.device.type) {
    case dlpack::kCpu:
    case dlpack::kCudaHost:
      array.device = kHost;
      break;
    case dlpack::kCuda:
    case dlpack::kCudaManaged:
      array.device = tensor.device.id;
      break;
    default:
      refuse_input(where, fmt::format("it lies on a device of DLPack's kind {}", tensor.device.type),
                   "Copy it to the host or to a GPU of NVIDIA");
  }
  return array;
}

// NumPy's arrays, and whatever else has a buffer.
class NumpyFamily : public Family {
 public:
  Array view(nb::handle object, const std::string& where, void*) const override {
    auto buffer = std::make_unique<Py_buffer>();
    if (PyObject_GetBuffer(object.ptr(), buffer.get(), PyBUF_FULL_RO) == 0) {
      return array_of(std::move(buffer), std::nullopt, where);
    }
    const nb::python_error refused;
    if (!nb::hasattr(object, "dtype")) {
      refuse_input(where, fmt::format("a {} does not give its buffer: {}", class_name(object), refused.what()),
                   "Copy it: numpy.array(x)");
    }
    // Types that the buffer protocol lacks, by their bits.
    const std::string name = dtype_name(object);
    const auto dtype = dtype_of_numpy(name);
    if (!dtype) refuse_type(where, name);
    const nb::object bits = object.attr("view")(fmt::format("u{}", size_of(*dtype)));
    if (PyObject_GetBuffer(bits.ptr(), buffer.get(), PyBUF_FULL_RO) != 0) nb::raise_python_error();
    Array array = array_of(std::move(buffer), dtype, where);
    array.low_bits = is_narrow(*dtype);
    return array;
  }

  nb::object of_host(Tensor tensor) const override {
    if (tensor.dtype() == DType::kString) return of_strings(tensor);
    const DType dtype = tensor.dtype();
    // First, so that its absence costs no run.
    const nb::object extension = is_extension(dtype) ? extension_dtype(dtype) : nb::object();
    if (is_narrow(dtype)) tensor = in_low_bits(tensor);
    nb::object array = numpy().attr("asarray")(nb::cast(PyTensor(std::move(tensor))));
    return extension.is_valid() ? nb::object(array.attr("view")(extension)) : array;
  }

  nb::object empty(DType, const Shape&, int, void*) const override {
    fail(ErrorCode::kInternal, "heddle.Model", "NumPy has no arrays on a GPU");
  }
  bool allocates_in_order() const override { return false; }
  void* current_stream(int) const override { return nullptr; }
  std::string how_to_convert(DType dtype) const override {
    return fmt::format("Use x.astype({}.{})", is_extension(dtype) ? "ml_dtypes" : "numpy", numpy_name(dtype));
  }
  std::string how_to_make_dense() const override { return "Use numpy.ascontiguousarray(x)"; }
  std::string how_to_move(int device) const override {
    return fmt::format("Use heddle.tensor(x, device=\"cuda:{}\"), or give all inputs as NumPy arrays", device);
  }

 private:
  static nb::object numpy() { return nb::module_::import_("numpy"); }

  static std::string dtype_name(nb::handle object) {
    const nb::object dtype = nb::getattr(object, "dtype", nb::none());
    return dtype.is_none() ? class_name(object) : nb::cast<std::string>(nb::str(nb::getattr(dtype, "name", dtype)));
  }

  [[noreturn]] static void refuse_byte_order(const std::string& where, nb::handle object, const char* format) {
    const bool has_dtype = nb::hasattr(object, "dtype");
    refuse_input(
        where,
        fmt::format("the byte order of its elements is big-endian (\"{}\"), this machine's is little-endian", format),
        has_dtype ? "Use x.astype(x.dtype.newbyteorder(\"=\"))"
                  : "Use a = numpy.asarray(x), then a.astype(a.dtype.newbyteorder(\"=\"))");
  }

  [[noreturn]] static void refuse_type(const std::string& where, const std::string& name) {
    fail(ErrorCode::kUnsupportedType, where, fmt::format("Heddle has no type like {}", name), "Convert it");
  }

  static nb::object extension_dtype(DType dtype) {
    const std::string name(numpy_name(dtype));
    try {
      return nb::module_::import_("numpy").attr("dtype")(nb::module_::import_("ml_dtypes").attr(name.c_str()));
    } catch (nb::python_error&) {
      fail(ErrorCode::kUnsupportedType, "heddle.Model",
           fmt::format("NumPy has no {} without the package ml_dtypes", name),
           "pip install ml_dtypes, or give tensors of a library that has the type");
    }
  }

  static nb::object of_strings(const Tensor& tensor) {
    nb::object array = numpy().attr("array")(nb::cast(tensor.strings()), nb::arg("dtype") = "object");
    return array.attr("reshape")(nb::tuple(nb::cast(tensor.shape())));
  }

  static Array array_of(std::unique_ptr<Py_buffer> buffer, std::optional<DType> dtype, const std::string& where) {
    Py_buffer* const view = buffer.release();
    Array array;
    array.hold = held(view, [view] {
      PyBuffer_Release(view);
      delete view;
    });
    const char* const format = view->format == nullptr ? "B" : view->format;
    if (!dtype) {
      const auto bytes = static_cast<size_t>(view->itemsize);
      if (is_byte_swapped(format, bytes)) refuse_byte_order(where, view->obj, format);
      dtype = dtype_of_format(format, bytes);
    }
    if (!dtype) {
      const bool has_dtype = nb::hasattr(view->obj, "dtype");
      refuse_type(where, has_dtype ? dtype_name(view->obj)
                                   : fmt::format("the elements \"{}\" of a {}", format, class_name(view->obj)));
    }
    if (view->suboffsets != nullptr) {
      refuse_input(where, "its rows lie in memory of their own (suboffsets of its buffer)",
                   "Copy it to dense memory: numpy.array(x)");
    }
    array.data = view->buf;
    array.dtype = *dtype;
    array.read_only = view->readonly != 0;
    // Exporters may omit a field that follows from the others, even if it was requested; ctypes omits the strides.
    if (view->shape == nullptr) {
      if (view->ndim > 0) array.shape = {view->len / view->itemsize};
      return array;
    }
    array.shape.assign(view->shape, view->shape + view->ndim);
    if (view->strides == nullptr) return array;
    for (int d = 0; d < view->ndim; ++d) {
      // A stride that is no whole number of elements is no dense one either way.
      array.strides.push_back(view->strides[d] % view->itemsize == 0 ? view->strides[d] / view->itemsize : 0);
    }
    return array;
  }
};

// heddle.Tensor
class OwnFamily : public Family {
 public:
  Array view(nb::handle object, const std::string&, void*) const override {
    const auto& tensor = nb::cast<const PyTensor&>(object);
    return tensor.array();
  }
  nb::object of_host(Tensor tensor) const override { return nb::cast(PyTensor(std::move(tensor))); }
  nb::object empty(DType dtype, const Shape& shape, int device, void* stream) const override {
    return nb::cast(PyTensor(dtype, shape, device, stream));
  }
  bool allocates_in_order() const override { return false; }
  void* current_stream(int) const override { return nullptr; }
  std::string how_to_convert(DType dtype) const override {
    return fmt::format("Make it from an array of {}", to_string(dtype));
  }
  std::string how_to_make_dense() const override { return "Make it from a dense array"; }
  std::string how_to_move(int device) const override {
    return device == kHost ? "Use x.numpy()" : fmt::format("Use heddle.tensor(x.numpy(), device=\"cuda:{}\")", device);
  }
};

// What libraries other than NumPy have in common: names of their own.
class LibraryFamily : public Family {
 public:
  explicit LibraryFamily(std::string library) : library_(std::move(library)) {}
  bool allocates_in_order() const override { return library_ == "torch" || library_ == "cupy"; }
  std::string how_to_convert(DType dtype) const override {
    return library_ == "torch" ? fmt::format("Use x.to(torch.{})", numpy_name(dtype))
                               : fmt::format("Use x.astype(\"{}\")", numpy_name(dtype));
  }
  std::string how_to_make_dense() const override {
    return library_ == "torch" ? "Use x.contiguous()" : "Copy it to dense memory";
  }
  std::string how_to_move(int device) const override {
    if (library_ == "torch")
      return fmt::format("Use x.to(\"{}\")", device == kHost ? "cpu" : fmt::format("cuda:{}", device));
    return device == kHost ? "Copy it to the host" : fmt::format("Copy it to GPU {}", device);
  }

 protected:
  const std::string& library() const { return library_; }

 private:
  std::string library_;
};

void set_error(void*, const char* kind, const char* message) {
  const nb::gil_scoped_acquire gil;
  PyErr_Format(PyExc_RuntimeError, "%s: %s", kind, message);
}

// Libraries with the C interface of DLPack.
class ExchangeFamily : public LibraryFamily {
 public:
  ExchangeFamily(const dlpack::ExchangeApi& api, std::string library) : LibraryFamily(std::move(library)), api_(api) {}

  Array view(nb::handle object, const std::string& where, void*) const override {
    dlpack::Tensor tensor;
    if (api_.view != nullptr) {
      if (api_.view(object.ptr(), &tensor) != 0) nb::raise_python_error();
      return array_of(tensor, where);
    }
    return owned(object, where);
  }
  nb::object of_host(Tensor tensor) const override {
    if (tensor.dtype() == DType::kString) return numpy_family().of_host(std::move(tensor));
    return object_of(managed_of(PyTensor(std::move(tensor))));
  }
  nb::object empty(DType dtype, const Shape& shape, int device, void*) const override {
    dlpack::Tensor prototype;
    const auto type = dlpack_type(dtype);
    if (!type) {
      fail(ErrorCode::kUnsupportedType, "heddle.Model", fmt::format("DLPack has no {}", to_string(dtype)),
           "Give the outputs as `out`");
    }
    prototype.device = {dlpack::kCuda, device};
    prototype.rank = static_cast<int32_t>(shape.size());
    prototype.dtype = *type;
    prototype.shape = const_cast<int64_t*>(shape.data());
    dlpack::ManagedVersioned* made = nullptr;
    if (api_.allocate(&prototype, &made, nullptr, &set_error) != 0) nb::raise_python_error();
    return object_of(made);
  }
  void* current_stream(int device) const override {
    void* stream = nullptr;
    if (api_.current_stream != nullptr && api_.current_stream(dlpack::kCuda, device, &stream) != 0) {
      nb::raise_python_error();
    }
    return stream;
  }

 private:
  // A borrowed tensor has no flags. Torch's tensors are never read-only, and borrowing is cheaper.
  Array view_with_flags(nb::handle object, const std::string& where, void* stream) const override {
    return library() == "torch" ? view(object, where, stream) : owned(object, where);
  }

  Array owned(nb::handle object, const std::string& where) const {
    dlpack::ManagedVersioned* owned = nullptr;
    if (api_.own(object.ptr(), &owned) != 0) nb::raise_python_error();
    const auto hold = held(owned, [owned] { owned->deleter(owned); });
    Array array = array_of(owned->tensor, where);
    array.read_only = (owned->flags & dlpack::kReadOnly) != 0;
    array.hold = hold;
    return array;
  }

  nb::object object_of(dlpack::ManagedVersioned* tensor) const {
    void* object = nullptr;
    if (api_.to_object(tensor, &object) != 0) nb::raise_python_error();
    return nb::steal<nb::object>(static_cast<PyObject*>(object));
  }

  const dlpack::ExchangeApi& api_;
};

// Other libraries with `__dlpack__`. What they have beside it heddle._arrays knows.
class PythonFamily : public LibraryFamily {
 public:
  PythonFamily(nb::object hooks, std::string library) : LibraryFamily(std::move(library)), hooks_(std::move(hooks)) {}

  Array view(nb::handle object, const std::string& where, void* stream) const override {
    const nb::object capsule = hooks_.attr("export")(object, reinterpret_cast<uintptr_t>(stream));
    const char* const name = PyCapsule_GetName(capsule.ptr());
    if (name != nullptr && std::string_view(name) == "dltensor_versioned") {
      return take<dlpack::ManagedVersioned>(capsule, name, "used_dltensor_versioned", where);
    }
    return take<dlpack::Managed>(capsule, "dltensor", "used_dltensor", where);
  }
  nb::object of_host(Tensor tensor) const override {
    if (tensor.dtype() == DType::kString) return numpy_family().of_host(std::move(tensor));
    return hooks_.attr("from_dlpack")(nb::cast(PyTensor(std::move(tensor))));
  }
  nb::object empty(DType dtype, const Shape& shape, int device, void* stream) const override {
    nb::object made = hooks_.attr("empty")(nb::tuple(nb::cast(shape)), std::string(numpy_name(dtype)), device);
    if (!made.is_none()) return made;
    return hooks_.attr("from_dlpack")(nb::cast(PyTensor(dtype, shape, device, stream)));
  }
  void* current_stream(int device) const override { return stream_of(hooks_.attr("current_stream")(device)); }

 private:
  template <typename Managed>
  static Array take(const nb::object& capsule, const char* name, const char* used, const std::string& where) {
    auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
    if (managed == nullptr) nb::raise_python_error();
    PyCapsule_SetName(capsule.ptr(), used);
    const auto hold = held(managed, [managed] {
      if (managed->deleter != nullptr) managed->deleter(managed);
    });
    Array array = array_of(managed->tensor, where);
    if constexpr (std::is_same_v<Managed, dlpack::ManagedVersioned>) {
      array.read_only = (managed->flags & dlpack::kReadOnly) != 0;
    }
    array.hold = hold;
    return array;
  }

  nb::object hooks_;
};

std::string library_of(nb::handle type) {
  const std::string module = nb::cast<std::string>(nb::str(type.attr("__module__")));
  return module.substr(0, module.find('.'));
}

std::unique_ptr<Family> make_family(nb::handle object, const std::string& where) {
  const nb::handle type = object.type();
  if (nb::isinstance<PyTensor>(object)) return std::make_unique<OwnFamily>();
  const std::string library = library_of(type);
  const bool has_dlpack = nb::hasattr(type, "__dlpack__");
  if (library == "numpy" || (!has_dlpack && PyObject_CheckBuffer(object.ptr()) != 0)) {
    return std::make_unique<NumpyFamily>();
  }
  if (const auto* api = exchange_api_of(type)) return std::make_unique<ExchangeFamily>(*api, library);
  if (has_dlpack) {
    return std::make_unique<PythonFamily>(nb::module_::import_("heddle._arrays").attr("hooks_of")(type), library);
  }
  const bool is_cuda = nb::hasattr(type, "__cuda_array_interface__");
  refuse_input(where, fmt::format("a {} is no array", class_name(object)),
               is_cuda ? "Make it one of CuPy: cupy.asarray(x)"
                       : "Give a NumPy array, or one of a library that has __dlpack__: numpy.asarray(x, dtype=...)");
}

}  // namespace

const Family& family_of(nb::handle object, const std::string& where) {
  // Under the GIL; never destroyed, as Python may be gone by then. A class that ends leaves, before another one can
  // have its address.
  static auto* known = new std::map<PyObject*, std::unique_ptr<Family>>;
  PyObject* const type = object.type().ptr();
  if (const auto found = known->find(type); found != known->end()) return *found->second;
  auto family = make_family(object, where);
  PyObject* const watch = PyWeakref_NewRef(type, nb::cpp_function([type](nb::handle reference) {
                                                   known->erase(type);
                                                   reference.dec_ref();
                                                 }).ptr());
  if (watch == nullptr) nb::raise_python_error();
  return *known->insert_or_assign(type, std::move(family)).first->second;
}

const Family& numpy_family() {
  static const auto* family = new NumpyFamily;
  return *family;
}

const dlpack::ExchangeApi* exchange_api_of(nb::handle cls) {
  const nb::object api = nb::getattr(cls, "__dlpack_c_exchange_api__", nb::none());
  if (!PyCapsule_CheckExact(api.ptr())) return nullptr;
  const auto* found = static_cast<const dlpack::ExchangeApi*>(PyCapsule_GetPointer(api.ptr(), "dlpack_exchange_api"));
  PyErr_Clear();
  return found != nullptr && found->version.major == 1 ? found : nullptr;
}

void* stream_of(nb::handle stream) {
  uintptr_t handle = 0;
  if (stream.is_none()) return nullptr;
  if (!nb::try_cast(stream, handle)) {
    handle = nb::cast<uintptr_t>(nb::module_::import_("heddle._arrays").attr("stream_handle")(stream));
  }
  // DLPack and the driver call the default stream 1, too.
  return handle == 1 ? nullptr : reinterpret_cast<void*>(handle);
}

}  // namespace heddle::python
