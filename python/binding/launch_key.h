#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lang/interpret/argument.h"

namespace heddle::python {

// The arguments of a launch, read without a call of Python: values for the kernel, and words by which launches are told
// apart. What heddle/tile/runtime/specialize.py tells apart has different words; the reverse need not hold.
// Takes tens of nanoseconds an argument.
class LaunchKey {
 public:
  static constexpr size_t kMost = 64;  // parameters, and options as well

  LaunchKey() = default;
  ~LaunchKey();
  LaunchKey(const LaunchKey&) = delete;
  LaunchKey& operator=(const LaunchKey&) = delete;

  // Of the next parameter. False: an argument that only Python can tell about, so that there is no key. `by_value`:
  // other numbers have other words, too.
  bool add_argument(PyObject* value, bool by_value = false);
  bool add_constant(PyObject* value);
  bool add_absent() { return add(kAbsent, 0); }
  bool add_option(PyObject* name, PyObject* value);

  uint64_t hash() const;
  std::span<const uint64_t> words() const { return {words_.data(), count_}; }
  // Of the parameters, in order; zero for constants.
  std::span<const lang::Argument> values() const { return {values_.data(), parameters_}; }
  bool is_float(size_t parameter) const { return words_[2 * parameter] == kFloat; }
  // Objects whose address is in the words. Who keeps the words keeps these.
  std::vector<nanobind::object> named() const;

  int device() const { return device_; }  // of the first array that is on a GPU; kHost: none is
  // The stream on which the library of that array works now.
  void* stream() const;

 private:
  enum Tag : uint64_t { kNone, kInt, kBool, kFloat, kArray, kObject, kText, kConstantFloat, kAbsent };

  bool add(uint64_t word, uint64_t payload, lang::Argument value = {});
  bool add_integer(PyObject* value, bool by_value);
  bool add_array(PyObject* value);

  std::array<uint64_t, 4 * kMost> words_;
  std::array<lang::Argument, kMost> values_;
  std::array<PyObject*, 3 * kMost> texts_;  // owned
  std::array<PyObject*, 3 * kMost> objects_;
  size_t count_ = 0, parameters_ = 0, text_count_ = 0, object_count_ = 0;
  int device_ = -1;
  const void* exchange_ = nullptr;  // of the library of the array on a GPU
};

}  // namespace heddle::python
