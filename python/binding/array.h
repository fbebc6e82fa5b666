#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "dlpack.h"
#include "heddle/tensor.h"

namespace heddle::python {

inline constexpr int kHost = -1;

// An array of the caller. Its memory is there as long as the object that it is of, and `hold`.
struct Array {
  void* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<int64_t> strides;  // in elements; empty: dense
  int device = kHost;            // else the ordinal of a GPU
  bool read_only = false;
  bool low_bits = false;  // elements narrower than a byte lie in the low bits of one, as those of ml_dtypes do
  std::shared_ptr<const void> hold = {};

  bool is_dense() const;
  std::string place() const;  // "host memory", "cuda:0"
};

// A kind of arrays: those of one library. Its methods are called with the GIL.
class Family {
 public:
  virtual ~Family() = default;

  // `where`: "input x", for what is thrown. The array is used on `stream`: its producer's work is in front of that.
  // Throws kInvalidInput where the object is no array of numbers, kUnsupportedType.
  virtual Array view(nanobind::handle object, const std::string& where, void* stream) const = 0;
  // The same of an array that is to be written. Throws kInvalidInput where its memory is read-only, too.
  Array view_to_write(nanobind::handle object, const std::string& where, void* stream) const;
  // An array of this library in the memory of a tensor; no copy.
  virtual nanobind::object of_host(Tensor tensor) const = 0;
  // A dense one on a GPU with any content, for work on `stream`, which is the current one of the library.
  virtual nanobind::object empty(DType dtype, const Shape& shape, int device, void* stream) const = 0;
  // The stream on which the library works now; null: the default one.
  virtual void* current_stream(int device) const = 0;
  // Whether empty() takes memory that was given up for further work on the same stream only, and in its order.
  virtual bool allocates_in_order() const = 0;
  // What a user writes to get another dtype, dense memory, another place.
  virtual std::string how_to_convert(DType dtype) const = 0;
  virtual std::string how_to_make_dense() const = 0;
  virtual std::string how_to_move(int device) const = 0;

 private:
  // view() with Array::read_only, where view() alone does not tell.
  virtual Array view_with_flags(nanobind::handle object, const std::string& where, void* stream) const {
    return view(object, where, stream);
  }
};

// Of the class of an object. Throws kInvalidInput, naming `where`, for an object that is no array.
const Family& family_of(nanobind::handle object, const std::string& where);
// That of arrays where nobody gave one.
const Family& numpy_family();

// The C interface of a class of arrays; null where it has none of this version.
const dlpack::ExchangeApi* exchange_api_of(nanobind::handle cls);

// A handle of a stream: None, a number, or an object of torch, CuPy or cuda.core. Throws kInvalidArgument.
void* stream_of(nanobind::handle stream);

}  // namespace heddle::python
