#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "dlpack.h"
#include "heddle/tensor.h"

namespace heddle::python {

inline constexpr int kHost = -1;

// A caller's array. Its memory stays valid while the Python object from which the array was made, or `hold`, exists.
struct Array {
  void* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<int64_t> strides;  // in elements; empty: dense
  int device = kHost;            // kHost or the ordinal of a GPU
  bool read_only = false;
  bool low_bits = false;  // True if each element narrower than a byte has its own byte and uses the byte's low bits.
  std::shared_ptr<const void> hold = {};

  bool is_dense() const;
  std::string place() const;  // "host memory", "cuda:0"
};

// Access to the arrays of one Python library, such as NumPy. Call the methods with the GIL held.
class Family {
 public:
  virtual ~Family() = default;

  // Returns a description of the array `object`, without a copy. The caller may use the array on `stream`; that use is
  // ordered after the work that produces the array. `where` names the array in error messages ("input x"). Throws
  // kInvalidInput if the object is not an array of numbers, and kUnsupportedType if Heddle has no type for its
  // elements.
  virtual Array view(nanobind::handle object, const std::string& where, void* stream) const = 0;
  // view() for an array that will be written to. Also throws kInvalidInput if the array's memory is read-only.
  Array view_to_write(nanobind::handle object, const std::string& where, void* stream) const;
  // Wraps the memory of a tensor in an array of this library, without a copy.
  virtual nanobind::object of_host(Tensor tensor) const = 0;
  // Returns an uninitialised dense array on a GPU, for work on `stream`, the library's current stream.
  virtual nanobind::object empty(DType dtype, const Shape& shape, int device, void* stream) const = 0;
  // The library's current stream; null for the default stream.
  virtual void* current_stream(int device) const = 0;
  // True if the allocator reuses freed memory only for later work on the same stream, in stream order.
  virtual bool allocates_in_order() const = 0;
  // The Python code with which a user converts an array to `dtype`, makes it dense, or moves it to `device`. For error
  // messages.
  virtual std::string how_to_convert(DType dtype) const = 0;
  virtual std::string how_to_make_dense() const = 0;
  virtual std::string how_to_move(int device) const = 0;

 private:
  // view() that also sets Array::read_only, for libraries whose view() does not.
  virtual Array view_with_flags(nanobind::handle object, const std::string& where, void* stream) const {
    return view(object, where, stream);
  }
};

// Returns the family of an object's class. Throws kInvalidInput, naming `where`, if the object is not an array.
const Family& family_of(nanobind::handle object, const std::string& where);
// NumPy's family. It creates the results of calls that pass no array.
const Family& numpy_family();

// The DLPack C exchange API of an array class; null if the class has no API of the supported version.
const dlpack::ExchangeApi* exchange_api_of(nanobind::handle cls);

// Returns the CUDA handle of a stream, given as None, a number, or an object of torch, CuPy or cuda.core. Throws
// kInvalidArgument.
void* stream_of(nanobind::handle stream);

}  // namespace heddle::python
