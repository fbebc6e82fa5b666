#include "tensor.h"

#include <fmt/format.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "dlpack.h"
#include "driver/options/options.h"
#include "dtypes.h"
#include "errors.h"
#include "narrow.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

using runtime::CudaContext;

uint64_t address_of(const void* data) {
  return reinterpret_cast<uint64_t>(data);
}

template <typename Managed>
struct Export {
  Managed managed = {};
  PyTensor tensor;  // keeps the memory
  Shape shape;
  std::vector<int64_t> strides;
};

// Also called by threads of others and without the GIL.
template <typename Managed>
void end_export(Managed* self) {
  const nb::gil_scoped_acquire gil;
  delete static_cast<Export<Managed>*>(self->context);
}

dlpack::Device dlpack_device(int device) {
  return device == kHost ? dlpack::Device{dlpack::kCpu, 0} : dlpack::Device{dlpack::kCuda, device};
}

std::vector<int64_t> dense_strides(const Shape& shape, int64_t unit) {
  std::vector<int64_t> strides(shape.size(), unit);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<int64_t>(shape[d], 1);
  return strides;
}

template <typename Managed>
Managed* export_tensor(const PyTensor& tensor, bool is_copied) {
  const auto type = dlpack_type(tensor.dtype());
  if (!type) {
    fail(ErrorCode::kUnsupportedType, "heddle.Tensor",
         fmt::format("DLPack has no {} of one element per byte", to_string(tensor.dtype())), "Use numpy()");
  }
  const Array array = tensor.array();
  auto* out = new Export<Managed>{{}, tensor, tensor.shape(), dense_strides(tensor.shape(), 1)};
  auto& described = out->managed.tensor;
  described.data = array.data;
  described.device = dlpack_device(array.device);
  described.rank = static_cast<int32_t>(out->shape.size());
  described.dtype = *type;
  described.shape = out->shape.data();
  described.strides = out->strides.data();
  if constexpr (std::is_same_v<Managed, dlpack::ManagedVersioned>) {
    out->managed.flags = is_copied ? dlpack::kIsCopied : 0;
  }
  out->managed.context = out;
  out->managed.deleter = &end_export<Managed>;
  return &out->managed;
}

// Of a capsule that nobody took.
template <typename Managed>
void drop(void* managed) noexcept {
  auto* self = static_cast<Managed*>(managed);
  self->deleter(self);
}

template <typename Managed>
nb::capsule capsule_of(const PyTensor& tensor, const char* name, bool is_copied) {
  PyObject* capsule = PyCapsule_New(export_tensor<Managed>(tensor, is_copied), name, [](PyObject* self) {
    const char* const called = PyCapsule_GetName(self);
    if (called == nullptr || std::string_view(called).starts_with("used_")) return;
    drop<Managed>(PyCapsule_GetPointer(self, called));
  });
  if (capsule == nullptr) nb::raise_python_error();
  return nb::steal<nb::capsule>(capsule);
}

struct BufferInfo {
  std::vector<Py_ssize_t> shape, strides;
};

int get_buffer(PyObject* object, Py_buffer* view, int) noexcept {
  const PyTensor& tensor = *nb::inst_ptr<PyTensor>(object);
  if (tensor.device() != kHost) {
    PyErr_SetString(PyExc_BufferError, "a heddle.Tensor on a GPU has no buffer: use numpy(), which copies it");
    view->obj = nullptr;
    return -1;
  }
  auto info = std::make_unique<BufferInfo>();
  const auto unit = static_cast<int64_t>(size_of(tensor.dtype()));
  for (const int64_t stride : dense_strides(tensor.shape(), unit)) info->strides.push_back(stride);
  info->shape.assign(tensor.shape().begin(), tensor.shape().end());
  view->buf = tensor.array().data;
  view->itemsize = unit;
  view->len = static_cast<Py_ssize_t>(tensor.bytes());
  view->ndim = static_cast<int>(info->shape.size());
  view->format = const_cast<char*>(buffer_format(tensor.dtype()));
  view->readonly = 0;
  view->shape = info->shape.data();
  view->strides = info->strides.data();
  view->suboffsets = nullptr;
  view->internal = info.release();
  view->obj = object;
  Py_INCREF(object);
  return 0;
}

void release_buffer(PyObject*, Py_buffer* view) noexcept {
  delete static_cast<BufferInfo*>(view->internal);
}

PyType_Slot tensor_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)},
                              {Py_bf_releasebuffer, reinterpret_cast<void*>(&release_buffer)},
                              {0, nullptr}};

// "cpu", "cuda", "cuda:1"
int device_named(const std::string& name) {
  if (name == "cpu") return kHost;
  try {
    return driver::device_of(name);
  } catch (const Error& error) {
    refuse_argument("device", fmt::format("\"{}\" is no device", name), "Use \"cpu\", \"cuda\" or \"cuda:1\"");
  }
}

DType dtype_named(const std::string& name) {
  if (const auto type = parse_dtype(name)) return *type;
  if (const auto type = dtype_of_numpy(name)) return *type;
  refuse_argument("dtype", fmt::format("\"{}\" is no element type", name), "Use \"f32\", \"bf16\", \"float32\", ...");
}

nb::object numpy_of(const PyTensor& tensor) {
  Tensor host;
  {
    const nb::gil_scoped_release free;
    host = tensor.to_host();
  }
  return numpy_family().of_host(std::move(host));
}

// An array's content, on `device`.
PyTensor tensor_of(nb::handle object, nb::handle dtype, const std::string& device, nb::handle stream) {
  const Family& family = family_of(object, "array");
  void* const handle = stream_of(stream);
  Array array = family.view(object, "array", handle);
  if (array.device != kHost) {
    refuse_argument("array", "it lies on " + array.place() + " already", "Give it to the model as it is");
  }
  if (!array.is_dense()) refuse_argument("array", "its memory is not dense", family.how_to_make_dense());
  if (!dtype.is_none()) {
    const DType wanted = dtype_named(nb::cast<std::string>(dtype));
    const bool bits = is_unsigned_int(array.dtype) && size_of(array.dtype) == size_of(wanted);
    if (wanted != array.dtype && !bits) {
      refuse_argument("dtype",
                      fmt::format("the array has {}, whose bits are no {}", to_string(array.dtype), to_string(wanted)),
                      family.how_to_convert(wanted));
    }
    array.dtype = wanted;
  }
  array = widened(std::move(array));
  Tensor copy(array.dtype, array.shape);
  if (copy.bytes() > 0) std::memcpy(copy.mutable_data(), array.data, copy.bytes());
  const int at = device_named(device);
  const PyTensor here(std::move(copy));
  const nb::gil_scoped_release free;
  return at == kHost ? here : here.to_device(at, handle);
}

[[noreturn]] void refuse_export(const std::string& why) {
  throw nb::buffer_error(why.c_str());
}

// The device that `dl_device` asks for: kHost, or the ordinal of a GPU.
int device_asked(nb::handle dl_device, int otherwise) {
  if (dl_device.is_none()) return otherwise;
  std::pair<int, int> device;
  if (!nb::try_cast(dl_device, device)) {
    throw nb::type_error("dl_device is a pair of numbers: the kind of the device in DLPack, and its ordinal");
  }
  if (device.first == dlpack::kCpu) return kHost;
  if (device.first == dlpack::kCuda && device.second >= 0) return device.second;
  refuse_export(
      fmt::format("a heddle.Tensor cannot be exported to the device ({}, {}) of DLPack: it lies in host "
                  "memory (1, 0) or on a GPU (2, N)",
                  device.first, device.second));
}

std::optional<bool> copy_asked(nb::handle copy) {
  if (copy.is_none()) return std::nullopt;
  bool asked = false;
  if (!nb::try_cast(copy, asked)) throw nb::type_error("copy is True, False or None");
  return asked;
}

// __dlpack__()
nb::capsule lend(const PyTensor& tensor, nb::handle stream, nb::handle max_version, nb::handle dl_device,
                 nb::handle copy) {
  if (!dlpack_type(tensor.dtype())) {
    refuse_export(fmt::format("DLPack has no {} of one element per byte; use numpy()", to_string(tensor.dtype())));
  }
  const bool versioned = !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
  const int device = device_asked(dl_device, tensor.device());
  const std::optional<bool> is_copy = copy_asked(copy);
  const bool moves = device != tensor.device();
  if (moves && is_copy == false) {
    refuse_export(fmt::format("a heddle.Tensor on {} gets to another device by a copy only, and copy=False forbids it",
                              tensor.array().place()));
  }
  const bool waits = stream.is_none() || nb::cast<int64_t>(stream) != -1;
  void* const consumer = waits ? stream_of(stream) : nullptr;  // None: the default stream
  const bool copies = moves || is_copy == true;
  const PyTensor lent = [&] {
    if (!copies) return tensor;
    const nb::gil_scoped_release free;
    if (!moves) return tensor.copy();
    return device == kHost ? PyTensor(tensor.to_host()) : tensor.to_device(device, consumer);
  }();
  if (waits) lent.wait_on(consumer);
  return lent.to_dlpack(versioned, copies);
}

}  // namespace

DevicePool& DevicePool::of(int device) {
  static std::mutex mutex;
  static auto* pools = new std::map<int, std::unique_ptr<DevicePool>>;  // objects may outlive what ends with a process
  const std::lock_guard lock(mutex);
  auto& pool = (*pools)[device];
  if (pool == nullptr) pool.reset(new DevicePool(device));
  return *pool;
}

std::shared_ptr<void> DevicePool::take(size_t bytes, void* stream) {
  constexpr size_t kUnit = 512;
  const size_t rounded = std::max<size_t>((bytes + kUnit - 1) / kUnit, 1) * kUnit;
  std::unique_ptr<Block> block;
  {
    const std::lock_guard lock(mutex_);
    const auto fits = [&](const auto& b) { return b->stream == stream && b->buffer->size() == rounded; };
    if (const auto found = std::find_if(free_.begin(), free_.end(), fits); found != free_.end()) {
      block = std::move(*found);
      free_.erase(found);
      free_bytes_ -= rounded;
    }
  }
  if (block == nullptr) {
    context_->make_current();
    block.reset(new Block{std::make_unique<runtime::CudaBuffer>(*context_, rounded, "a tensor"), stream});
  }
  void* const data = reinterpret_cast<void*>(block->buffer->address());
  return {data, [this, held = block.release()](void*) { give_back(std::unique_ptr<Block>(held)); }};
}

void DevicePool::give_back(std::unique_ptr<Block> block) {
  constexpr size_t kMost = size_t{256} << 20;
  std::vector<std::unique_ptr<Block>> dropped;  // freed without the lock: that waits for the GPU
  const std::lock_guard lock(mutex_);
  free_bytes_ += block->buffer->size();
  free_.push_back(std::move(block));
  while (free_bytes_ > kMost) {
    free_bytes_ -= free_.front()->buffer->size();
    dropped.push_back(std::move(free_.front()));
    free_.erase(free_.begin());
  }
}

PyTensor::PyTensor(DType dtype, Shape shape, int device, void* stream)
    : dtype_(dtype), shape_(std::move(shape)), device_(device), stream_(stream) {
  memory_ = DevicePool::of(device).take(bytes(), stream);
}

Array PyTensor::array() const {
  Array array;
  array.data = device_ == kHost ? const_cast<void*>(host_.data()) : memory_.get();
  array.dtype = dtype_;
  array.shape = shape_;
  array.device = device_;
  return array;
}

Tensor PyTensor::to_host() const {
  if (device_ == kHost) return host_;
  const CudaContext& context = DevicePool::of(device_).context();
  context.make_current();
  Tensor host(dtype_, shape_);
  if (host.bytes() > 0) {
    const auto& driver = context.driver();
    context.check(driver.copy_out_async(host.mutable_data(), address_of(memory_.get()), host.bytes(), stream_),
                  "cuMemcpyDtoHAsync");
    context.check(driver.stream_synchronize(stream_), "cuStreamSynchronize");
  }
  return host;
}

PyTensor PyTensor::to_device(int device, void* stream) const {
  const Tensor host = to_host();
  PyTensor made(dtype_, shape_, device, stream);
  const CudaContext& context = DevicePool::of(device).context();
  context.make_current();
  if (host.bytes() > 0) {
    const auto& driver = context.driver();
    context.check(driver.copy_in_async(address_of(made.memory_.get()), host.data(), host.bytes(), stream),
                  "cuMemcpyHtoDAsync");
    context.check(driver.stream_synchronize(stream), "cuStreamSynchronize");
  }
  return made;
}

PyTensor PyTensor::copy() const {
  if (device_ == kHost) {
    Tensor host = Tensor::unfilled(dtype_, shape_);
    if (host.bytes() > 0) std::memcpy(host.mutable_data(), host_.data(), host.bytes());
    return PyTensor(std::move(host));
  }
  PyTensor made(dtype_, shape_, device_, stream_);
  const CudaContext& context = DevicePool::of(device_).context();
  context.make_current();
  if (bytes() > 0) {
    const auto& driver = context.driver();
    context.check(driver.copy_async(address_of(made.memory_.get()), address_of(memory_.get()), bytes(), stream_),
                  "cuMemcpyDtoDAsync");
  }
  return made;
}

void PyTensor::wait_on(void* consumer) const {
  if (device_ == kHost || consumer == stream_) return;
  const CudaContext& context = DevicePool::of(device_).context();
  const auto& driver = context.driver();
  constexpr unsigned kNoTiming = 2;
  context.make_current();
  CudaDriver::Handle event = nullptr;
  context.check(driver.event_create(&event, kNoTiming), "cuEventCreate");
  const std::shared_ptr<void> end(nullptr, [&](const void*) { driver.event_destroy(event); });
  context.check(driver.event_record(event, stream_), "cuEventRecord");
  context.check(driver.stream_wait(consumer, event, 0), "cuStreamWaitEvent");
}

nb::capsule PyTensor::to_dlpack(bool versioned, bool is_copied) const {
  return versioned ? capsule_of<dlpack::ManagedVersioned>(*this, "dltensor_versioned", is_copied)
                   : capsule_of<dlpack::Managed>(*this, "dltensor", is_copied);
}

dlpack::ManagedVersioned* managed_of(const PyTensor& tensor) {
  return export_tensor<dlpack::ManagedVersioned>(tensor, false);
}

void register_tensor(nb::module_& module) {
  nb::class_<PyTensor>(module, "Tensor", nb::type_slots(tensor_slots),
                       "Dense memory of the host or of a GPU, which other libraries take by `__dlpack__`.")
      .def_prop_ro(
          "shape", [](const PyTensor& t) { return nb::tuple(nb::cast(t.shape())); }, "Extents.")
      .def_prop_ro(
          "dtype", [](const PyTensor& t) { return std::string(to_string(t.dtype())); },
          "Element type as Heddle spells it: \"f32\", \"bf16\".")
      .def_prop_ro(
          "device", [](const PyTensor& t) { return t.device() == kHost ? "cpu" : fmt::format("cuda:{}", t.device()); },
          "\"cpu\" or \"cuda:N\".")
      .def_prop_ro("nbytes", &PyTensor::bytes, "Bytes of memory.")
      .def_prop_ro(
          "data_ptr", [](const PyTensor& t) { return address_of(t.array().data); }, "The address of the first element.")
      .def("numpy", &numpy_of,
           "A NumPy array: of the same memory on the host; of a copy on a GPU, for which it waits for the stream. "
           "Elements narrower than a byte are copied, too.")
      .def("__dlpack_device__",
           [](const PyTensor& t) {
             const dlpack::Device at = dlpack_device(t.device());
             return nb::make_tuple(int{at.type}, at.id);
           })
      .def("__dlpack__", &lend, nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
           nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none(),
           "A capsule of DLPack, as the array API standard describes it. Raises BufferError where that cannot be.")
      .def("__repr__", [](const PyTensor& t) {
        return fmt::format("heddle.Tensor({}{} on {})", to_string(t.dtype()), to_string(t.shape()), t.array().place());
      });
  module.def("tensor", &tensor_of, nb::arg("array"), nb::arg("dtype") = nb::none(), nb::kw_only(),
             nb::arg("device") = "cpu", nb::arg("stream") = nb::none(),
             "A copy of a host array as a heddle.Tensor on `device` (\"cpu\", \"cuda\", \"cuda:1\").\n\n"
             "`dtype` takes the elements of an array of unsigned integers for another type of their size, such as "
             "\"bf16\" where NumPy has none. Raises heddle.InputError, heddle.MachineError.");
  module.def(
      "empty",
      [](Shape shape, const std::string& dtype, const std::string& device, nb::handle stream) {
        const int at = device_named(device);
        const DType type = dtype_named(dtype);
        if (at == kHost) return PyTensor(Tensor(type, std::move(shape)));
        element_count(shape);
        return PyTensor(type, std::move(shape), at, stream_of(stream));
      },
      nb::arg("shape"), nb::arg("dtype"), nb::kw_only(), nb::arg("device") = "cpu", nb::arg("stream") = nb::none(),
      "A heddle.Tensor with any content, for `out` and `workspace` of a call.");
}

}  // namespace heddle::python
