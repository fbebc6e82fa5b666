#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lang/interpret/argument.h"

namespace heddle::python {

// The arguments of a launch, read without calling Python code: values for the kernel, and words that form a cache key.
// Launches that heddle/tile/runtime/specialize.py distinguishes have different words. Launches with different words may
// still share a specialization. Reading an argument takes tens of nanoseconds.
class LaunchKey {
 public:
  static constexpr size_t kMost = 64;  // the maximum number of parameters, and of options

  LaunchKey() = default;
  ~LaunchKey();
  LaunchKey(const LaunchKey&) = delete;
  LaunchKey& operator=(const LaunchKey&) = delete;

  // Adds the argument of the next parameter. Returns false if the words cannot represent the argument; the launch then
  // has no key. With `by_value`, if the argument is a number, the words also depend on its value.
  bool add_argument(PyObject* value, bool by_value = false);
  bool add_constant(PyObject* value);
  bool add_absent() { return add(kAbsent, 0); }
  bool add_option(PyObject* name, PyObject* value);

  uint64_t hash() const;
  std::span<const uint64_t> words() const { return {words_.data(), count_}; }
  // The kernel's values of all parameters, in order; zero for constants.
  std::span<const lang::Argument> values() const { return {values_.data(), parameters_}; }
  bool is_float(size_t parameter) const { return words_[2 * parameter] == kFloat; }
  // The objects whose addresses are in the words. Whoever stores the words must keep these objects alive.
  std::vector<nanobind::object> named() const;

  int device() const { return device_; }  // the GPU of the first array on a GPU; kHost if all arrays are on the host
  // The current stream of the library of the first array on a GPU.
  void* stream() const;

 private:
  enum Tag : uint64_t { kNone, kInt, kBool, kFloat, kArray, kObject, kText, kConstantFloat, kAbsent };

  bool add(uint64_t word, uint64_t payload, lang::Argument value = {});
  bool add_integer(PyObject* value, bool by_value);
  bool add_array(PyObject* value);

  std::array<uint64_t, 4 * kMost> words_;
  std::array<lang::Argument, kMost> values_;
  std::array<PyObject*, 3 * kMost> texts_;  // owned references
  std::array<PyObject*, 3 * kMost> objects_;
  size_t count_ = 0, parameters_ = 0, text_count_ = 0, object_count_ = 0;
  int device_ = -1;
  const void* exchange_ = nullptr;  // the DLPack exchange API of the first array on a GPU
};

}  // namespace heddle::python
