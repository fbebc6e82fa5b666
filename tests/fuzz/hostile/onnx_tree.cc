#include "tests/fuzz/hostile/onnx_tree.h"

#include <algorithm>

namespace heddle::fuzz {
namespace {

struct Inner {
  OnnxKind outer;
  uint64_t number;
  OnnxKind inner;
};

using K = OnnxKind;
// Fields that are messages.
constexpr Inner kInner[] = {
    {K::kModel, field::kModelGraph, K::kGraph},
    {K::kModel, field::kModelOpset, K::kOpset},
    {K::kModel, 14, K::kEntry},
    {K::kModel, field::kModelFunction, K::kFunction},
    {K::kGraph, field::kGraphNode, K::kNode},
    {K::kGraph, field::kGraphInitializer, K::kTensor},
    {K::kGraph, 15, K::kSparse},
    {K::kGraph, field::kGraphInput, K::kValueInfo},
    {K::kGraph, field::kGraphOutput, K::kValueInfo},
    {K::kGraph, 13, K::kValueInfo},
    {K::kNode, field::kNodeAttribute, K::kAttribute},
    {K::kAttribute, 5, K::kTensor},
    {K::kAttribute, field::kAttributeGraph, K::kGraph},
    {K::kAttribute, 10, K::kTensor},
    {K::kAttribute, 11, K::kGraph},
    {K::kAttribute, 14, K::kType},
    {K::kAttribute, 22, K::kSparse},
    {K::kTensor, field::kTensorExternal, K::kEntry},
    {K::kSparse, 1, K::kTensor},
    {K::kSparse, 2, K::kTensor},
    {K::kValueInfo, field::kValueType, K::kType},
    {K::kType, field::kTypeTensor, K::kTensorType},
    {K::kType, field::kTypeSparse, K::kTensorType},
    {K::kType, field::kTypeSequence, K::kSequence},
    {K::kType, field::kTypeOptional, K::kSequence},
    {K::kSequence, 1, K::kType},
    {K::kTensorType, field::kElemShape, K::kShape},
    {K::kShape, field::kShapeDim, K::kDimension},
    {K::kFunction, field::kFunctionNode, K::kNode},
    {K::kFunction, field::kFunctionOpset, K::kOpset},
    {K::kFunction, 11, K::kAttribute},
};

std::optional<OnnxKind> inner_kind(OnnxKind outer, uint64_t number) {
  for (const Inner& entry : kInner) {
    if (entry.outer == outer && entry.number == number) return entry.inner;
  }
  return std::nullopt;
}

// Repeated integers, which are packed mostly. Long ones are contents rather than structure and stay as they are.
bool is_integers(OnnxKind kind, uint64_t number) {
  if (kind == OnnxKind::kTensor) return number == 1 || number == 5 || number == 7 || number == 11;
  return (kind == OnnxKind::kAttribute && number == field::kAttributeInts) ||
         (kind == OnnxKind::kSparse && number == 3);
}
bool is_reals(OnnxKind kind, uint64_t number) {
  return (kind == OnnxKind::kTensor && number == 4) ||
         (kind == OnnxKind::kAttribute && number == field::kAttributeFloats);
}
constexpr size_t kUnpacked = 512;

void unpack(std::string_view content, uint64_t number, bool reals, WireMessage& out) {
  for (size_t at = 0; at < content.size();) {
    WireField one;
    one.number = number;
    if (reals) {
      one.wire = 5;
      one.bytes = content.substr(at, 4);
      at += 4;
      if (one.bytes.size() < 4) return;
    } else if (!read_varint(content, at, one.varint)) {
      return;
    }
    out.push_back(std::move(one));
  }
}

std::optional<WireMessage> parse_kind(std::string_view bytes, OnnxKind kind, int depth) {
  WireMessage message;
  for (size_t at = 0; at < bytes.size();) {
    WireField out;
    uint64_t tag = 0, length = 0;
    if (!read_varint(bytes, at, tag)) return std::nullopt;
    out.number = tag >> 3;
    out.wire = static_cast<int>(tag & 7);
    if (out.wire == 0) {
      if (!read_varint(bytes, at, out.varint)) return std::nullopt;
      message.push_back(std::move(out));
      continue;
    }
    if (out.wire == 2) {
      if (!read_varint(bytes, at, length)) return std::nullopt;
    } else if (out.wire == 1 || out.wire == 5) {
      length = out.wire == 1 ? 8 : 4;
    } else {
      return std::nullopt;
    }
    if (length > bytes.size() - at) return std::nullopt;
    const std::string_view content = bytes.substr(at, length);
    at += length;
    const bool reals = is_reals(kind, out.number);
    if (out.wire == 2 && length <= kUnpacked && (reals || is_integers(kind, out.number))) {
      unpack(content, out.number, reals, message);
      continue;
    }
    const auto inner = inner_kind(kind, out.number);
    std::optional<WireMessage> fields;
    if (out.wire == 2 && inner && depth < 40) fields = parse_kind(content, *inner, depth + 1);
    if (fields) {
      out.fields = std::move(*fields);
    } else {
      out.bytes = content;
    }
    message.push_back(std::move(out));
  }
  return message;
}

void collect(WireMessage& message, OnnxKind kind, OnnxParts& parts) {
  of(parts, kind).push_back(&message);
  for (WireField& inner : message) {
    if (const auto of_inner = inner_kind(kind, inner.number); of_inner && inner.wire == 2) {
      collect(inner.fields, *of_inner, parts);
    }
  }
}

}  // namespace

std::optional<WireMessage> parse_onnx(std::string_view bytes) {
  return parse_kind(bytes, OnnxKind::kModel, 0);
}

OnnxParts collect_onnx(WireMessage& message, OnnxKind kind) {
  OnnxParts parts;
  collect(message, kind, parts);
  return parts;
}

OnnxParts collect_onnx(WireMessage& model) {
  return collect_onnx(model, OnnxKind::kModel);
}

WireField int_field(uint64_t number, uint64_t value) {
  return {number, 0, value, {}, {}};
}

WireField text_field(uint64_t number, std::string text) {
  return {number, 2, 0, std::move(text), {}};
}

WireField message_field(uint64_t number, WireMessage message) {
  return {number, 2, 0, {}, std::move(message)};
}

WireField* first_field(WireMessage& message, uint64_t number) {
  const auto found =
      std::find_if(message.begin(), message.end(), [&](const WireField& f) { return f.number == number; });
  return found == message.end() ? nullptr : &*found;
}

std::vector<WireField*> all_fields(WireMessage& message, uint64_t number) {
  std::vector<WireField*> fields;
  for (WireField& f : message) {
    if (f.number == number) fields.push_back(&f);
  }
  return fields;
}

void remove_fields(WireMessage& message, uint64_t number) {
  std::erase_if(message, [&](const WireField& f) { return f.number == number; });
}

void set_field(WireMessage& message, WireField f) {
  remove_fields(message, f.number);
  message.push_back(std::move(f));
}

std::string text_of(WireMessage& message, uint64_t number) {
  const WireField* found = first_field(message, number);
  return found == nullptr ? "" : found->bytes;
}

}  // namespace heddle::fuzz
