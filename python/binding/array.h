#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "dlpack.h"
#include "heddle/tensor.h"

namespace heddle::python {

inline constexpr int kHost = -1;

// A caller's array. Its memory lives as long as the object that it came from, and as `hold`.
struct Array {
  void* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<int64_t> strides;  // in elements; empty: dense
  int device = kHost;            // else the ordinal of a GPU
  bool read_only = false;
  bool low_bits = false;  // elements narrower than a byte are in its low bits, as in ml_dtypes
  std::shared_ptr<const void> hold = {};

  bool is_dense() const;
  std::string place() const;  // "host memory", "cuda:0"
};

// The arrays of one library. Call the methods with the GIL.
class Family {
 public:
  virtual ~Family() = default;

  // `where`: "input x", for error messages. The array is used on `stream`, after its producer's work. Throws
  // kInvalidInput if the object is not an array of numbers, or kUnsupportedType.
  virtual Array view(nanobind::handle object, const std::string& where, void* stream) const = 0;
  // The same for an array to be written to. Also throws kInvalidInput if its memory is read-only.
  Array view_to_write(nanobind::handle object, const std::string& where, void* stream) const;
  // An array of this library in the memory of a tensor; no copy.
  virtual nanobind::object of_host(Tensor tensor) const = 0;
  // An uninitialised dense array on a GPU, for work on `stream`, which is the library's current one.
  virtual nanobind::object empty(DType dtype, const Shape& shape, int device, void* stream) const = 0;
  // The library's current stream; null for the default one.
  virtual void* current_stream(int device) const = 0;
  // True if the allocator reuses freed memory only for later work on the same stream, in stream order.
  virtual bool allocates_in_order() const = 0;
  // What a user writes to get another dtype, dense memory or another device.
  virtual std::string how_to_convert(DType dtype) const = 0;
  virtual std::string how_to_make_dense() const = 0;
  virtual std::string how_to_move(int device) const = 0;

 private:
  // view() that also sets Array::read_only, for libraries whose view() does not.
  virtual Array view_with_flags(nanobind::handle object, const std::string& where, void* stream) const {
    return view(object, where, stream);
  }
};

// The family of an object's class. Throws kInvalidInput, naming `where`, if the object is not an array.
const Family& family_of(nanobind::handle object, const std::string& where);
// The family of results if a call passes no array.
const Family& numpy_family();

// The C interface of a class of arrays; null if it has none of this version.
const dlpack::ExchangeApi* exchange_api_of(nanobind::handle cls);

// The handle of a stream given as None, a number, or an object of torch, CuPy or cuda.core. Throws kInvalidArgument.
void* stream_of(nanobind::handle stream);

}  // namespace heddle::python
