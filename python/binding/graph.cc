#include "graph.h"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "array.h"
#include "dlpack.h"
#include "driver/api/model_impl.h"
#include "errors.h"
#include "interrupt.h"
#include "model.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

// The C interface of the class of tensors.
const dlpack::ExchangeApi& api_of(nb::handle tensor_class) {
  const dlpack::ExchangeApi* api = exchange_api_of(tensor_class);
  if (api == nullptr || api->view == nullptr) {
    refuse_argument(class_name(tensor_class), "its tensors have no C interface of DLPack", "Update PyTorch");
  }
  return *api;
}

dlpack::Tensor view_of(const dlpack::ExchangeApi& api, PyObject* tensor) {
  dlpack::Tensor view;
  if (api.view(tensor, &view) != 0) nb::raise_python_error();
  return view;
}

void* data_of(const dlpack::Tensor& view) {
  return static_cast<char*>(view.data) + view.byte_offset;
}

PyObject* item(const nb::list& values, size_t slot) {
  PyObject* const value = PyList_GetItem(values.ptr(), static_cast<Py_ssize_t>(slot));
  if (value == nullptr) nb::raise_python_error();
  return value;
}

void set_item(const nb::list& values, size_t slot, nb::object value) {
  if (PyList_SetItem(values.ptr(), static_cast<Py_ssize_t>(slot), value.release().ptr()) != 0) nb::raise_python_error();
}

// A tensor that a part reads: `shape` and `strides` in the order of its dimensions, `in_memory` the extents from the
// outermost to the innermost.
struct PartInput {
  size_t slot = 0;
  Shape shape, strides, in_memory;

  bool is_met_by(const dlpack::Tensor& view, uintptr_t alignment) const {
    if (static_cast<size_t>(view.rank) != shape.size() || reinterpret_cast<uintptr_t>(data_of(view)) % alignment != 0) {
      return false;
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      if (view.shape[d] != shape[d]) return false;
      if (view.strides != nullptr && shape[d] != 1 && view.strides[d] != strides[d]) return false;
    }
    return true;
  }
};

// A tensor that a part makes: `allocate(*arguments, **words)`, then, once it is written, what `finish` makes of it.
struct PartOutput {
  size_t slot = 0;
  Shape in_memory;
  nb::object allocate, finish;
  nb::tuple arguments;
  nb::dict words;

  nb::object make() const { return nb::steal(checked(PyObject_Call(allocate.ptr(), arguments.ptr(), words.ptr()))); }

 private:
  static PyObject* checked(PyObject* object) {
    if (object == nullptr) nb::raise_python_error();
    return object;
  }
};

// The tensors of one run, which stay as long as kernels are told their addresses.
struct Bound {
  std::vector<void*> data;
  std::vector<nb::object> held;
};

// A graph as a sequence of steps over one list of values: arguments first, then those that steps make.
class Program {
 public:
  // `rest`: the values behind the arguments. `results`: for each result the slot of its value, or -1 for the object in
  // `constants` at its place.
  Program(nb::handle tensor_class, nb::list rest, std::vector<int64_t> results, nb::list constants)
      : api_(api_of(tensor_class)),
        rest_(std::move(rest)),
        results_(std::move(results)),
        constants_(std::move(constants)) {}

  // A model. Inputs that lie otherwise than it wants are replaced by `dense(tensor, position)`. `workspace(bytes)`
  // allocates on a GPU.
  void add_part(nb::object model, nb::list inputs, nb::list outputs, nb::object dense, nb::object workspace,
                std::vector<size_t> ended) {
    Step step;
    step.model = nb::cast<PyModel*>(model);
    step.function = std::move(model);
    step.dense = std::move(dense);
    step.workspace = std::move(workspace);
    step.ended = std::move(ended);
    for (const nb::handle one : inputs) {
      step.inputs.push_back(
          {nb::cast<size_t>(one[0]), nb::cast<Shape>(one[1]), nb::cast<Shape>(one[2]), nb::cast<Shape>(one[3])});
    }
    for (const nb::handle one : outputs) {
      step.outputs.push_back({nb::cast<size_t>(one[0]), nb::cast<Shape>(one[1]), one[2], one[3],
                              nb::cast<nb::tuple>(one[4]), nb::cast<nb::dict>(one[5])});
    }
    const runtime::Executor& executor = *step.model->model().impl().primary().executor;
    if (step.model->on_gpu()) step.workspace_bytes = executor.workspace_bytes();
    steps_.push_back(std::move(step));
  }

  // A function of the list of values, which puts its results there.
  void add_call(nb::object function, std::vector<size_t> ended) {
    Step step;
    step.function = std::move(function);
    step.ended = std::move(ended);
    steps_.push_back(std::move(step));
  }

  // Empties `arguments`, so that they can end as soon as nothing reads them any more.
  nb::list run(nb::list arguments) const {
    nb::list values;
    for (const nb::handle one : arguments) values.append(one);
    for (const nb::handle one : rest_) values.append(one);
    arguments.clear();
    for (const Step& step : steps_) {
      if (step.model == nullptr) {
        step.function(values);
      } else {
        run_part(step, values);
      }
      for (const size_t slot : step.ended) set_item(values, slot, nb::none());
    }
    nb::list results;
    for (size_t i = 0; i < results_.size(); ++i) {
      results.append(results_[i] < 0 ? nb::handle(constants_[i]) : item(values, static_cast<size_t>(results_[i])));
    }
    return results;
  }

 private:
  struct Step {
    const PyModel* model = nullptr;  // `function` holds it; null: `function` is called
    nb::object function, dense, workspace;
    std::vector<PartInput> inputs;
    std::vector<PartOutput> outputs;
    std::vector<size_t> ended;
    size_t workspace_bytes = 0;
  };

  Bound bind(const Step& step, const nb::list& values) const {
    constexpr uintptr_t kGpuAlignment = 16;
    const uintptr_t alignment = step.model->on_gpu() ? kGpuAlignment : 1;
    Bound bound;
    bound.data.reserve(step.inputs.size() + step.outputs.size() + 1);
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const PartInput& input = step.inputs[i];
      PyObject* const tensor = item(values, input.slot);
      dlpack::Tensor view = view_of(api_, tensor);
      if (!input.is_met_by(view, alignment)) {
        bound.held.push_back(step.dense(nb::handle(tensor), i));
        view = view_of(api_, bound.held.back().ptr());
      }
      bound.data.push_back(data_of(view));
    }
    return bound;
  }

  void run_part(const Step& step, const nb::list& values) const {
    Bound bound = bind(step, values);
    std::vector<nb::object> made;
    made.reserve(step.outputs.size());
    for (const PartOutput& output : step.outputs) {
      made.push_back(output.make());
      bound.data.push_back(data_of(view_of(api_, made.back().ptr())));
    }
    if (step.model->on_gpu()) {
      run_on_gpu(step, std::move(bound));
    } else {
      run_on_host(step, bound);
    }
    for (size_t i = 0; i < made.size(); ++i) {
      const PartOutput& output = step.outputs[i];
      set_item(values, output.slot, output.finish.is_none() ? made[i] : output.finish(made[i]));
    }
  }

  static void run_on_host(const Step& step, const Bound& bound) {
    const ModelVariant& variant = step.model->model().impl().primary();
    std::vector<Tensor> inputs, outputs;
    inputs.reserve(step.inputs.size());
    outputs.reserve(step.outputs.size());
    const auto add = [&](std::vector<Tensor>& to, const runtime::Port& port, const Shape& shape, size_t at) {
      to.push_back(Tensor::borrow(port.dtype, shape, bound.data[at], nullptr));
    };
    for (size_t i = 0; i < step.inputs.size(); ++i) add(inputs, variant.plan->inputs[i], step.inputs[i].in_memory, i);
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      add(outputs, variant.plan->outputs[i], step.outputs[i].in_memory, step.inputs.size() + i);
    }
    interruptible([&] { variant.executor->run(inputs, {}, outputs); });
  }

  void run_on_gpu(const Step& step, Bound bound) const {
    void* stream = nullptr;
    if (api_.current_stream(dlpack::kCuda, step.model->device(), &stream) != 0) nb::raise_python_error();
    std::vector<uint64_t> addresses;
    for (void* const data : bound.data) addresses.push_back(reinterpret_cast<uint64_t>(data));
    // Freed for later work on the same stream only, as PyTorch's allocator keeps that order.
    nb::object workspace;
    if (step.workspace_bytes > 0) workspace = step.workspace(step.workspace_bytes);
    addresses.push_back(step.workspace_bytes > 0 ? reinterpret_cast<uint64_t>(data_of(view_of(api_, workspace.ptr())))
                                                 : 0);
    const nb::gil_scoped_release free;
    step.model->model().impl().primary().executor->enqueue(std::move(addresses), stream);
  }

  const dlpack::ExchangeApi& api_;
  nb::list rest_;
  std::vector<int64_t> results_;
  nb::list constants_;
  std::vector<Step> steps_;
};

// The addresses of some tensors of an argument list, and how often PyTorch counted changes of each.
class Versions {
 public:
  Versions(nb::handle tensor_class, std::vector<size_t> slots)
      : api_(api_of(tensor_class)), slots_(std::move(slots)), version_(tensor_class.attr("_version")) {
    get_ = reinterpret_cast<descrgetfunc>(PyType_GetSlot(Py_TYPE(version_.ptr()), Py_tp_descr_get));
    if (get_ == nullptr) refuse_argument(class_name(tensor_class), "its _version is no property", "Update Heddle");
  }

  // Whether they are those of the last take().
  bool are_same(const nb::list& arguments) const {
    if (!is_taken_) return false;
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (look(item(arguments, slots_[i])) != taken_[i]) return false;
    }
    return true;
  }

  // Remembers them. False if PyTorch does not count the changes of one (inference_mode() made it).
  bool take(const nb::list& arguments) {
    taken_.clear();
    for (const size_t slot : slots_) taken_.push_back(look(item(arguments, slot)));
    is_taken_ = std::none_of(taken_.begin(), taken_.end(), [](const Seen& seen) { return !seen; });
    return is_taken_;
  }

 private:
  using Seen = std::optional<std::pair<uintptr_t, int64_t>>;

  Seen look(PyObject* tensor) const {
    PyObject* const version = get_(version_.ptr(), tensor, reinterpret_cast<PyObject*>(Py_TYPE(tensor)));
    if (version == nullptr) {
      PyErr_Clear();
      return std::nullopt;
    }
    const int64_t number = PyLong_AsLongLong(version);
    Py_DECREF(version);
    return std::pair(reinterpret_cast<uintptr_t>(data_of(view_of(api_, tensor))), number);
  }

  const dlpack::ExchangeApi& api_;
  std::vector<size_t> slots_;
  std::vector<Seen> taken_;
  bool is_taken_ = false;  // and comparable
  nb::object version_;     // the property of the class, which is found sooner than the attribute of a tensor
  descrgetfunc get_ = nullptr;
};

}  // namespace

void register_graph(nb::module_& module) {
  nb::class_<Program>(module, "Program", "A graph of compiled parts, and of functions between them.")
      .def(nb::init<nb::handle, nb::list, std::vector<int64_t>, nb::list>(), nb::arg("tensor_class"), nb::arg("rest"),
           nb::arg("results"), nb::arg("constants"))
      .def("add_part", &Program::add_part, nb::arg("model"), nb::arg("inputs"), nb::arg("outputs"), nb::arg("dense"),
           nb::arg("workspace"), nb::arg("ended"))
      .def("add_call", &Program::add_call, nb::arg("function"), nb::arg("ended"))
      .def("run", &Program::run, nb::arg("arguments"));
  nb::class_<Versions>(module, "Versions", "The addresses of tensors in a list, and the numbers of their changes.")
      .def(nb::init<nb::handle, std::vector<size_t>>(), nb::arg("tensor_class"), nb::arg("slots"))
      .def("are_same", &Versions::are_same, nb::arg("arguments"))
      .def("take", &Versions::take, nb::arg("arguments"));
}

}  // namespace heddle::python
