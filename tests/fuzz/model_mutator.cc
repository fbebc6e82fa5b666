#include "tests/fuzz/model_mutator.h"

#include <algorithm>
#include <vector>

namespace heddle::fuzz {
namespace {

// One field of a protobuf message: where its tag and its length or value stand.
struct Field {
  size_t tag = 0, value = 0, end = 0;  // bytes [tag, end); the varint (length or value) starts at `value`
  int wire = 0;
};

bool read_varint(const std::string& bytes, size_t& at, size_t end, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && at < end; shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes[at++]);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// The fields of [begin, end) and of what may be messages inside it. False: it is no message.
bool walk(const std::string& bytes, size_t begin, size_t end, int depth, std::vector<Field>& fields) {
  const size_t before = fields.size();
  for (size_t at = begin; at < end;) {
    Field field;
    field.tag = at;
    uint64_t tag = 0, value = 0;
    if (!read_varint(bytes, at, end, tag) || tag >> 3 == 0 || tag >> 3 > 100) break;
    field.wire = static_cast<int>(tag & 7);
    field.value = at;
    if (field.wire == 0) {
      if (!read_varint(bytes, at, end, value)) break;
    } else if (field.wire == 1 || field.wire == 5) {
      at += field.wire == 1 ? 8 : 4;
    } else if (field.wire == 2) {
      if (!read_varint(bytes, at, end, value) || value > end - at) break;
      if (depth < 8 && value >= 2 && value < (1u << 16)) {
        walk(bytes, at, at + value, depth + 1, fields);
      } else if (depth < 3 && value >= 2) {
        walk(bytes, at, at + value, depth + 1, fields);
      }
      at += value;
    } else {
      break;
    }
    if (at > end) break;
    field.end = at;
    fields.push_back(field);
    if (at == end) return true;
    if (fields.size() > 20000) return true;
  }
  fields.resize(before);
  return false;
}

std::string varint(uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text.push_back(static_cast<char>(value | 0x80));
  text.push_back(static_cast<char>(value));
  return text;
}

uint64_t interesting(Rng& rng) {
  static const std::vector<uint64_t> values = {0,
                                               1,
                                               2,
                                               3,
                                               7,
                                               16,
                                               127,
                                               128,
                                               255,
                                               65535,
                                               0x7fffffff,
                                               0x80000000,
                                               0xffffffff,
                                               uint64_t{1} << 32,
                                               uint64_t{1} << 40,
                                               uint64_t{1} << 62,
                                               INT64_MAX,
                                               uint64_t{1} << 63,
                                               UINT64_MAX,
                                               UINT64_MAX - 1};
  return rng.pick(values);
}

// Changes the value, the length, the number or the wire type of a field, or removes, doubles or moves it. Only every
// other change of a length adjusts the bytes, so that both the inner and the outer structure break.
void edit_field(std::string& bytes, Rng& rng) {
  std::vector<Field> fields;
  walk(bytes, 0, bytes.size(), 0, fields);
  if (fields.empty()) return;
  const Field field = rng.pick(fields);
  const std::string whole = bytes.substr(field.tag, field.end - field.tag);
  switch (rng.range(0, 5)) {
    case 0:
    case 1: {
      size_t at = field.value;
      uint64_t old = 0;
      if (field.wire != 0 && field.wire != 2) return;
      if (!read_varint(bytes, at, bytes.size(), old)) return;
      const uint64_t value = rng.chance(0.5) ? old + static_cast<uint64_t>(rng.range(-3, 3)) : interesting(rng);
      bytes.replace(field.value, at - field.value, varint(value));
      return;
    }
    case 2:
      bytes[field.tag] = static_cast<char>(rng.range(0, 255));
      return;
    case 3:
      bytes.erase(field.tag, whole.size());
      return;
    case 4:
      bytes.insert(field.end, whole);
      return;
    default:
      bytes.insert(rng.pick(fields).tag, whole);
  }
}

void edit_bytes(std::string& bytes, const std::string& other, Rng& rng) {
  const auto size = static_cast<int64_t>(bytes.size());
  // Weights are long and dull: most positions are taken near the beginning or the end, where nodes and names are.
  const auto position = [&]() -> size_t {
    const int64_t window = std::min<int64_t>(size, 4096);
    if (rng.chance(0.6)) return static_cast<size_t>(rng.range(0, window - 1));
    return static_cast<size_t>(rng.chance(0.5) ? size - rng.range(1, window) : rng.range(0, size - 1));
  };
  const size_t at = position();
  const auto length =
      static_cast<size_t>(rng.range(1, std::max<int64_t>(1, std::min<int64_t>(size - static_cast<int64_t>(at), 64))));
  switch (rng.range(0, 6)) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << rng.range(0, 7)));
      return;
    case 1:
      bytes[at] = static_cast<char>(rng.range(0, 255));
      return;
    case 2:
      bytes.resize(at);
      return;
    case 3:
      bytes.erase(at, length);
      return;
    case 4:
      bytes.insert(at, bytes.substr(at, length));
      return;
    case 5:
      bytes.insert(at, varint(interesting(rng)));
      return;
    default: {
      const auto from = static_cast<size_t>(rng.range(0, static_cast<int64_t>(other.size()) - 1));
      bytes = bytes.substr(0, at) + other.substr(from);
    }
  }
}

}  // namespace

std::string mutate(const std::string& model, const std::string& other, Rng& rng) {
  std::string bytes = model;
  for (int64_t edits = rng.range(1, 4); edits > 0 && !bytes.empty(); --edits) {
    rng.chance(0.6) ? edit_field(bytes, rng) : edit_bytes(bytes, other, rng);
  }
  return bytes;
}

}  // namespace heddle::fuzz
