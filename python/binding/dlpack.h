#pragma once

#include <cstdint>

// The parts of the binary interface of DLPack (github.com/dmlc/dlpack), version 1.3, that Heddle uses.
namespace heddle::python::dlpack {

enum DeviceType : int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13 };

struct Device {
  int32_t type = kCpu, id = 0;
};

enum TypeCode : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kBool = 6,
  kFloat8E4M3Fn = 10,
  kFloat8E4M3Fnuz = 11,
  kFloat8E5M2 = 12,
  kFloat8E5M2Fnuz = 13,
  kFloat8E8M0Fnu = 14,
};

struct DataType {
  uint8_t code = 0, bits = 0;
  uint16_t lanes = 1;
};

struct Tensor {
  void* data = nullptr;
  Device device;
  int32_t rank = 0;
  DataType dtype;
  int64_t* shape = nullptr;
  int64_t* strides = nullptr;  // in elements; null for a dense tensor
  uint64_t byte_offset = 0;
};

// The content of a capsule named "dltensor".
struct Managed {
  Tensor tensor;
  void* context = nullptr;
  void (*deleter)(Managed* self) = nullptr;
};

struct Version {
  uint32_t major = 1, minor = 1;
};

// Bits of ManagedVersioned::flags.
inline constexpr uint64_t kReadOnly = 1, kIsCopied = 2;

// The content of a capsule named "dltensor_versioned".
struct ManagedVersioned {
  Version version;
  void* context = nullptr;
  void (*deleter)(ManagedVersioned* self) = nullptr;
  uint64_t flags = 0;
  Tensor tensor;
};

// The functions of DLPack's C exchange interface, which exchanges tensors without calling Python. The attribute
// `__dlpack_c_exchange_api__` of a class is a capsule "dlpack_exchange_api" that points to this table. The functions
// return 0, or -1 with a Python exception set.
struct ExchangeApi {
  Version version;
  ExchangeApi* previous;
  using SetError = void (*)(void* context, const char* kind, const char* message);
  int (*allocate)(Tensor* prototype, ManagedVersioned** out, void* error_context, SetError set_error);
  int (*own)(void* object, ManagedVersioned** out);
  int (*to_object)(ManagedVersioned* tensor, void** object);  // takes ownership of the tensor
  int (*view)(void* object, Tensor* out);                     // null if the class has no such function
  int (*current_stream)(int32_t device_type, int32_t device_id, void** stream);
};

}  // namespace heddle::python::dlpack
