#include "launcher.h"

#include <structmember.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "errors.h"
#include "interrupt.h"
#include "lang/cpu/launch/kernel.h"
#include "launch_key.h"
#include "tile_kernels.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

// All under the GIL. Recorders that are active on any thread, and changes of texts of functions so far.
int recorders = 0;
uint64_t revision = 0;

struct Global {
  nb::object names, name, value;

  bool holds() const { return PyDict_GetItemWithError(names.ptr(), name.ptr()) == value.ptr(); }
};

// What launches with the same words are.
struct Entry {
  struct Slot {
    lang::Type type;
    size_t parameter;
  };
  std::vector<uint64_t> words;
  std::vector<nb::object> named;
  nb::object kernel, loaded;  // a CompiledKernel; its part in C++, which is one of the next two
  const DeviceKernel* on_device = nullptr;
  const lang::cpu::CpuKernel* on_cpu = nullptr;
  std::vector<Slot> slots;
  std::vector<Global> globals;
  // What a function that is the grid gets, but for the values of these parameters.
  nb::object grid_words;
  std::vector<size_t> varying;
  nb::object attributes;  // a dictionary: what a launch sets of the launcher

  bool is_for(std::span<const uint64_t> other) const { return std::ranges::equal(words, other); }
};

// An instance of the class: its parameters, and what was launched.
struct State {
  static constexpr size_t kMostEntries = 1024;  // then values that are new each time are among the constants

  std::vector<nb::object> names, defaults;  // the latter without an object where there is none
  std::vector<char> constant, by_value;
  bool may_be_absent = false;  // parameters: something else has values for them
  nb::object hooks;
  uint64_t seen_revision = 0;
  std::unordered_multimap<uint64_t, std::shared_ptr<Entry>> entries;

  bool is_described() const { return hooks.is_valid(); }
  std::shared_ptr<Entry> find(uint64_t hash, std::span<const uint64_t> words);
  void remember(uint64_t hash, const LaunchKey& key, std::span<PyObject* const> values, const nb::object& launched);
};

std::shared_ptr<Entry> State::find(uint64_t hash, std::span<const uint64_t> words) {
  if (seen_revision != revision || entries.size() >= kMostEntries) {
    entries.clear();
    seen_revision = revision;
  }
  const auto [begin, end] = entries.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (it->second->is_for(words)) return it->second;
  }
  return nullptr;
}

void State::remember(uint64_t hash, const LaunchKey& key, std::span<PyObject* const> values,
                     const nb::object& launched) {
  const nb::object kernel = launched[0];
  const nb::object record = nb::getattr(kernel, "record", nb::none());
  if (record.is_none()) return;
  auto entry = std::make_shared<Entry>();
  const std::span<const uint64_t> words = key.words();
  entry->words.assign(words.begin(), words.end());
  entry->named = key.named();
  entry->kernel = kernel;
  entry->attributes = launched[1];
  entry->loaded = record[0];
  const nb::dict options = nb::borrow<nb::dict>(nb::object(record[2]));
  nb::dict words_of_grid;
  for (size_t i = 0; i < names.size(); ++i) {
    if (values[i] == nullptr) {
      words_of_grid[names[i]] = record[4][i];
    } else {
      words_of_grid[names[i]] = nb::handle(values[i]);
      if (constant[i] == 0 && !options.contains(names[i])) entry->varying.push_back(i);
    }
  }
  words_of_grid.update(options);
  entry->grid_words = words_of_grid;
  for (const nb::handle global : record[3]) entry->globals.push_back({global[0], global[1], global[2]});
  const lang::Kernel* typed = nullptr;
  if (nb::isinstance<DeviceKernel>(entry->loaded)) {
    entry->on_device = nb::inst_ptr<DeviceKernel>(entry->loaded);
    typed = &entry->on_device->kernel;
  } else {
    entry->on_cpu = nb::inst_ptr<lang::cpu::CpuKernel>(entry->loaded);
    typed = &entry->on_cpu->kernel();
  }
  const nb::object passed = record[1];
  for (size_t i = 0; i < names.size(); ++i) {
    if (!nb::cast<bool>(passed[i])) continue;
    if (values[i] == nullptr) return;
    if (entry->slots.size() == typed->parameters.size()) return;
    const lang::Type& type = typed->type(typed->parameters[entry->slots.size()].value);
    if (key.is_float(i) && (type.pointer || !lang::is_float(type.element))) return;
    entry->slots.push_back({type, i});
  }
  if (entry->slots.size() != typed->parameters.size()) return;
  const auto [begin, end] = entries.equal_range(hash);
  const auto known = std::find_if(begin, end, [&](const auto& one) { return one.second->is_for(words); });
  if (known != end) {
    known->second = std::move(entry);
  } else {
    entries.emplace(hash, std::move(entry));
  }
}

struct LauncherObject {
  PyObject head;
  State* state;
};

// What `kernel[grid]` is.
struct BoundObject {
  PyObject head;
  vectorcallfunc call;
  PyObject* launcher;
  PyObject* grid;
};

PyTypeObject* bound_type = nullptr;

// One call: its arguments beside the parameters.
class Call {
 public:
  Call(const BoundObject& bound, PyObject* const* arguments, size_t count, PyObject* keywords)
      : bound_(bound),
        state_(*reinterpret_cast<LauncherObject*>(bound.launcher)->state),
        arguments_(arguments),
        count_(count),
        keywords_(keywords) {}

  nb::object launch() {
    if (!has_key()) return in_python()[0];
    const uint64_t hash = key_.hash();
    const std::shared_ptr<Entry> entry = state_.find(hash, key_.words());
    if (entry != nullptr && std::ranges::all_of(entry->globals, &Global::holds)) return start(*entry);
    const nb::object launched = in_python();
    state_.remember(hash, key_, {values_.data(), state_.names.size()}, launched);
    return launched[0];
  }

 private:
  bool has_key();
  bool bind_keywords(size_t& options);
  nb::object in_python() const;
  Grid grid(const Entry& entry) const;
  nb::object start(const Entry& entry) const;

  const BoundObject& bound_;
  State& state_;
  PyObject* const* arguments_;
  const size_t count_;
  PyObject* const keywords_;
  LaunchKey key_;
  std::array<PyObject*, LaunchKey::kMost> values_;  // of the parameters, borrowed
  std::array<size_t, LaunchKey::kMost> option_at_;  // among the keywords
};

nb::object Call::in_python() const {
  nb::object positional = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(count_)));
  for (size_t i = 0; i < count_; ++i) {
    PyTuple_SetItem(positional.ptr(), static_cast<Py_ssize_t>(i), nb::borrow(arguments_[i]).release().ptr());
  }
  nb::dict words;
  const size_t named = keywords_ == nullptr ? 0 : static_cast<size_t>(PyTuple_Size(keywords_));
  for (size_t i = 0; i < named; ++i) {
    words[nb::handle(PyTuple_GetItem(keywords_, static_cast<Py_ssize_t>(i)))] = nb::handle(arguments_[count_ + i]);
  }
  if (words.contains("grid")) {
    PyErr_SetString(PyExc_TypeError, "a launch has its grid in brackets: kernel[grid](arguments)");
    nb::raise_python_error();
  }
  words["grid"] = nb::handle(bound_.grid);
  const nb::object run = nb::handle(bound_.launcher).attr("_launched");
  PyObject* const result = PyObject_Call(run.ptr(), positional.ptr(), words.ptr());
  if (result == nullptr) nb::raise_python_error();
  return nb::steal(result);
}

bool Call::bind_keywords(size_t& options) {
  static PyObject* const own[] = {PyUnicode_InternFromString("stream"), PyUnicode_InternFromString("warmup"),
                                  PyUnicode_InternFromString("grid")};
  const size_t named = static_cast<size_t>(PyTuple_Size(keywords_));
  for (size_t k = 0; k < named; ++k) {
    PyObject* name = nb::borrow(PyTuple_GetItem(keywords_, static_cast<Py_ssize_t>(k))).release().ptr();
    PyUnicode_InternInPlace(&name);
    const nb::object held = nb::steal(name);
    if (std::ranges::find(own, name) != std::end(own)) return false;
    const auto found = std::ranges::find_if(state_.names, [&](const nb::object& n) { return n.ptr() == name; });
    if (found == state_.names.end()) {
      if (options == option_at_.size()) return false;
      option_at_[options++] = k;
      continue;
    }
    PyObject*& value = values_[static_cast<size_t>(found - state_.names.begin())];
    if (value != nullptr) return false;
    value = arguments_[count_ + k];
  }
  return true;
}

bool Call::has_key() {
  const size_t parameters = state_.names.size();
  if (recorders != 0 || !state_.is_described() || count_ > parameters || PyList_Size(state_.hooks.ptr()) != 0) {
    return false;
  }
  std::copy(arguments_, arguments_ + count_, values_.begin());
  std::fill(values_.begin() + count_, values_.begin() + parameters, nullptr);
  size_t options = 0;
  if (keywords_ != nullptr && !bind_keywords(options)) return false;
  for (size_t i = 0; i < parameters; ++i) {
    if (values_[i] == nullptr) values_[i] = state_.defaults[i].ptr();
    const bool added = values_[i] == nullptr     ? state_.may_be_absent && key_.add_absent()
                       : state_.constant[i] != 0 ? key_.add_constant(values_[i])
                                                 : key_.add_argument(values_[i], state_.by_value[i] != 0);
    if (!added) return false;
  }
  for (size_t i = 0; i < options; ++i) {
    const size_t at = option_at_[i];
    if (!key_.add_option(PyTuple_GetItem(keywords_, static_cast<Py_ssize_t>(at)), arguments_[count_ + at]))
      return false;
  }
  return true;
}

// False: for grid_of() of Python's to say what is wrong.
bool read_extent(PyObject* value, int64_t& extent) {
  if (!PyLong_CheckExact(value)) return false;
  int overflow = 0;
  extent = PyLong_AsLongLongAndOverflow(value, &overflow);
  return overflow == 0 && extent >= 0;
}

bool read_grid(PyObject* value, Grid& grid) {
  if (!PyTuple_CheckExact(value)) return read_extent(value, grid[0]);
  const Py_ssize_t count = PyTuple_Size(value);
  if (count < 1 || count > 3) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!read_extent(PyTuple_GetItem(value, i), grid[static_cast<size_t>(i)])) return false;
  }
  return true;
}

Grid Call::grid(const Entry& entry) const {
  nb::object value = nb::borrow(bound_.grid);
  if (!PyTuple_CheckExact(value.ptr()) && PyCallable_Check(value.ptr()) != 0) {
    const nb::object words = nb::steal(PyDict_Copy(entry.grid_words.ptr()));
    for (const size_t i : entry.varying) {
      if (PyDict_SetItem(words.ptr(), state_.names[i].ptr(), values_[i]) != 0) nb::raise_python_error();
    }
    value = value(words);
  }
  Grid grid = {1, 1, 1};
  if (read_grid(value.ptr(), grid)) return grid;
  const nb::object extents = nb::module_::import_("heddle.tile.runtime.kernel").attr("grid_of")(value);
  for (size_t i = 0; i < grid.size(); ++i) grid[i] = nb::cast<int64_t>(extents[i]);
  return grid;
}

nb::object Call::start(const Entry& entry) const {
  if (PyDict_Size(entry.attributes.ptr()) != 0) {
    for (const auto& [name, value] : nb::borrow<nb::dict>(entry.attributes)) {
      if (PyObject_SetAttr(bound_.launcher, name.ptr(), value.ptr()) != 0) nb::raise_python_error();
    }
  }
  const Grid grid = this->grid(entry);
  if (std::ranges::find(grid, 0) != grid.end()) return entry.kernel;
  std::array<uint64_t, LaunchKey::kMost> words;
  const auto values = key_.values();
  for (size_t i = 0; i < entry.slots.size(); ++i) {
    words[i] = lang::argument_word(entry.slots[i].type, values[entry.slots[i].parameter]);
  }
  const std::span<const uint64_t> arguments(words.data(), entry.slots.size());
  if (entry.on_device != nullptr) {
    void* const stream = key_.stream();
    const nb::gil_scoped_release free;
    entry.on_device->compiled->launch(grid, arguments, stream, std::max(key_.device(), 0));
  } else {
    interruptible([&] {
      entry.on_cpu->launch(grid, arguments, tile_threads(), [](const std::string& line) {
        const nb::gil_scoped_acquire held;
        nb::print(line.c_str());
      });
    });
  }
  return entry.kernel;
}

PyObject* call_bound(PyObject* self, PyObject* const* arguments, size_t flags, PyObject* keywords) noexcept {
  try {
    const auto count = static_cast<size_t>(PyVectorcall_NARGS(flags));
    return Call(*reinterpret_cast<BoundObject*>(self), arguments, count, keywords).launch().release().ptr();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

int traverse_bound(PyObject* self, visitproc visit, void* arg) {
  const auto& bound = *reinterpret_cast<BoundObject*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(bound.launcher);
  Py_VISIT(bound.grid);
  return 0;
}

void delete_bound(PyObject* self) {
  auto& bound = *reinterpret_cast<BoundObject*>(self);
  PyObject_GC_UnTrack(self);
  Py_DECREF(bound.launcher);
  Py_DECREF(bound.grid);
  PyObject* const type = reinterpret_cast<PyObject*>(Py_TYPE(self));
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

PyObject* subscript(PyObject* self, PyObject* grid) {
  auto* const bound = PyObject_GC_New(BoundObject, bound_type);
  if (bound == nullptr) return nullptr;
  bound->call = &call_bound;
  bound->launcher = nb::borrow(self).release().ptr();
  bound->grid = nb::borrow(grid).release().ptr();
  PyObject_GC_Track(reinterpret_cast<PyObject*>(bound));
  return reinterpret_cast<PyObject*>(bound);
}

PyObject* new_launcher(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* const self = PyType_GenericAlloc(type, 0);
  if (self != nullptr) reinterpret_cast<LauncherObject*>(self)->state = new State;
  return self;
}

int traverse_launcher(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const State* const state = reinterpret_cast<LauncherObject*>(self)->state;
  if (state == nullptr) return 0;
  Py_VISIT(state->hooks.ptr());
  for (const nb::object& value : state->defaults) Py_VISIT(value.ptr());
  for (const auto& [hash, entry] : state->entries) {
    for (const nb::object& value : entry->named) Py_VISIT(value.ptr());
    for (const nb::object* value : {&entry->kernel, &entry->loaded, &entry->grid_words, &entry->attributes})
      Py_VISIT(value->ptr());
    for (const Global& global : entry->globals) {
      Py_VISIT(global.names.ptr());
      Py_VISIT(global.value.ptr());
    }
  }
  return 0;
}

int clear_launcher(PyObject* self) {
  State* const state = reinterpret_cast<LauncherObject*>(self)->state;
  if (state == nullptr) return 0;
  State dropped;  // destroyed when the object holds nothing any more
  std::swap(dropped, *state);
  return 0;
}

void delete_launcher(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  delete std::exchange(reinterpret_cast<LauncherObject*>(self)->state, nullptr);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyObject* describe(PyObject* self, PyObject* arguments) noexcept {
  PyObject *names = nullptr, *defaults = nullptr, *constants = nullptr, *by_value = nullptr, *hooks = nullptr;
  int may_be_absent = 0;
  if (PyArg_ParseTuple(arguments, "OOOOpO", &names, &defaults, &constants, &by_value, &may_be_absent, &hooks) == 0) {
    return nullptr;
  }
  try {
    State state;
    for (const nb::handle name : nb::handle(names)) {
      PyObject* interned = nb::borrow(name).release().ptr();
      PyUnicode_InternInPlace(&interned);
      state.names.push_back(nb::steal(interned));
      PyObject* const value = PyDict_GetItemWithError(defaults, interned);
      state.defaults.push_back(value == nullptr ? nb::object() : nb::borrow(value));
    }
    for (const nb::handle is_constant : nb::handle(constants)) state.constant.push_back(nb::cast<bool>(is_constant));
    for (const nb::handle tells_apart : nb::handle(by_value)) state.by_value.push_back(nb::cast<bool>(tells_apart));
    state.may_be_absent = may_be_absent != 0;
    // Kernels with more parameters are launched by Python alone.
    if (state.names.size() <= LaunchKey::kMost) state.hooks = nb::borrow(hooks);
    std::swap(*reinterpret_cast<LauncherObject*>(self)->state, state);
  } catch (...) {
    set_python_error();
    return nullptr;
  }
  return nb::none().release().ptr();
}

PyTypeObject* make_type(PyType_Spec& spec) {
  PyObject* const type = PyType_FromSpec(&spec);
  if (type == nullptr) nb::raise_python_error();
  return reinterpret_cast<PyTypeObject*>(type);
}

template <typename F>
void* slot(F* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

void register_launcher(nb::module_& module) {
  static PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(BoundObject, call), READONLY, nullptr},
                                  {nullptr, 0, 0, 0, nullptr}};
  static PyType_Slot bound_slots[] = {{Py_tp_call, slot(&PyVectorcall_Call)},
                                      {Py_tp_members, members},
                                      {Py_tp_traverse, slot(&traverse_bound)},
                                      {Py_tp_dealloc, slot(&delete_bound)},
                                      {0, nullptr}};
  static PyType_Spec bound_spec = {
      "heddle._core.tile.BoundLaunch", sizeof(BoundObject), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
      bound_slots};
  static PyMethodDef methods[] = {
      {"_describe", &describe, METH_VARARGS,
       "_describe(names, defaults, constants, by_value, may_be_absent, hooks): the parameters; which are constants; of "
       "which other\n"
       "numbers may have other kernels; whether a launch leaves some out; the list of hooks before launches."},
      {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot launcher_slots[] = {{Py_tp_new, slot(&new_launcher)},
                                         {Py_tp_methods, methods},
                                         {Py_mp_subscript, slot(&subscript)},
                                         {Py_tp_traverse, slot(&traverse_launcher)},
                                         {Py_tp_clear, slot(&clear_launcher)},
                                         {Py_tp_dealloc, slot(&delete_launcher)},
                                         {0, nullptr}};
  static PyType_Spec launcher_spec = {"heddle._core.tile.Launcher", sizeof(LauncherObject), 0,
                                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, launcher_slots};
  bound_type = make_type(bound_spec);
  module.attr("Launcher") = nb::steal(reinterpret_cast<PyObject*>(make_type(launcher_spec)));
  module.def(
      "count_recorders", [](int change) { recorders += change; }, nb::arg("change"),
      "While recorders are active all launches go through Launcher.run.");
  module.def(
      "forget_launches", [] { ++revision; }, "The text of a function has changed.");
}

}  // namespace heddle::python
