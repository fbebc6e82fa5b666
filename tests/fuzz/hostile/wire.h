#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::fuzz {

// A protobuf message as a tree, without its schema. What looks like a message is one; a text that happens to look like
// one is written back as it was, unless an edit falls into it.
struct WireField {
  uint64_t number = 0;
  int wire = 0;
  uint64_t varint = 0;            // wire 0
  std::string bytes;              // wire 1, 2 and 5
  std::vector<WireField> fields;  // wire 2 that looks like a message; then `bytes` is unused
};
using WireMessage = std::vector<WireField>;

std::optional<WireMessage> parse_wire(std::string_view bytes, int depth = 0);
// `liar`: a field that claims a length that is off by `lie`.
void encode_wire(const WireMessage& message, std::string& out, const WireField* liar = nullptr, uint64_t lie = 0);

bool read_varint(std::string_view bytes, size_t& at, uint64_t& value);
void put_varint(std::string& out, uint64_t value);

// Fields of the tree, in the order of the file, an outer one before what is in it.
size_t count_fields(const WireMessage& message);
// The message without the fields [begin, end) of that order.
WireMessage without_fields(const WireMessage& message, size_t begin, size_t end);

}  // namespace heddle::fuzz
