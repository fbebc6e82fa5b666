#pragma once

#include <cstdint>

// The binary interface of DLPack (github.com/dmlc/dlpack), version 1.3, as far as Heddle uses it.
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
  int64_t* strides = nullptr;  // in elements; null: dense
  uint64_t byte_offset = 0;
};

// What the capsule "dltensor" holds.
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

// What the capsule "dltensor_versioned" holds.
struct ManagedVersioned {
  Version version;
  void* context = nullptr;
  void (*deleter)(ManagedVersioned* self) = nullptr;
  uint64_t flags = 0;
  Tensor tensor;
};

// What the attribute `__dlpack_c_exchange_api__` of a class points to, a capsule "dlpack_exchange_api": the same
// without a call of Python. Functions return 0, or -1 with a Python exception.
struct ExchangeApi {
  Version version;
  ExchangeApi* previous;
  using SetError = void (*)(void* context, const char* kind, const char* message);
  int (*allocate)(Tensor* prototype, ManagedVersioned** out, void* error_context, SetError set_error);
  int (*own)(void* object, ManagedVersioned** out);
  int (*to_object)(ManagedVersioned* tensor, void** object);  // takes the tensor
  int (*view)(void* object, Tensor* out);                     // may be null
  int (*current_stream)(int32_t device_type, int32_t device_id, void** stream);
};

}  // namespace heddle::python::dlpack
