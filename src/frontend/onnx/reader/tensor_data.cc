#include "frontend/onnx/reader/tensor_data.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <span>

#include "base/check.h"
#include "base/memory.h"

namespace heddle::onnx {
namespace {

// A sparse tensor may claim any extent; what it expands to is bounded.
constexpr int64_t kMaxSparseElements = int64_t{1} << 30;

[[noreturn]] void malformed(const std::string& where, std::string why) {
  fail(ErrorCode::kMalformedModel, where, std::move(why));
}

int64_t checked_count(const std::vector<int64_t>& dims, const std::string& where) {
  int64_t count = 1;
  bool zero = false;
  for (const int64_t d : dims) {
    if (d < 0) malformed(where, fmt::format("dimension {} is negative", d));
    if (d == 0) zero = true;
    if (d != 0 && __builtin_mul_overflow(count, d, &count)) malformed(where, "the number of elements overflows");
  }
  if (!zero && count > (int64_t{1} << 56)) malformed(where, "the number of elements overflows");
  return zero ? 0 : count;
}

size_t stored_bytes(DType type, int64_t count) {
  const auto bits = static_cast<size_t>(bits_of(type));
  return bits >= 8 ? static_cast<size_t>(count) * (bits / 8) : (static_cast<size_t>(count) * bits + 7) / 8;
}

// 4-bit and 2-bit elements: the first in the low bits of a byte. Signed ones are sign-extended.
void unpack(DType type, std::string_view bytes, Tensor& out) {
  const int bits = bits_of(type);
  const int per_byte = 8 / bits;
  const auto mask = static_cast<uint8_t>((1 << bits) - 1);
  const auto sign = static_cast<uint8_t>(is_signed_int(type) ? 1 << (bits - 1) : 0);
  auto* to = static_cast<uint8_t*>(out.mutable_data());
  for (int64_t i = 0; i < out.size(); ++i) {
    const auto byte = static_cast<uint8_t>(bytes[static_cast<size_t>(i / per_byte)]);
    const auto code = static_cast<uint8_t>((byte >> (bits * static_cast<int>(i % per_byte))) & mask);
    to[i] = static_cast<uint8_t>((code ^ sign) - sign);
  }
}

// Weights seldom lie aligned in a file. A Tensor of its own would be zeroed first, which costs as much as the copy.
Tensor aligned_copy(DType type, const Shape& shape, std::string_view bytes) {
  constexpr size_t kAlignment = 64;
  std::shared_ptr<void> memory(
      std::aligned_alloc(kAlignment, (bytes.size() + kAlignment - 1) / kAlignment * kAlignment), std::free);
  if (memory == nullptr) {
    fail_allocation(fmt::format("tensor {}{}", to_string(type), to_string(shape)), bytes.size());
  }
  std::memcpy(memory.get(), bytes.data(), bytes.size());
  release_pages(bytes.data(), bytes.size());
  const void* data = memory.get();
  return Tensor::borrow(type, shape, data, std::move(memory));
}

Tensor from_bytes(DType type, const Shape& shape, std::string_view bytes, const std::shared_ptr<const void>& owner,
                  const std::string& where) {
  const int64_t count = element_count(shape);
  const size_t wanted = stored_bytes(type, count);
  if (bytes.size() != wanted) {
    malformed(where, fmt::format("{} bytes of data, but {}{} takes {}", bytes.size(), to_string(type), to_string(shape),
                                 wanted));
  }
  const size_t width = size_of(type);
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % width == 0;
  if (aligned && wanted > 0 && bits_of(type) >= 8 && type != DType::kBool) {
    return Tensor::borrow(type, shape, bytes.data(), owner);
  }
  if (bits_of(type) >= 8 && type != DType::kBool && wanted > 0) return aligned_copy(type, shape, bytes);
  Tensor tensor(type, shape);
  if (bits_of(type) < 8) {
    unpack(type, bytes, tensor);
  } else if (type == DType::kBool) {
    auto* to = static_cast<uint8_t*>(tensor.mutable_data());
    for (size_t i = 0; i < wanted; ++i) to[i] = bytes[i] != 0;
  }
  return tensor;
}

template <typename To, typename From>
Tensor convert(DType type, const Shape& shape, const std::vector<From>& values, const std::string& where) {
  if (static_cast<size_t>(element_count(shape)) != values.size()) {
    fail(values.empty() ? ErrorCode::kMissingData : ErrorCode::kMalformedModel, where,
         fmt::format("{} values given for {}{}", values.size(), to_string(type), to_string(shape)));
  }
  Tensor tensor(type, shape);
  auto to = tensor.mutable_values<To>();
  for (size_t i = 0; i < values.size(); ++i) to[i] = static_cast<To>(values[i]);
  return tensor;
}

// Packed narrow types in int32_data: each number holds one byte of packed elements.
Tensor from_packed_ints(DType type, const Shape& shape, const std::vector<int32_t>& values, const std::string& where) {
  const std::string bytes(values.begin(), values.end());
  return from_bytes(type, shape, bytes, nullptr, where);
}

Tensor from_int32(DType type, const Shape& shape, const std::vector<int32_t>& values, const std::string& where) {
  if (bits_of(type) < 8) return from_packed_ints(type, shape, values, where);
  if (type == DType::kBool) {
    Tensor tensor = convert<uint8_t>(type, shape, values, where);
    for (size_t i = 0; i < values.size(); ++i) tensor.mutable_values<uint8_t>()[i] = values[i] != 0;
    return tensor;
  }
  switch (size_of(type)) {
    case 1:
      return convert<uint8_t>(type, shape, values, where);
    case 2:
      return convert<uint16_t>(type, shape, values, where);
    default:
      return convert<int32_t>(type, shape, values, where);
  }
}

Tensor from_fields(const TensorProto& p, DType type, const Shape& shape, const std::string& where) {
  switch (type) {
    case DType::kF32:
      return convert<float>(type, shape, p.float_data, where);
    case DType::kF64:
      return convert<double>(type, shape, p.double_data, where);
    case DType::kI64:
      return convert<int64_t>(type, shape, p.int64_data, where);
    case DType::kU64:
      return convert<uint64_t>(type, shape, p.uint64_data, where);
    case DType::kU32:
      return convert<uint32_t>(type, shape, p.uint64_data, where);
    default:
      return from_int32(type, shape, p.int32_data, where);
  }
}

}  // namespace

DType dtype_of(int64_t onnx_type, const std::string& where) {
  using D = DType;
  static constexpr std::array kTypes = {
      D::kF32,    D::kU8,         D::kI8,  D::kU16, D::kI16,    D::kI32,    D::kI64,  D::kString, D::kBool,
      D::kF16,    D::kF64,        D::kU32, D::kU64, D::kString, D::kString, D::kBF16, D::kF8E4M3, D::kF8E4M3Fnuz,
      D::kF8E5M2, D::kF8E5M2Fnuz, D::kU4,  D::kI4,  D::kF4E2M1, D::kF8E8M0, D::kU2,   D::kI2};
  if (onnx_type == 14 || onnx_type == 15) {
    fail(ErrorCode::kUnsupportedType, where, "complex numbers are not supported");
  }
  if (onnx_type < 1 || onnx_type > static_cast<int64_t>(kTypes.size())) {
    malformed(where, fmt::format("{} is no element type of ONNX", onnx_type));
  }
  return kTypes[static_cast<size_t>(onnx_type - 1)];
}

TensorLoader::Bytes TensorLoader::external_bytes(const TensorProto& proto, size_t expected, const std::string& where) {
  const ExternalRef ref = external_ref(proto, where);
  HEDDLE_CHECK(locations_.contains(std::string(ref.location)), "{} is missed by the walk over tensors", where);
  const std::string path = folder_.path_of(ref.location);
  auto at = files_.find(ref.location);
  if (at == files_.end()) {
    const Descriptor file = folder_.open(ref.location, where);
    try {
      at = files_.emplace(ref.location, MappedFile::read(file.get(), path)).first;
    } catch (const Error& error) {
      fail(ErrorCode::kMissingData, where, fmt::format("external data file {}: {}", path, error.why()),
           "Copy the data file to the model's folder");
    }
  }
  const std::string_view bytes = at->second->text();
  const size_t length = ref.length.value_or(expected);
  if (ref.offset > bytes.size() || length > bytes.size() - ref.offset) {
    fail(ErrorCode::kMissingData, where,
         fmt::format("{} bytes from {} of {} are wanted, the file has {}", length, ref.offset, path, bytes.size()),
         "The data file is truncated or belongs to another model");
  }
  return {bytes.substr(ref.offset, length), at->second};
}

void TensorLoader::take_bytes(DType type, int64_t count, const std::string& where) {
  if (budget_ != nullptr) budget_->take_bytes(static_cast<uint64_t>(count) * size_of(type), where);
}

template <typename Proto>
Tensor TensorLoader::load_once(std::unordered_map<const Proto*, Tensor>& loaded, const Proto& proto,
                               const std::string& where) {
  const auto found = loaded.find(&proto);
  return found != loaded.end() ? found->second : loaded.emplace(&proto, load_new(proto, where)).first->second;
}

Tensor TensorLoader::load(const TensorProto& proto, const std::string& where) {
  return load_once(dense_, proto, where);
}

Tensor TensorLoader::load(const SparseTensorProto& proto, const std::string& where) {
  return load_once(sparse_, proto, where);
}

Tensor TensorLoader::load_new(const TensorProto& proto, const std::string& where) {
  const DType type = dtype_of(proto.data_type, where);
  const int64_t count = checked_count(proto.dims, where);
  const Shape& shape = proto.dims;
  if (type == DType::kString) {
    if (static_cast<size_t>(count) != proto.string_data.size()) {
      malformed(where, fmt::format("{} strings given for shape {}", proto.string_data.size(), to_string(shape)));
    }
    return Tensor::of_strings(shape, {proto.string_data.begin(), proto.string_data.end()});
  }
  Tensor tensor;
  if (proto.external) {
    const Bytes bytes = external_bytes(proto, stored_bytes(type, count), where);
    tensor = from_bytes(type, shape, bytes.view, bytes.owner, where);
  } else {
    tensor = proto.raw_data ? from_bytes(type, shape, *proto.raw_data, owner_, where)
                            : from_fields(proto, type, shape, where);
  }
  take_bytes(type, count, where);  // no more than a few times the file's size so far
  return tensor;
}

Tensor TensorLoader::load_new(const SparseTensorProto& proto, const std::string& where) {
  const int64_t count = checked_count(proto.dims, where);
  if (count > kMaxSparseElements) malformed(where, "the sparse tensor is too large to be expanded");
  const Tensor values = load(proto.values, where);
  const Tensor indices = load(proto.indices, where);
  const auto nnz = static_cast<size_t>(values.size());
  const bool linear = indices.rank() == 1;
  const size_t rank = proto.dims.size();
  if (values.dtype() == DType::kString) {
    fail(ErrorCode::kUnsupportedType, where, "sparse tensors of text are not supported", "Store the text densely");
  }
  const Shape wanted = linear ? Shape{values.size()} : Shape{values.size(), static_cast<int64_t>(rank)};
  if (values.rank() != 1 || indices.dtype() != DType::kI64 || indices.shape() != wanted) {
    malformed(where,
              fmt::format("indices {}{} of the sparse tensor {} do not fit its values {}", to_string(indices.dtype()),
                          to_string(indices.shape()), to_string(proto.dims), to_string(values.shape())));
  }
  take_bytes(values.dtype(), count, where);
  Tensor dense(values.dtype(), proto.dims);
  const auto at = indices.values<int64_t>();
  const size_t width = size_of(values.dtype());
  std::vector<int64_t> positions;
  for (size_t i = 0; i < nnz; ++i) {
    int64_t position = linear ? at[i] : 0;
    for (size_t d = 0; !linear && d < rank; ++d) {
      const int64_t index = at[i * rank + d];
      if (index < 0 || index >= proto.dims[d]) malformed(where, "an index of the sparse tensor is outside its shape");
      position = position * proto.dims[d] + index;
    }
    if (position < 0 || position >= count) malformed(where, "an index of the sparse tensor is outside its shape");
    std::memcpy(static_cast<char*>(dense.mutable_data()) + static_cast<size_t>(position) * width,
                static_cast<const char*>(values.data()) + i * width, width);
    positions.push_back(position);
  }
  std::sort(positions.begin(), positions.end());
  if (std::adjacent_find(positions.begin(), positions.end()) != positions.end()) {
    malformed(where, "two values of the sparse tensor have the same index");
  }
  return dense;
}

}  // namespace heddle::onnx
