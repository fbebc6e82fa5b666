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

[[noreturn]] void refuse(const std::string& path, const std::string& why,
                         const char* remedy = "Write it with numpy.save()") {
  fail(ErrorCode::kInvalidInput, path, why, remedy);
}

std::string_view after(std::string_view text, std::string_view key, const std::string& path) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) refuse(path, fmt::format("its header has no {}", key));
  text.remove_prefix(at + key.size());
  while (!text.empty() && (text[0] == ':' || text[0] == ' ')) text.remove_prefix(1);
  return text;
}

// Text elements: bytes, or code points of 4 bytes each, padded with zeros.
struct TextType {
  bool wide = false;
  int64_t length = 0;
  int64_t bytes() const { return wide ? 4 * length : length; }
};

std::optional<TextType> text_type(std::string_view descr) {
  constexpr int64_t kMostLength = int64_t{1} << 28;
  if (descr.size() < 3 || (descr.substr(0, 2) != "<U" && descr.substr(1, 1) != "S")) return std::nullopt;
  TextType type{descr[1] == 'U'};
  const auto [end, error] = std::from_chars(descr.data() + 2, descr.data() + descr.size(), type.length);
  const bool whole = error == std::errc() && end == descr.data() + descr.size();
  return whole && type.length >= 0 && type.length <= kMostLength ? std::optional(type) : std::nullopt;
}

void append_utf8(std::string& text, uint32_t code) {
  const auto put = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6), put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18), put(0x80 | (code >> 12 & 0x3f)), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
  }
}

std::string text_of(std::string_view element, const TextType& type, const std::string& path) {
  if (!type.wide) return std::string(element.substr(0, element.find_last_not_of('\0') + 1));
  std::string text;
  size_t zeros = 0;  // zeros belong to the text only if something follows them
  for (int64_t i = 0; i < type.length; ++i) {
    uint32_t code = 0;
    std::memcpy(&code, element.data() + 4 * i, sizeof code);
    if (code > 0x10ffff) refuse(path, "its text is malformed");
    if (code == 0) {
      ++zeros;
      continue;
    }
    text.append(std::exchange(zeros, 0), '\0');
    append_utf8(text, code);
  }
  return text;
}

Tensor read_text(std::string_view data, const TextType& type, const Shape& shape, const std::string& path) {
  const int64_t count = element_count(shape);
  int64_t bytes = 0;
  if (__builtin_mul_overflow(count, type.bytes(), &bytes) || static_cast<size_t>(bytes) != data.size()) {
    refuse(path, fmt::format("it holds {} bytes of text, its shape {} needs {}", data.size(), to_string(shape), bytes));
  }
  if (type.bytes() == 0 && count > 1 << 20) refuse(path, "it holds too many empty texts");
  std::vector<std::string> texts;
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i * type.bytes());
    texts.push_back(text_of(data.substr(at, static_cast<size_t>(type.bytes())), type, path));
  }
  return Tensor::of_strings(shape, std::move(texts));
}

std::string_view find_descr(std::string_view header, const std::string& path) {
  const std::string_view text = after(header, "'descr'", path);
  return text.empty() ? text : text.substr(1, text.substr(1).find('\''));
}

DType parse_descr(std::string_view descr, const std::string& path) {
  for (const NpyType& type : kTypes) {
    if (descr == type.descr || (type.descr[0] == '|' && descr.size() == 3 && descr.substr(1) == type.descr.substr(1))) {
      return type.dtype;
    }
  }
  const std::string why = fmt::format("its type {} is not one that Heddle reads", descr.substr(0, 20));
  if (descr == "|O") refuse(path, why + ": it holds objects of Python", "Store text as numpy.asarray(x, dtype=\"U\")");
  if (descr.starts_with(">")) refuse(path, why + ": it is big-endian", "Store x.astype(x.dtype.newbyteorder(\"<\"))");
  refuse(path, why, "Store numbers or text: float, int, uint, bool, or dtype=\"U\"");
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
  const std::string_view descr = find_descr(header, path);
  const Shape shape = parse_shape(header, path);
  if (const auto type = text_type(descr)) return read_text(text.substr(start + length), *type, shape, path);
  const DType dtype = parse_descr(descr, path);
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
