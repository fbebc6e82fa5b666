#include "graph.h"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "driver/api/model_impl.h"
#include "heddle/tensor.h"
#include "interrupt.h"
#include "model.h"
#include "torch_tensors.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

PyObject* item(const nb::list& values, size_t slot) {
  PyObject* const value = PyList_GetItem(values.ptr(), static_cast<Py_ssize_t>(slot));
  if (value == nullptr) nb::raise_python_error();
  return value;
}

void set_item(const nb::list& values, size_t slot, nb::object value) {
  if (PyList_SetItem(values.ptr(), static_cast<Py_ssize_t>(slot), value.release().ptr()) != 0) nb::raise_python_error();
}

// A tensor that a part reads: what lies otherwise is copied first.
struct PartInput {
  size_t slot = 0;
  Shape shape, strides;
};

// A tensor that a part makes: shape, strides and dtype, and what turns it into the result once it is written.
struct PartOutput {
  size_t slot = 0;
  nb::tuple layout;
  nb::object finish;
};

nb::object allocate(const nb::object& function, const nb::tuple& layout) {
  nb::object tensor = nb::steal(PyObject_Call(function.ptr(), layout.ptr(), nullptr));
  if (!tensor.is_valid()) nb::raise_python_error();
  return tensor;
}

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
  Program(const TorchTensors& tensors, nb::list rest, std::vector<int64_t> results, nb::list constants)
      : tensors_(tensors), rest_(std::move(rest)), results_(std::move(results)), constants_(std::move(constants)) {}

  // A model. `empty(shape, strides, dtype)` allocates a tensor on the model's device; so does `empty_here`, if it is
  // not None and that device is the current one. Inputs that lie otherwise than the model wants are replaced by
  // `dense(tensor, position)`.
  void add_part(nb::object model, nb::list inputs, nb::list outputs, nb::object empty_here, nb::object empty,
                nb::object dense, std::vector<size_t> ended) {
    Step step;
    step.model = nb::cast<PyModel*>(model);
    step.function = std::move(model);
    step.empty_here = std::move(empty_here);
    step.empty = std::move(empty);
    step.dense = std::move(dense);
    step.ended = std::move(ended);
    for (const nb::handle one : inputs) {
      step.inputs.push_back({nb::cast<size_t>(one[0]), nb::cast<Shape>(one[1]), nb::cast<Shape>(one[2])});
    }
    for (const nb::handle one : outputs) {
      step.outputs.push_back({nb::cast<size_t>(one[0]), nb::cast<nb::tuple>(one[1]), one[2]});
    }
    const runtime::Executor& executor = *step.model->model().impl().primary().executor;
    if (step.model->on_gpu() && executor.workspace_bytes() > 0) {
      step.workspace = nb::make_tuple(nb::make_tuple(executor.workspace_bytes()), nb::make_tuple(1),
                                      nb::module_::import_("torch").attr("uint8"));
    }
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
    const Py_ssize_t given = PyList_Size(arguments.ptr());
    const auto values = nb::steal<nb::list>(PyList_GetSlice(arguments.ptr(), 0, given));
    if (!values.is_valid() || PyList_SetSlice(values.ptr(), given, given, rest_.ptr()) != 0 ||
        PyList_SetSlice(arguments.ptr(), 0, given, nullptr) != 0) {
      nb::raise_python_error();
    }
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

  // What it holds, for the garbage collector: functions have nodes, and so the module whose graph this is.
  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(rest_.ptr());
    Py_VISIT(constants_.ptr());
    for (const Step& step : steps_) {
      Py_VISIT(step.function.ptr());
      for (const nb::object& one : {step.empty_here, step.empty, step.dense}) Py_VISIT(one.ptr());
      for (const PartOutput& output : step.outputs) Py_VISIT(output.finish.ptr());
    }
    return 0;
  }
  void clear() { const std::vector<Step> ended = std::exchange(steps_, {}); }

 private:
  struct Step {
    const PyModel* model = nullptr;  // `function` holds it; null: `function` is called
    nb::object function, empty_here, empty, dense;
    std::vector<PartInput> inputs;
    std::vector<PartOutput> outputs;
    std::optional<nb::tuple> workspace;  // shape, strides and dtype
    std::vector<size_t> ended;

    const nb::object& allocator(const TorchTensors& tensors) const {
      const bool here = !empty_here.is_none() && (!model->on_gpu() || tensors.current_gpu() == model->device());
      return here ? empty_here : empty;
    }
  };

  Bound bind(const Step& step, const nb::list& values) const {
    constexpr uintptr_t kGpuAlignment = 16;
    const uintptr_t alignment = step.model->on_gpu() ? kGpuAlignment : 1;
    Bound bound;
    bound.data.reserve(step.inputs.size() + step.outputs.size() + 1);
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const PartInput& input = step.inputs[i];
      PyObject* const tensor = item(values, input.slot);
      std::optional<void*> data = tensors_.data_if(tensor, input.shape, input.strides);
      if (!data || reinterpret_cast<uintptr_t>(*data) % alignment != 0) {
        bound.held.push_back(step.dense(nb::handle(tensor), i));
        data = tensors_.data_of(bound.held.back().ptr());
      }
      bound.data.push_back(*data);
    }
    return bound;
  }

  void run_part(const Step& step, const nb::list& values) const {
    Bound bound = bind(step, values);
    const nb::object& empty = step.allocator(tensors_);
    std::vector<nb::object> made;
    made.reserve(step.outputs.size());
    for (const PartOutput& output : step.outputs) {
      made.push_back(allocate(empty, output.layout));
      bound.data.push_back(tensors_.data_of(made.back().ptr()));
    }
    if (step.model->on_gpu()) {
      run_on_gpu(step, empty, std::move(bound));
    } else {
      interruptible([&] { step.model->model().impl().primary().executor->run_at(bound.data); });
    }
    for (size_t i = 0; i < made.size(); ++i) {
      const PartOutput& output = step.outputs[i];
      set_item(values, output.slot, output.finish.is_none() ? made[i] : output.finish(made[i]));
    }
  }

  void run_on_gpu(const Step& step, const nb::object& empty, Bound bound) const {
    void* const stream = tensors_.current_stream(step.model->device());
    std::vector<uint64_t> addresses;
    for (void* const data : bound.data) addresses.push_back(reinterpret_cast<uint64_t>(data));
    // Freed for later work on the same stream only, as PyTorch's allocator keeps that order.
    nb::object workspace;
    if (step.workspace) workspace = allocate(empty, *step.workspace);
    addresses.push_back(step.workspace ? reinterpret_cast<uint64_t>(tensors_.data_of(workspace.ptr())) : 0);
    const nb::gil_scoped_release free;
    step.model->model().impl().primary().executor->enqueue(std::move(addresses), stream);
  }

  const TorchTensors& tensors_;
  nb::list rest_;
  std::vector<int64_t> results_;
  nb::list constants_;
  std::vector<Step> steps_;
};

// What tells whether some tensors of an argument list changed: their addresses, how often PyTorch counted changes, and
// a few of their bytes. PyTorch does not count changes through `.data`, such as weight.data.copy_(other).
class Versions {
 public:
  // `bytes`: of each tensor's dense memory on the host, 0 for others.
  Versions(const TorchTensors& tensors, std::vector<size_t> slots, std::vector<size_t> bytes)
      : tensors_(tensors), slots_(std::move(slots)), bytes_(std::move(bytes)) {}

  // Whether they are those of the last take().
  bool are_same(const nb::list& arguments) const {
    if (taken_.size() != slots_.size()) return false;
    for (size_t i = 0; i < slots_.size(); ++i) {
      PyObject* const tensor = item(arguments, slots_[i]);
      const Seen& taken = taken_[i];
      // The memory is read only where it is the same.
      if (tensors_.data_of(tensor) != taken.data || tensors_.version_of(tensor) != taken.version ||
          sample_of(taken.data, bytes_[i]) != taken.sample) {
        return false;
      }
    }
    return true;
  }

  // Remembers them. False if PyTorch does not count the changes of one (inference_mode() made it).
  bool take(const nb::list& arguments) {
    taken_.clear();
    for (size_t i = 0; i < slots_.size(); ++i) {
      PyObject* const tensor = item(arguments, slots_[i]);
      const std::optional<int64_t> version = tensors_.version_of(tensor);
      if (!version) {
        taken_.clear();
        return false;
      }
      void* const data = tensors_.data_of(tensor);
      taken_.push_back({data, *version, sample_of(data, bytes_[i])});
    }
    return true;
  }

 private:
  static constexpr size_t kSamples = 3;
  using Sample = std::array<uint64_t, kSamples>;
  struct Seen {
    void* data = nullptr;
    int64_t version = 0;
    Sample sample = {};
  };

  // Words at the start, in the middle and at the end.
  static Sample sample_of(const void* data, size_t bytes) {
    Sample sample = {};
    if (data == nullptr || bytes == 0) return sample;
    const size_t width = std::min(bytes, sizeof sample[0]);
    for (size_t i = 0; i < kSamples; ++i) {
      const size_t at = (bytes - width) * i / (kSamples - 1);
      std::memcpy(&sample[i], static_cast<const char*>(data) + at, width);
    }
    return sample;
  }

  const TorchTensors& tensors_;
  std::vector<size_t> slots_, bytes_;
  std::vector<Seen> taken_;
};

int traverse_program(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<Program>(self)->traverse(visit, arg) : 0;
}

int clear_program(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<Program>(self)->clear();
  return 0;
}

PyType_Slot program_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse_program)},
                               {Py_tp_clear, reinterpret_cast<void*>(&clear_program)},
                               {0, nullptr}};

}  // namespace

void register_graph(nb::module_& module) {
  nb::class_<Program>(module, "Program", nb::type_slots(program_slots),
                      "A graph of compiled parts, and of functions between them.")
      .def(nb::init<const TorchTensors&, nb::list, std::vector<int64_t>, nb::list>(), nb::arg("tensors"),
           nb::arg("rest"), nb::arg("results"), nb::arg("constants"), nb::keep_alive<1, 2>())
      .def("add_part", &Program::add_part, nb::arg("model"), nb::arg("inputs"), nb::arg("outputs"),
           nb::arg("empty_here").none(), nb::arg("empty"), nb::arg("dense"), nb::arg("ended"))
      .def("add_call", &Program::add_call, nb::arg("function"), nb::arg("ended"))
      .def("run", &Program::run, nb::arg("arguments"));
  nb::class_<Versions>(module, "Versions", "What tells whether tensors in a list changed.")
      .def(nb::init<const TorchTensors&, std::vector<size_t>, std::vector<size_t>>(), nb::arg("tensors"),
           nb::arg("slots"), nb::arg("bytes"), nb::keep_alive<1, 2>())
      .def("are_same", &Versions::are_same, nb::arg("arguments"))
      .def("take", &Versions::take, nb::arg("arguments"));
}

}  // namespace heddle::python
