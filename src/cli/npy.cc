#include "cli/npy.h"

#include <charconv>
#include <optional>

#include "base/check.h"
#include "base/file/file.h"

namespace heddle::cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct NpyType {
  DType dtype;
  std::string_view descr;
};
// The first entry of a descr is what it is read as.
constexpr NpyType kTypes[] = {
    {DType::kF64, "<f8"},        {DType::kF32, "<f4"},    {DType::kF16, "<f2"},    {DType::kI64, "<i8"},
    {DType::kI32, "<i4"},        {DType::kI16, "<i2"},    {DType::kI8, "|i1"},     {DType::kU64, "<u8"},
    {DType::kU32, "<u4"},        {DType::kU16, "<u2"},    {DType::kU8, "|u1"},     {DType::kBool, "|b1"},
    {DType::kBF16, "<u2"},       {DType::kF8E4M3, "|u1"}, {DType::kF8E5M2, "|u1"}, {DType::kF8E4M3Fnuz, "|u1"},
    {DType::kF8E5M2Fnuz, "|u1"}, {DType::kF8E8M0, "|u1"}, {DType::kF4E2M1, "|u1"}, {DType::kI4, "|i1"},
    {DType::kU4, "|u1"},         {DType::kI2, "|i1"},     {DType::kU2, "|u1"},
};

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  fail(ErrorCode::kInvalidInput, path, why, "Write it with numpy.save()");
}

std::string_view after(std::string_view text, std::string_view key, const std::string& path) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) refuse(path, fmt::format("its header has no {}", key));
  text.remove_prefix(at + key.size());
  while (!text.empty() && (text[0] == ':' || text[0] == ' ')) text.remove_prefix(1);
  return text;
}

DType parse_descr(std::string_view header, const std::string& path) {
  const std::string_view text = after(header, "'descr'", path);
  const std::string_view descr = text.empty() ? text : text.substr(1, text.substr(1).find('\''));
  for (const NpyType& type : kTypes) {
    if (descr == type.descr || (type.descr[0] == '|' && descr.size() == 3 && descr.substr(1) == type.descr.substr(1))) {
      return type.dtype;
    }
  }
  refuse(path, fmt::format("its type {} is not one that Heddle reads", descr.substr(0, 20)));
}

Shape parse_shape(std::string_view header, const std::string& path) {
  std::string_view text = after(header, "'shape'", path);
  Shape shape;
  if (text.empty() || text[0] != '(') refuse(path, "its shape is malformed");
  text.remove_prefix(1);
  while (!text.empty() && text[0] != ')') {
    if (text[0] == ',' || text[0] == ' ') {
      text.remove_prefix(1);
      continue;
    }
    int64_t extent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc() || extent < 0) refuse(path, "its shape is malformed");
    shape.push_back(extent);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
  try {
    element_count(shape);
  } catch (const Error& error) {
    refuse(path, fmt::format("its shape {}: {}", to_string(shape), error.why()));
  }
  return shape;
}

}  // namespace

Tensor read_npy(const std::string& path) {
  const auto file = MappedFile::read(path);
  const std::string_view text = file->text();
  if (text.size() < 12 || !text.starts_with(kMagic)) refuse(path, "it is no .npy file");
  const auto byte = [&](size_t at) { return static_cast<size_t>(static_cast<unsigned char>(text[at])); };
  const bool wide = byte(6) >= 2;  // the header's length takes four bytes since version 2
  const size_t start = wide ? 12 : 10;
  const size_t length = byte(8) | byte(9) << 8 | (wide ? byte(10) << 16 | byte(11) << 24 : 0);
  if (length > text.size() - start) refuse(path, "it is truncated");
  const std::string_view header = text.substr(start, length);
  if (after(header, "'fortran_order'", path).starts_with("True")) {
    refuse(path, "it is in Fortran order; store numpy.ascontiguousarray(x)");
  }
  const DType dtype = parse_descr(header, path);
  const Shape shape = parse_shape(header, path);
  int64_t bytes = 0;
  if (__builtin_mul_overflow(element_count(shape), static_cast<int64_t>(size_of(dtype)), &bytes) ||
      static_cast<size_t>(bytes) != text.size() - start - length) {
    refuse(path, fmt::format("it holds {} bytes of data, its shape {} needs {}", text.size() - start - length,
                             to_string(shape), bytes));
  }
  Tensor tensor(dtype, shape);
  if (bytes > 0) std::memcpy(tensor.mutable_data(), text.data() + start + length, static_cast<size_t>(bytes));
  return tensor;
}

Tensor as_dtype(const Tensor& stored, DType wanted) {
  if (stored.dtype() == wanted) return stored;
  for (const NpyType& type : kTypes) {
    if (type.dtype != wanted) continue;
    for (const NpyType& as_stored : kTypes) {
      if (as_stored.dtype != stored.dtype()) continue;
      if (as_stored.descr != type.descr) return stored;
      Tensor copy(wanted, stored.shape());
      if (stored.bytes() > 0) std::memcpy(copy.mutable_data(), stored.data(), stored.bytes());
      return copy;
    }
  }
  return stored;
}

void write_npy(const std::string& path, const Tensor& tensor) {
  std::string_view descr;
  for (const NpyType& type : kTypes) {
    if (type.dtype == tensor.dtype()) descr = type.descr;
  }
  if (descr.empty()) fail(ErrorCode::kUnsupportedType, path, "text cannot be written as .npy");
  std::string shape;
  for (const int64_t extent : tensor.shape()) shape += fmt::format("{},", extent);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  constexpr size_t kPrefix = 10;  // magic, version, length
  header.append(64 - (kPrefix + header.size() + 1) % 64, ' ');
  header += '\n';
  std::string prefix(kMagic);
  prefix += '\1';
  prefix += '\0';
  prefix += static_cast<char>(header.size() & 0xff);
  prefix += static_cast<char>(header.size() >> 8);
  prefix += header;
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(prefix.data(), prefix.size())),
                                              std::span(static_cast<const std::byte*>(tensor.data()), tensor.bytes())};
  write_file(path, parts, Sync::kNo);
}

}  // namespace heddle::cli
