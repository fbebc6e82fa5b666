#include "model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/near_miss.h"
#include "driver/api/model_impl.h"
#include "driver/api/run_times.h"
#include "driver/options/options.h"
#include "driver/verify/random_inputs.h"
#include "errors.h"
#include "interrupt.h"
#include "narrow.h"
#include "report.h"
#include "tensor.h"
#include "text.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

Model load(const Source& source) {
  return source.with_progress([&](const CompileOptions& options) { return Model::load(source.path(), options); });
}

// Of an input or output: what no plan can take.
void check_array(const Array& array, DType wanted, const std::string& where, const Family& family) {
  if (array.dtype != wanted) {
    refuse_input(where, fmt::format("its dtype is {}, the model has {}", to_string(array.dtype), to_string(wanted)),
                 family.how_to_convert(wanted));
  }
  if (!array.is_dense()) {
    refuse_input(where,
                 fmt::format("its strides are [{}] elements for the shape {}, dense rows are needed",
                             fmt::join(array.strides, ","), to_string(array.shape)),
                 family.how_to_make_dense());
  }
}

DeviceTensor device_tensor(const Array& array) {
  return {element_count(array.shape) == 0 ? nullptr : array.data, array.dtype, array.shape};
}

}  // namespace

PyModel::PyModel(const Source& source) : model_(load(source)) {
  for (const PortInfo& port : model_.impl().ports()) input_names_.push_back("input " + port.name);
  for (const PortInfo& port : model_.outputs()) output_names_.push_back("output " + port.name);
  if (runtime::runs_on_gpu(*model_.impl().primary().plan)) device_ = driver::device_of(source.options().target);
}

// A model waits for its thread, which may wait for the GIL.
PyModel::~PyModel() {
  workspaces_.clear();
  const nb::gil_scoped_release free;
  const Model last = std::exchange(model_, Model(nullptr));
}

PyModel::Given PyModel::look_at(const std::vector<nb::handle>& inputs, void* stream) const {
  const std::vector<PortInfo>& ports = model_.impl().ports();
  Given given;
  given.arrays.resize(inputs.size());
  given.texts.resize(inputs.size());
  given.families.resize(inputs.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_valid()) continue;
    if (ports[i].dtype == DType::kString) {
      given.texts[i] = text_tensor(inputs[i], input_names_[i]);
      continue;
    }
    const Family& family = family_of(inputs[i], input_names_[i]);
    given.families[i] = &family;
    given.arrays[i] = family.view(inputs[i], input_names_[i], stream);
    check_array(given.arrays[i], ports[i].dtype, input_names_[i], family);
    given.arrays[i] = widened(std::move(given.arrays[i]));
    given.on_gpu = given.on_gpu || given.arrays[i].device != kHost;
  }
  // All on the model's GPU, or all on the host.
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int wanted = given.on_gpu ? device_ : kHost;
    if (given.families[i] == nullptr || given.arrays[i].device == wanted) continue;
    const std::string runs = on_gpu() ? fmt::format("cuda:{}", device_) : std::string("the CPU");
    refuse_input(input_names_[i],
                 fmt::format("it lies on {}, the model runs on {}{}", given.arrays[i].place(), runs,
                             on_gpu() && given.on_gpu ? " and another input lies on a GPU" : ""),
                 given.families[i]->how_to_move(wanted));
  }
  return given;
}

const Family& PyModel::Given::family() const {
  const auto first =
      std::find_if(families.begin(), families.end(), [](const Family* family) { return family != nullptr; });
  return first == families.end() ? numpy_family() : **first;
}

// The caller's, else the current one of the library of the first input that is on a GPU.
void* PyModel::stream_for(const std::vector<nb::handle>& inputs, nb::handle given) const {
  if (!given.is_none() || !on_gpu() || inputs.empty()) return stream_of(given);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_valid() || model_.impl().ports()[i].dtype == DType::kString) continue;
    if (void* stream = family_of(inputs[i], input_names_[i]).current_stream(device_)) return stream;
  }
  return nullptr;
}

nb::list PyModel::run(const std::vector<nb::handle>& inputs, const CallOptions& call) {
  void* const stream = stream_for(inputs, call.stream);
  const Given given = look_at(inputs, stream);
  return given.on_gpu ? run_on_gpu(given, call, stream) : run_on_host(given, call);
}

namespace {

// What the caller gave for one output; None: nothing.
nb::object output_given(nb::handle out, size_t position) {
  if (nb::isinstance<nb::list>(out) || nb::isinstance<nb::tuple>(out)) return out[position];
  return nb::borrow(out);
}

}  // namespace

std::vector<Array> PyModel::outputs_given(nb::handle out, void* stream, bool on_gpu) const {
  std::vector<Array> outputs;
  if (out.is_none()) return outputs;
  std::vector<nb::object> objects;
  if (!nb::isinstance<nb::list>(out) && !nb::isinstance<nb::tuple>(out)) {
    objects.push_back(nb::borrow(out));
  } else {
    for (const nb::handle one : out) objects.push_back(nb::borrow(one));
  }
  const std::vector<PortInfo>& ports = model_.outputs();
  if (objects.size() != ports.size()) {
    refuse_input("out", fmt::format("{} arrays are given, the model has {} outputs", objects.size(), ports.size()),
                 "Give one for each output, in the model's order");
  }
  for (size_t i = 0; i < objects.size(); ++i) {
    outputs.emplace_back();
    if (objects[i].is_none()) continue;
    const Family& family = family_of(objects[i], output_names_[i]);
    Array& array = outputs.back();
    array = family.view_to_write(objects[i], output_names_[i], stream);
    check_array(array, ports[i].dtype, output_names_[i], family);
    const int wanted = on_gpu ? device_ : kHost;
    if (array.device != wanted) {
      refuse_input(output_names_[i], fmt::format("it lies on {}, the inputs do not", array.place()),
                   family.how_to_move(wanted));
    }
  }
  return outputs;
}

nb::list PyModel::run_on_host(const Given& given, const CallOptions& call) {
  std::vector<Tensor> tensors(given.arrays.size()), into;
  GivenInputs inputs(tensors.size(), nullptr);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Array& array = given.arrays[i];
    const bool is_text = given.texts[i].defined();
    if (!is_text && given.families[i] == nullptr) continue;
    tensors[i] = is_text ? given.texts[i] : Tensor::borrow(array.dtype, array.shape, array.data, array.hold);
    inputs[i] = &tensors[i];
  }
  const std::vector<Array> outputs = outputs_given(call.out, nullptr, false);
  for (const Array& array : outputs) {
    into.push_back(array.data == nullptr ? Tensor() : Tensor::borrow(array.dtype, array.shape, array.data, array.hold));
  }
  std::vector<Tensor> results = interruptible([&] {
    std::vector<Tensor> made = model_.impl().run_given(inputs, std::move(into));
    for (const Array& array : outputs) narrow(array);
    return made;
  });
  nb::list made;
  const Family& family = given.family();
  for (size_t i = 0; i < results.size(); ++i) {
    const nb::object one = output_given(call.out, i);
    made.append(one.is_none() ? family.of_host(std::move(results[i])) : one);
  }
  return made;
}

std::shared_ptr<const EnqueueNeeds> PyModel::needs(const std::vector<Shape>& shapes) {
  constexpr size_t kMost = 64;
  const auto known = [&]() -> std::shared_ptr<const EnqueueNeeds> {
    for (size_t i = 0; i < prepared_.size(); ++i) {
      if (prepared_[i].shapes != shapes) continue;
      std::rotate(prepared_.begin(), prepared_.begin() + static_cast<int64_t>(i),
                  prepared_.begin() + static_cast<int64_t>(i) + 1);
      return prepared_.front().needs;
    }
    return nullptr;
  };
  if (auto found = known()) return found;
  const auto made = interruptible([&] { return std::make_shared<const EnqueueNeeds>(model_.prepare(shapes)); });
  if (prepared_.size() >= kMost) prepared_.pop_back();
  prepared_.insert(prepared_.begin(), Prepared{shapes, made});
  return made;
}

// A library's allocator gives memory back in the order of its stream. Blocks of our own stay with the model, one a
// stream: work that was put there may still use them.
nb::object PyModel::workspace_for(const Family& family, size_t bytes, void* stream) {
  const Shape shape = {static_cast<int64_t>(bytes)};
  if (family.allocates_in_order()) return family.empty(DType::kU8, shape, device_, stream);
  for (const auto& [of, tensor] : workspaces_) {
    if (of == stream && nb::cast<const PyTensor&>(tensor).bytes() >= bytes) return tensor;
  }
  nb::object made = nb::cast(PyTensor(DType::kU8, shape, device_, stream));
  workspaces_.emplace_back(stream, made);
  return made;
}

nb::list PyModel::run_on_gpu(const Given& given, const CallOptions& call, void* stream) {
  std::vector<Shape> shapes;
  std::vector<DeviceTensor> inputs, outputs;
  for (size_t i = 0; i < given.arrays.size(); ++i) {
    const bool is_text = given.texts[i].defined(), is_given = is_text || given.families[i] != nullptr;
    const bool takes = i < model_.inputs().size();
    if (!takes && !is_given) continue;
    if (!takes) {
      refuse_input(input_names_[i], "the model was compiled with its default, which arrays on a GPU cannot replace",
                   "Name it in `shapes` of heddle.compile()");
    }
    if (!is_given) refuse_input(input_names_[i], "it is missing", "Give each input of the model");
    shapes.push_back(is_text ? given.texts[i].shape() : given.arrays[i].shape);
    inputs.push_back(is_text ? DeviceTensor() : device_tensor(given.arrays[i]));
  }
  const Family& family = given.family();
  const std::shared_ptr<const EnqueueNeeds> needed = needs(shapes);
  nb::list made;
  std::vector<Array> arrays = outputs_given(call.out, stream, true);
  arrays.resize(needed->outputs.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    nb::object object = output_given(call.out, i);
    if (object.is_none()) {
      const PortInfo& port = needed->outputs[i];
      object = family.empty(port.dtype, port.shape, device_, stream);
      arrays[i] = family_of(object, output_names_[i]).view(object, output_names_[i], stream);
    }
    made.append(object);
  }
  for (const Array& array : arrays) outputs.push_back(device_tensor(array));
  void* workspace = nullptr;
  nb::object held;
  Array memory;
  if (needed->workspace_bytes > 0) {
    held =
        call.workspace.is_none() ? workspace_for(family, needed->workspace_bytes, stream) : nb::borrow(call.workspace);
    memory = family_of(held, "workspace").view_to_write(held, "workspace", stream);
    const auto has = static_cast<size_t>(element_count(memory.shape)) * size_of(memory.dtype);
    if (memory.device != device_ || has < needed->workspace_bytes || !memory.is_dense()) {
      refuse_input("workspace",
                   fmt::format("it has {} dense bytes on {}, {} on cuda:{} are needed", has, memory.place(),
                               needed->workspace_bytes, device_),
                   "Allocate model.workspace_bytes(...) bytes there");
    }
    workspace = memory.data;
  }
  const nb::gil_scoped_release free;
  model_.enqueue(inputs, outputs, workspace, stream);
  return made;
}

namespace {

nb::tuple port_tuple(const PortInfo& port) {
  return nb::make_tuple(port.name, std::string(to_string(port.dtype)), nb::tuple(nb::cast(port.shape)), port.alias);
}

nb::list port_list(const std::vector<PortInfo>& ports) {
  nb::list all;
  for (const PortInfo& port : ports) all.append(port_tuple(port));
  return all;
}

// A call's arguments in the order of the model's ports, positional ones first; null for a default.
std::vector<nb::handle> in_order(const PyModel& model, const nb::tuple& positional, const nb::dict& named) {
  const std::vector<PortInfo>&inputs = model.model().inputs(), &ports = model.model().impl().ports();
  const auto names = [&] {
    std::vector<std::string> all;
    for (const PortInfo& port : inputs) all.push_back(port.name);
    return fmt::format("The model's inputs are {}", fmt::join(all, ", "));
  };
  if (positional.size() > inputs.size()) {
    refuse_input("inputs", fmt::format("{} are given, the model has {}", positional.size(), inputs.size()), names());
  }
  std::vector<nb::handle> given;
  given.reserve(ports.size());
  for (const nb::handle one : positional) given.push_back(one);
  size_t used = 0;
  for (size_t i = positional.size(); i < ports.size(); ++i) {
    if (i >= inputs.size() && used == named.size()) break;  // an old model has a default for each of its weights
    PyObject* const found = PyDict_GetItemString(named.ptr(), ports[i].name.c_str());
    if (found == nullptr && !model.model().impl().has_default(i)) {
      refuse_input(model.input_names()[i], "it is missing", names());
    }
    given.emplace_back(found);
    used += found == nullptr ? 0 : 1;
  }
  given.resize(ports.size());
  if (used == named.size()) return given;
  for (const auto [key, value] : named) {
    const std::string name = nb::cast<std::string>(key);
    const auto at = std::find_if(ports.begin(), ports.end(), [&](const PortInfo& port) { return port.name == name; });
    if (at == ports.end()) {
      std::vector<std::string> known;
      for (const PortInfo& port : ports) known.push_back(port.name);
      refuse_input("input " + name, "the model has no such input", did_you_mean(name, known) + names());
    }
    if (static_cast<size_t>(at - ports.begin()) < positional.size()) {
      refuse_input("input " + name, "it is given twice", "Give it by position or by name");
    }
  }
  return given;
}

nb::tuple bench(const PyModel& model, const nb::dict& inputs, double seconds, uint64_t seed) {
  std::map<std::string, Tensor> given = host_tensors(inputs);
  const driver::RunTimes times = interruptible([&] {
    const auto all = driver::random_inputs(*model.model().impl().primary().plan, seed, std::move(given));
    return driver::time_runs(model.model(), all, seconds);
  });
  return told(times);
}

}  // namespace

void register_model(nb::module_& module) {
  nb::class_<PyModel>(module, "Model", "A compiled model.")
      .def(nb::init<const Source&>(), nb::arg("source"))
      .def_prop_ro("inputs", [](const PyModel& m) { return port_list(m.model().inputs()); })
      .def_prop_ro("optional_inputs", [](const PyModel& m) { return port_list(m.model().optional_inputs()); })
      .def_prop_ro("outputs", [](const PyModel& m) { return port_list(m.model().outputs()); })
      .def_prop_ro("device", [](const PyModel& m) { return m.on_gpu() ? fmt::format("cuda:{}", m.device()) : "cpu"; })
      .def_prop_ro("threads", [](const PyModel& m) { return m.model().impl().threads(); })
      .def_prop_ro("arena_bytes", [](const PyModel& m) { return m.model().impl().primary().plan->arena_bytes; })
      .def_prop_ro("constant_bytes",
                   [](const PyModel& m) { return runtime::constant_bytes(*m.model().impl().primary().plan); })
      .def_prop_ro("from_cache", [](const PyModel& m) { return m.model().impl().primary().from_cache.plan; })
      .def(
          "run",
          [](PyModel& m, const nb::tuple& positional, const nb::dict& named, nb::handle out, nb::handle workspace,
             nb::handle stream) {
            return m.run(in_order(m, positional, named), {out, workspace, stream});
          },
          nb::arg("positional"), nb::arg("named"), nb::arg("out") = nb::none(), nb::arg("workspace") = nb::none(),
          nb::arg("stream") = nb::none())
      .def(
          "prepare",
          [](PyModel& m, const std::vector<Shape>& shapes) {
            const auto needs = m.needs(shapes);
            return nb::make_tuple(needs->workspace_bytes, port_list(needs->outputs));
          },
          nb::arg("shapes"))
      .def("wait", [](const PyModel& m) { interruptible([&] { m.model().impl().wait_for_background(); }); })
      .def(
          "save",
          [](const PyModel& m, nb::handle path) {
            const std::string name = path_of(path);
            const nb::gil_scoped_release free;
            m.model().save(name);
          },
          nb::arg("path"))
      .def("bench", &bench, nb::arg("inputs"), nb::arg("seconds"), nb::arg("seed"));
}

}  // namespace heddle::python
