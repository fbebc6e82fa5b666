#include "specialised.h"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>
#include <vector>

#include "torch_tensors.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

using Words = std::vector<uint64_t>;

struct HashOfWords {
  size_t operator()(const Words& words) const {
    uint64_t hash = words.size();
    for (const uint64_t word : words) {
      hash = (hash ^ word) * 0x9e3779b97f4a7c15;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

// Calls a function that is made for each signature of its arguments: types, places, extents and strides of tensors, and
// values of numbers.
class Specialised {
 public:
  // `make(arguments)` returns a function of the list of the tensors among the arguments, which returns a list.
  // Arguments that need a gradient go to `apply(*arguments)`; None for an operator without gradients. `modes`:
  // functions that tell whether PyTorch has to see the call. With `is_single` the result is a tensor instead of a
  // tuple.
  Specialised(const TorchTensors& tensors, nb::object make, nb::object apply, std::vector<nb::object> modes,
              nb::object grad_mode, bool is_single)
      : tensors_(tensors),
        make_(std::move(make)),
        apply_(std::move(apply)),
        modes_(std::move(modes)),
        grad_mode_(std::move(grad_mode)),
        is_single_(is_single) {}

  // NotImplemented if PyTorch's dispatcher has to decide what the call means.
  nb::object call(const nb::tuple& arguments) {
    for (const nb::object& mode : modes_) {
      if (is_true(mode)) return not_implemented();
    }
    Signature signature;
    if (!read(arguments, signature)) return not_implemented();
    if (!apply_.is_none() && is_true(grad_mode_) && needs_gradient(signature.tensors)) {
      return nb::steal(checked(PyObject_CallObject(apply_.ptr(), arguments.ptr())));
    }
    return run(arguments, std::move(signature));
  }

  // Of the kernels alone: without gradients, and for whoever called.
  nb::object run_plain(const nb::tuple& arguments) {
    Signature signature;
    if (!read(arguments, signature)) return not_implemented();
    return run(arguments, std::move(signature));
  }

 private:
  static constexpr size_t kMost = 256;  // signatures, of which the last used are kept

  enum Tag : uint64_t { kNone = 1, kInteger, kTruth, kFloat, kSequence, kTensor };

  struct Signature {
    Words words;
    nb::list tensors;
  };

  struct Entry {
    nb::object function;
    uint64_t last_use = 0;
  };

  static nb::object not_implemented() { return nb::borrow(Py_NotImplemented); }

  static PyObject* checked(PyObject* object) {
    if (object == nullptr) nb::raise_python_error();
    return object;
  }

  static bool is_true(const nb::object& function) {
    const nb::object value = nb::steal(checked(PyObject_CallNoArgs(function.ptr())));
    return PyObject_IsTrue(value.ptr()) == 1;
  }

  static bool needs_gradient(const nb::list& tensors) {
    static PyObject* const name = PyUnicode_InternFromString("requires_grad");
    const Py_ssize_t count = PyList_Size(tensors.ptr());
    for (Py_ssize_t i = 0; i < count; ++i) {
      const nb::object needs = nb::steal(checked(PyObject_GetAttr(PyList_GetItem(tensors.ptr(), i), name)));
      if (needs.ptr() == Py_True) return true;
    }
    return false;
  }

  bool read(const nb::tuple& arguments, Signature& signature) const {
    constexpr size_t kUsual = 64;
    signature.words.reserve(kUsual);
    const Py_ssize_t count = PyTuple_Size(arguments.ptr());
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (!add(PyTuple_GetItem(arguments.ptr(), i), signature)) return false;
    }
    return true;
  }

  bool add(PyObject* value, Signature& signature) const {
    Words& words = signature.words;
    if (value == Py_None) {
      words.push_back(kNone);
    } else if (PyBool_Check(value)) {
      words.insert(words.end(), {kTruth, uint64_t{value == Py_True}});
    } else if (PyLong_CheckExact(value)) {
      int overflow = 0;
      const long long integer = PyLong_AsLongLongAndOverflow(value, &overflow);
      if (overflow != 0) return false;
      words.insert(words.end(), {kInteger, static_cast<uint64_t>(integer)});
    } else if (PyFloat_CheckExact(value)) {
      words.insert(words.end(), {kFloat, std::bit_cast<uint64_t>(PyFloat_AsDouble(value))});
    } else if (PyList_Check(value) || PyTuple_Check(value)) {
      const bool is_list = PyList_Check(value);
      const Py_ssize_t count = is_list ? PyList_Size(value) : PyTuple_Size(value);
      words.insert(words.end(), {kSequence, static_cast<uint64_t>(count)});
      for (Py_ssize_t i = 0; i < count; ++i) {
        if (!add(is_list ? PyList_GetItem(value, i) : PyTuple_GetItem(value, i), signature)) return false;
      }
    } else {
      words.push_back(kTensor);
      if (!tensors_.describe(value, words)) return false;
      signature.tensors.append(nb::handle(value));
    }
    return true;
  }

  nb::object run(const nb::tuple& arguments, Signature signature) {
    const nb::object function = find(arguments, signature.words);
    const auto results = nb::steal<nb::list>(checked(PyObject_CallOneArg(function.ptr(), signature.tensors.ptr())));
    return is_single_ ? nb::object(results[0]) : nb::steal(checked(PyList_AsTuple(results.ptr())));
  }

  nb::object find(const nb::tuple& arguments, Words& words) {
    const auto found = entries_.find(words);
    if (found != entries_.end()) {
      found->second.last_use = ++uses_;
      return found->second.function;
    }
    nb::object made = make_(arguments);  // other threads may come here meanwhile, and make the same
    if (entries_.size() >= kMost) {
      const auto earlier = [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; };
      entries_.erase(std::min_element(entries_.begin(), entries_.end(), earlier));
    }
    entries_[std::move(words)] = {made, ++uses_};
    return made;
  }

  const TorchTensors& tensors_;
  nb::object make_, apply_;
  std::vector<nb::object> modes_;
  nb::object grad_mode_;
  bool is_single_;
  std::unordered_map<Words, Entry, HashOfWords> entries_;
  uint64_t uses_ = 0;
};

}  // namespace

void register_specialised(nb::module_& module) {
  nb::class_<Specialised>(module, "Specialised", "A function that is made for each signature of its arguments.")
      .def(nb::init<const TorchTensors&, nb::object, nb::object, std::vector<nb::object>, nb::object, bool>(),
           nb::arg("tensors"), nb::arg("make"), nb::arg("apply").none(), nb::arg("modes"), nb::arg("grad_mode"),
           nb::arg("is_single"), nb::keep_alive<1, 2>())
      .def("call", &Specialised::call, nb::arg("arguments"))
      .def("run", &Specialised::run_plain, nb::arg("arguments"));
}

}  // namespace heddle::python
