#include "tests/fuzz/hostile/model_mutator.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "tests/fuzz/hostile/wire.h"

namespace heddle::fuzz {
namespace {

// All messages of a tree, the outermost first.
void collect(WireMessage& message, std::vector<WireMessage*>& messages) {
  messages.push_back(&message);
  for (WireField& field : message) {
    if (!field.fields.empty()) collect(field.fields, messages);
  }
}

WireMessage& pick_message(WireMessage& root, Rng& rng) {
  std::vector<WireMessage*> messages;
  collect(root, messages);
  // Never empty: only fields with fields are collected besides the root.
  return *rng.pick(messages);
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
void edit_tree(WireMessage& root, WireMessage& other, Rng& rng) {
  WireMessage& message = pick_message(root, rng);
  if (message.empty()) return;
  const auto index = static_cast<size_t>(rng.range(0, static_cast<int64_t>(message.size()) - 1));
  WireField& field = message[index];
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
      const WireField copy = field;
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
      const WireMessage& donor = pick_message(root, rng);
      for (const WireField& candidate : donor) {
        if (candidate.wire != field.wire || rng.chance(0.5)) continue;
        const uint64_t number = field.number;
        const WireField copy = candidate;
        field = copy;
        field.number = number;
        return;
      }
      return;
    }
    default: {  // a part of another model
      const WireMessage& donor = pick_message(other, rng);
      if (donor.empty()) return;
      const WireField& taken = rng.pick(donor);
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
  std::optional<WireMessage> tree = parse_wire(model), donor = parse_wire(other);
  if (tree && donor && rng.chance(0.75)) {
    for (int64_t edits = rng.range(1, 3); edits > 0; --edits) edit_tree(*tree, *donor, rng);
    const WireField* liar = nullptr;
    if (rng.chance(0.1)) {
      const WireMessage& message = pick_message(*tree, rng);
      liar = message.empty() ? nullptr : &rng.pick(message);
    }
    bytes.clear();
    encode_wire(*tree, bytes, liar, rng.chance(0.5) ? interesting(rng) : static_cast<uint64_t>(rng.range(-5, 5)));
    if (rng.chance(0.9)) return bytes;
  }
  for (int64_t edits = rng.range(1, 3); edits > 0 && !bytes.empty(); --edits) edit_bytes(bytes, other, rng);
  return bytes;
}

}  // namespace heddle::fuzz
