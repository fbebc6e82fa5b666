#include "tests/fuzz/model_mutator.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace heddle::fuzz {
namespace {

// A protobuf message as a tree. What looks like a message is one; a text that happens to look like one is written back
// as it was, unless an edit falls into it.
struct Field {
  uint64_t number = 0;
  int wire = 0;
  uint64_t varint = 0;        // wire 0
  std::string bytes;          // wire 1, 2 and 5
  std::vector<Field> fields;  // wire 2 that looks like a message; then `bytes` is unused
};
using Message = std::vector<Field>;

bool read_varint(std::string_view bytes, size_t& at, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && at < bytes.size(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes[at++]);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

std::optional<Message> parse(std::string_view bytes, int depth) {
  Message message;
  for (size_t at = 0; at < bytes.size();) {
    Field field;
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
      std::optional<Message> inner;
      if (field.wire == 2 && depth < 12 && length >= 2) inner = parse(content, depth + 1);
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

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

// `lie`: the length that this field claims is off by so much.
void encode(const Message& message, std::string& out, const Field* liar, uint64_t lie) {
  for (const Field& field : message) {
    put_varint(out, field.number << 3 | static_cast<uint64_t>(field.wire));
    if (field.wire == 0) {
      put_varint(out, field.varint);
      continue;
    }
    std::string content = field.bytes;
    if (!field.fields.empty()) {
      content.clear();
      encode(field.fields, content, liar, lie);
    }
    if (field.wire == 2) put_varint(out, content.size() + (&field == liar ? lie : 0));
    out += content;
  }
}

// All messages of a tree, the outermost first.
void collect(Message& message, std::vector<Message*>& messages) {
  messages.push_back(&message);
  for (Field& field : message) {
    if (!field.fields.empty()) collect(field.fields, messages);
  }
}

Message& pick_message(Message& root, Rng& rng) {
  std::vector<Message*> messages;
  collect(root, messages);
  // Never empty: only fields with fields are collected besides the root.
  return *rng.pick(messages);
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

void edit_content(std::string& bytes, Rng& rng) {
  if (bytes.empty()) {
    bytes.assign(static_cast<size_t>(rng.range(1, 9)), static_cast<char>(rng.range(0, 255)));
    return;
  }
  const auto at = static_cast<size_t>(rng.range(0, static_cast<int64_t>(bytes.size()) - 1));
  switch (rng.range(0, 5)) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << rng.range(0, 7)));
      return;
    case 1:
      bytes.resize(at);
      return;
    case 2:
      bytes.insert(at, bytes.substr(at));
      return;
    case 3:
      bytes.clear();
      return;
    case 4: {  // a list of packed numbers grows by one
      std::string number;
      put_varint(number, interesting(rng));
      bytes += number;
      return;
    }
    default:
      for (char& c : bytes) c = rng.chance(0.3) ? static_cast<char>(rng.range(0, 255)) : c;
  }
}

// One edit of the tree; the lengths around it are written anew and stay right.
void edit_tree(Message& root, Message& other, Rng& rng) {
  Message& message = pick_message(root, rng);
  if (message.empty()) return;
  const auto index = static_cast<size_t>(rng.range(0, static_cast<int64_t>(message.size()) - 1));
  Field& field = message[index];
  switch (rng.range(0, 9)) {
    case 0:
    case 1:
    case 2:
      if (field.wire == 0) {
        field.varint = rng.chance(0.5) ? field.varint + static_cast<uint64_t>(rng.range(-3, 3)) : interesting(rng);
      } else if (field.fields.empty()) {
        edit_content(field.bytes, rng);
      } else {
        edit_tree(field.fields, other, rng);
      }
      return;
    case 3:
      message.erase(message.begin() + static_cast<std::ptrdiff_t>(index));
      return;
    case 4: {
      const Field copy = field;
      message.insert(message.begin() + static_cast<std::ptrdiff_t>(index), copy);
      return;
    }
    case 5:
      std::swap(field, message[static_cast<size_t>(rng.range(0, static_cast<int64_t>(message.size()) - 1))]);
      return;
    case 6:
      field.number = static_cast<uint64_t>(rng.range(1, 30));
      return;
    case 7: {  // the contents of one field in another of the same kind, as a name that means something else
      const Message& donor = pick_message(root, rng);
      for (const Field& candidate : donor) {
        if (candidate.wire != field.wire || rng.chance(0.5)) continue;
        const uint64_t number = field.number;
        const Field copy = candidate;
        field = copy;
        field.number = number;
        return;
      }
      return;
    }
    default: {  // a part of another model
      const Message& donor = pick_message(other, rng);
      if (donor.empty()) return;
      const Field& taken = rng.pick(donor);
      if (rng.chance(0.5)) {
        field = taken;
      } else {
        message.push_back(taken);
      }
    }
  }
}

void edit_bytes(std::string& bytes, const std::string& other, Rng& rng) {
  const auto size = static_cast<int64_t>(bytes.size());
  // Weights are long and dull: most positions are near the beginning or the end, where nodes and names are.
  const auto position = [&]() -> size_t {
    const int64_t window = std::min<int64_t>(size, 4096);
    if (rng.chance(0.6)) return static_cast<size_t>(rng.range(0, window - 1));
    return static_cast<size_t>(rng.chance(0.5) ? size - rng.range(1, window) : rng.range(0, size - 1));
  };
  const size_t at = position();
  const auto length = static_cast<size_t>(rng.range(1, std::min<int64_t>(size - static_cast<int64_t>(at), 64)));
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
    case 5: {
      std::string number;
      put_varint(number, interesting(rng));
      bytes.insert(at, number);
      return;
    }
    default: {
      const auto from = static_cast<size_t>(rng.range(0, static_cast<int64_t>(other.size()) - 1));
      bytes = bytes.substr(0, at) + other.substr(from);
    }
  }
}

}  // namespace

std::string mutate(const std::string& model, const std::string& other, Rng& rng) {
  std::string bytes = model;
  std::optional<Message> tree = parse(model, 0), donor = parse(other, 0);
  if (tree && donor && rng.chance(0.75)) {
    for (int64_t edits = rng.range(1, 3); edits > 0; --edits) edit_tree(*tree, *donor, rng);
    const Field* liar = nullptr;
    if (rng.chance(0.1)) {
      const Message& message = pick_message(*tree, rng);
      liar = message.empty() ? nullptr : &rng.pick(message);
    }
    bytes.clear();
    encode(*tree, bytes, liar, rng.chance(0.5) ? interesting(rng) : static_cast<uint64_t>(rng.range(-5, 5)));
    if (rng.chance(0.9)) return bytes;
  }
  for (int64_t edits = rng.range(1, 3); edits > 0 && !bytes.empty(); --edits) edit_bytes(bytes, other, rng);
  return bytes;
}

}  // namespace heddle::fuzz
