#include "tests/fuzz/hostile/wire.h"

namespace heddle::fuzz {

bool read_varint(std::string_view bytes, size_t& at, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && at < bytes.size(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes[at++]);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

std::optional<WireMessage> parse_wire(std::string_view bytes, int depth) {
  WireMessage message;
  for (size_t at = 0; at < bytes.size();) {
    WireField field;
    uint64_t tag = 0, length = 0;
    if (!read_varint(bytes, at, tag)) return std::nullopt;
    field.number = tag >> 3;
    field.wire = static_cast<int>(tag & 7);
    if (field.number == 0 || field.number > 100) return std::nullopt;
    if (field.wire == 0) {
      if (!read_varint(bytes, at, field.varint)) return std::nullopt;
    } else {
      if (field.wire == 2) {
        if (!read_varint(bytes, at, length)) return std::nullopt;
      } else if (field.wire == 1 || field.wire == 5) {
        length = field.wire == 1 ? 8 : 4;
      } else {
        return std::nullopt;
      }
      if (length > bytes.size() - at) return std::nullopt;
      const std::string_view content = bytes.substr(at, length);
      at += length;
      std::optional<WireMessage> inner;
      if (field.wire == 2 && depth < 12 && length >= 2) inner = parse_wire(content, depth + 1);
      if (inner) {
        field.fields = std::move(*inner);
      } else {
        field.bytes = content;
      }
    }
    message.push_back(std::move(field));
  }
  return message;
}

void encode_wire(const WireMessage& message, std::string& out, const WireField* liar, uint64_t lie) {
  for (const WireField& field : message) {
    put_varint(out, field.number << 3 | static_cast<uint64_t>(field.wire));
    if (field.wire == 0) {
      put_varint(out, field.varint);
      continue;
    }
    std::string content = field.bytes;
    if (!field.fields.empty()) {
      content.clear();
      encode_wire(field.fields, content, liar, lie);
    }
    if (field.wire == 2) put_varint(out, content.size() + (&field == liar ? lie : 0));
    out += content;
  }
}

size_t count_fields(const WireMessage& message) {
  size_t count = message.size();
  for (const WireField& field : message) count += count_fields(field.fields);
  return count;
}

static WireMessage copy_outside(const WireMessage& message, size_t& at, size_t begin, size_t end) {
  WireMessage copy;
  for (const WireField& field : message) {
    const bool removed = at >= begin && at < end;
    ++at;
    WireField kept = field;
    kept.fields = copy_outside(field.fields, at, begin, end);
    if (!removed) copy.push_back(std::move(kept));
  }
  return copy;
}

WireMessage without_fields(const WireMessage& message, size_t begin, size_t end) {
  size_t at = 0;
  return copy_outside(message, at, begin, end);
}

}  // namespace heddle::fuzz
