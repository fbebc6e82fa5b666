#include "launch_key.h"

#include <bit>
#include <string_view>

#include "array.h"
#include "dlpack.h"
#include "tensor.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

constexpr uint64_t kAlignment = 16;
constexpr uint64_t kAligned = 1 << 8, kOne = 1 << 9, kBeyond32 = 1 << 10, kBeyondSigned = 1 << 11;
constexpr uint64_t kReadOnly = 1 << 16;  // a kernel that stores there is refused by Python

// How arrays of a class are read.
struct Reader {
  enum Kind { kNumpy, kHeddle, kExchange, kUnknown };
  nb::object cls;
  Kind kind = kUnknown;
  const dlpack::ExchangeApi* api = nullptr;
};

// The part of numpy.ndarray that its binary interface promises.
struct NumpyArray {
  PyObject head;
  char* data;
  int rank;
  intptr_t* shape;
  intptr_t* strides;
  PyObject* base;
  PyObject* dtype;
  int flags;
};
constexpr int kWriteable = 0x400;  // of NumPy's flags

bool is_class(nb::handle cls, const char* module, const char* name) {
  return std::string_view(nb::str(cls.attr("__module__")).c_str()) == module &&
         std::string_view(nb::str(cls.attr("__qualname__")).c_str()) == name;
}

Reader reader_for(nb::handle cls) {
  Reader reader{nb::borrow(cls)};
  if (cls.is(nb::type<PyTensor>())) {
    reader.kind = Reader::kHeddle;
  } else if (is_class(cls, "numpy", "ndarray")) {
    reader.kind = Reader::kNumpy;
  } else if (is_class(cls, "torch", "Tensor") || is_class(cls, "torch.nn.parameter", "Parameter")) {
    // Subclasses may stand for other memory than their own.
    reader.api = exchange_api_of(cls);
    if (reader.api != nullptr && reader.api->view != nullptr) reader.kind = Reader::kExchange;
  }
  return reader;
}

const Reader& reader_of(PyObject* value) {
  static auto* readers = new std::vector<Reader>;  // classes of arrays are few; guarded by the GIL
  PyObject* const cls = reinterpret_cast<PyObject*>(Py_TYPE(value));
  for (const Reader& reader : *readers) {
    if (reader.cls.ptr() == cls) return reader;
  }
  if (readers->size() == LaunchKey::kMost) readers->clear();
  return readers->emplace_back(reader_for(cls));
}

// heddle.tile.language.constexpr. No static object: who waits for one has the GIL, which an import may give away.
PyObject* constexpr_class() {
  static PyObject* known = nullptr;
  if (known == nullptr) {
    known = nb::object(nb::module_::import_("heddle.tile.language.types").attr("constexpr")).release().ptr();
  }
  return known;
}

uint64_t word_of(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

}  // namespace

LaunchKey::~LaunchKey() {
  for (size_t i = 0; i < text_count_; ++i) Py_DECREF(texts_[i]);
}

bool LaunchKey::add(uint64_t word, uint64_t payload, lang::Argument value) {
  if (parameters_ == kMost) return false;
  words_[count_++] = word;
  words_[count_++] = payload;
  values_[parameters_++] = value;
  return true;
}

bool LaunchKey::add_integer(PyObject* value, bool by_value) {
  int overflow = 0;
  const long long integer = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow == 0) {
    const uint64_t facts = (integer % int64_t{kAlignment} == 0 ? kAligned : 0) | (integer == 1 ? kOne : 0) |
                           (integer == static_cast<int32_t>(integer) ? 0 : kBeyond32);
    return add(kInt | facts, by_value ? static_cast<uint64_t>(integer) : 0, lang::Argument::of(int64_t{integer}));
  }
  const unsigned long long large = overflow > 0 ? PyLong_AsUnsignedLongLong(value) : 0;
  if (overflow < 0 || PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return false;
  }
  return add(kInt | kBeyondSigned | (large % kAlignment == 0 ? kAligned : 0), by_value ? large : 0,
             {static_cast<int64_t>(large), static_cast<double>(large)});
}

bool LaunchKey::add_array(PyObject* value) {
  const Reader& reader = reader_of(value);
  const void* data = nullptr;
  uint64_t dtype = 0, facts = kArray | static_cast<uint64_t>(reader.kind) << 12;
  int device = kHost;
  switch (reader.kind) {
    case Reader::kNumpy: {
      const auto& array = *reinterpret_cast<const NumpyArray*>(value);
      data = array.data;
      dtype = word_of(array.dtype);
      if ((array.flags & kWriteable) == 0) facts |= kReadOnly;
      objects_[object_count_++] = array.dtype;
      break;
    }
    case Reader::kHeddle: {
      const PyTensor& tensor = *nb::inst_ptr<PyTensor>(value);
      data = tensor.data();
      dtype = static_cast<uint64_t>(tensor.dtype());
      device = tensor.device();
      break;
    }
    case Reader::kExchange: {
      dlpack::Tensor tensor;
      if (reader.api->view(value, &tensor) != 0) {
        PyErr_Clear();
        return false;
      }
      // Of a tensor without elements torch's data_ptr() tells another address.
      for (int32_t axis = 0; axis < tensor.rank; ++axis) {
        if (tensor.shape[axis] == 0) return false;
      }
      const int32_t place = tensor.device.type;
      if (place == dlpack::kCuda || place == dlpack::kCudaManaged) {
        device = tensor.device.id;
      } else if (place != dlpack::kCpu && place != dlpack::kCudaHost) {
        return false;
      }
      data = static_cast<const char*>(tensor.data) + tensor.byte_offset;
      dtype = uint64_t{tensor.dtype.code} << 8 | tensor.dtype.bits | uint64_t{tensor.dtype.lanes} << 16;
      break;
    }
    case Reader::kUnknown:
      return false;
  }
  if (device != kHost && device_ == kHost) {
    device_ = device;
    exchange_ = reader.api;
  }
  if (word_of(data) % kAlignment == 0) facts |= kAligned;
  facts |= static_cast<uint64_t>(device + 1) << 32;
  return add(facts, dtype, lang::Argument::of(data));
}

bool LaunchKey::add_argument(PyObject* value, bool by_value) {
  if (PyLong_CheckExact(value)) return add_integer(value, by_value);
  if (value == Py_None) return add(kNone, 0);
  if (PyFloat_CheckExact(value)) {
    const double number = PyFloat_AsDouble(value);
    return add(kFloat, by_value ? std::bit_cast<uint64_t>(number) : 0, lang::Argument::of_number(number));
  }
  if (PyBool_Check(value)) return add(kBool, value == Py_True, lang::Argument::of(int64_t{value == Py_True}));
  return !by_value && parameters_ < kMost && add_array(value);
}

bool LaunchKey::add_constant(PyObject* value) {
  if (parameters_ == kMost) return false;
  if (PyLong_CheckExact(value)) {
    int overflow = 0;
    const long long integer = PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow == 0 && add(kInt, static_cast<uint64_t>(integer));
  }
  if (PyFloat_CheckExact(value)) return add(kConstantFloat, std::bit_cast<uint64_t>(PyFloat_AsDouble(value)));
  if (PyUnicode_CheckExact(value)) {
    Py_INCREF(value);
    PyUnicode_InternInPlace(&value);
    texts_[text_count_++] = value;
    return add(kText, word_of(value));
  }
  // What may change while it stays the same object, or is made anew for each launch.
  if (PyList_Check(value) || PyTuple_Check(value) || PyDict_Check(value) ||
      PyObject_IsInstance(value, constexpr_class()) != 0) {
    PyErr_Clear();
    return false;
  }
  objects_[object_count_++] = value;
  return add(kObject, word_of(value));
}

bool LaunchKey::add_option(PyObject* name, PyObject* value) {
  if (parameters_ == kMost || count_ + 4 > words_.size()) return false;
  Py_INCREF(name);
  PyUnicode_InternInPlace(&name);
  texts_[text_count_++] = name;
  words_[count_++] = word_of(name);
  const size_t parameters = parameters_;
  const bool added = add_constant(value);
  parameters_ = parameters;
  return added;
}

uint64_t LaunchKey::hash() const {
  uint64_t hash = count_;
  for (size_t i = 0; i < count_; ++i) {
    hash = (hash ^ words_[i]) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return hash;
}

std::vector<nb::object> LaunchKey::named() const {
  std::vector<nb::object> objects;
  for (size_t i = 0; i < object_count_; ++i) objects.push_back(nb::borrow(objects_[i]));
  for (size_t i = 0; i < text_count_; ++i) objects.push_back(nb::borrow(texts_[i]));
  return objects;
}

void* LaunchKey::stream() const {
  void* stream = nullptr;
  const auto* const api = static_cast<const dlpack::ExchangeApi*>(exchange_);
  if (api != nullptr && api->current_stream(dlpack::kCuda, device_, &stream) != 0) nb::raise_python_error();
  return stream;
}

}  // namespace heddle::python
