#include "profile/program/python_stack.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "profile/program/memory_reader.h"

namespace heddle::profile {
namespace {

constexpr uint64_t kMix = 0x9E3779B97F4A7C15u;             // odd, of hashes
constexpr size_t kFrameBytes = 360, kCodeHeadBytes = 144;  // of them, what is read
constexpr size_t kMostWaiting = 256;                       // frames of a thread that waits
constexpr size_t kMostStackBytes = 16384;                  // of frames that are read at once
constexpr size_t kSizeOfBytes = 16, kBytes = 32;           // in a bytes object: its size; its content
constexpr size_t kTableBegins = 32;                        // of a line table: from its size on, what is read

template <typename T>
T at(const uint8_t* bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes + offset, sizeof value);
  return value;
}

// A str whose characters lie behind its header, as those of all names do.
bool find_text(const PythonLayout& layout, uint64_t address, PythonObject* to) {
  constexpr size_t kLength = 16, kState = 32;
  constexpr uint64_t kMost = 4096;
  std::array<uint8_t, 40> head;
  if (!read_memory(address, head.data(), head.size())) return false;
  const auto length = std::min(at<uint64_t>(head.data(), kLength), kMost);
  const auto state = at<uint32_t>(head.data(), kState);
  const uint32_t kind = state >> 2 & 7;
  const bool compact = (state >> 5 & 1) != 0, ascii = (state >> 6 & 1) != 0;
  if (!compact || (kind != 1 && kind != 2 && kind != 4)) return false;
  *to = {address + (ascii ? layout.text_of_ascii : layout.text_of_others), length * kind, ascii ? 0 : kind};
  return true;
}

bool find_bytes(uint64_t address, PythonObject* to) {
  constexpr uint64_t kMost = 1 << 20;
  uint64_t size = 0;
  if (!read_memory(address + kSizeOfBytes, &size) || size > kMost) return false;
  *to = {address + kBytes, size, 0};
  return true;
}

// What other code may change or free meanwhile.
struct CheckedMemory {
  NearbyMemory near;
  bool read(uint64_t address, void* to, size_t bytes) { return near.read(address, to, bytes); }
  size_t read_pieces(std::span<const uint64_t> addresses, void* to, size_t bytes) const {
    return profile::read_pieces(addresses, to, bytes);
  }
};

// What is there.
struct RestingMemory {
  bool read(uint64_t address, void* to, size_t bytes) const {
    std::memcpy(to, reinterpret_cast<const void*>(address), bytes);
    return true;
  }
  size_t read_pieces(std::span<const uint64_t> addresses, void* to, size_t bytes) const {
    for (size_t i = 0; i < addresses.size(); ++i) read(addresses[i], static_cast<uint8_t*>(to) + i * bytes, bytes);
    return addresses.size();
  }
};

template <typename Memory>
uint64_t current_frame(const PythonLayout& layout, Memory& memory, uint64_t thread) {
  uint64_t frame = 0;
  if (thread == 0 || !memory.read(thread + layout.thread_frame, &frame, sizeof frame) || frame == 0) return 0;
  if (layout.through_cframe && !memory.read(frame + layout.cframe_frame, &frame, sizeof frame)) return 0;
  return frame;
}

// Fills in `begins` of at most kMostPieces frames that are otherwise complete. It stays 0 if the line table can no
// longer be read.
// CPython allocates multiples of 16 bytes, so 16 bytes of content can be read of the shortest table.
template <typename Memory>
void read_tables(Memory& memory, std::span<PythonFrame> frames) {
  std::array<uint64_t, kMostPieces> addresses;
  for (size_t i = 0; i < frames.size(); ++i) addresses[i] = frames[i].lines + kSizeOfBytes;
  std::array<uint8_t, kMostPieces * kTableBegins> tables;
  for (size_t first = 0; first < frames.size();) {
    const auto rest = std::span(addresses).subspan(first, frames.size() - first);
    const size_t read = memory.read_pieces(rest, tables.data(), kTableBegins);
    for (size_t i = 0; i < read; ++i) {
      const uint8_t* table = tables.data() + i * kTableBegins;
      const auto size = at<uint64_t>(table, 0);
      uint64_t sum = size * kMix;
      for (size_t byte = 0; byte < std::min<uint64_t>(size, kTableBegins - (kBytes - kSizeOfBytes)); ++byte) {
        sum = (sum ^ table[kBytes - kSizeOfBytes + byte]) * kMix;
        sum ^= sum >> 32;
      }
      frames[first + i].begins = sum;
    }
    first += read + 1;
  }
}

// Completes frames that have the addresses of their code and of their instruction, and drops those whose code is none
// or gone. Returns how many there are.
template <typename Memory>
size_t read_heads(const PythonRuntime& python, Memory& memory, std::span<const uint64_t> instructions,
                  std::span<PythonFrame> frames) {
  const PythonLayout& layout = *python.layout;
  std::array<uint64_t, kMostPieces> codes;
  for (size_t i = 0; i < frames.size(); ++i) codes[i] = frames[i].code;
  std::array<uint8_t, kMostPieces * kCodeHeadBytes> heads;
  size_t kept = 0;
  for (size_t first = 0; first < frames.size();) {
    const auto rest = std::span(codes).subspan(first, frames.size() - first);
    const size_t read = memory.read_pieces(rest, heads.data(), kCodeHeadBytes);
    for (size_t i = 0; i < read; ++i) {
      const uint8_t* head = heads.data() + i * kCodeHeadBytes;
      if (at<uint64_t>(head, 8) != python.code_type) continue;
      PythonFrame frame = frames[first + i];
      frame.file = at<uint64_t>(head, layout.code_file);
      frame.lines = at<uint64_t>(head, layout.code_lines);
      frame.first_line = at<int32_t>(head, layout.code_first_line);
      frame.instruction = static_cast<int32_t>(instructions[first + i] - (frame.code + layout.code_instructions));
      frames[kept++] = frame;
    }
    first += read + 1;
  }
  read_tables(memory, frames.first(kept));
  return kept;
}

template <typename Memory>
size_t walk(const PythonRuntime& python, Memory& memory, uint64_t thread, std::span<PythonFrame> to) {
  const PythonLayout& layout = *python.layout;
  std::array<uint64_t, kMostPieces> instructions;
  size_t done = 0, found = 0, seen = 0;
  const size_t most = 2 * to.size();  // with those that have no code
  const size_t frame_bytes = layout.frame_locals + sizeof(uint64_t);
  uint64_t frame = current_frame(layout, memory, thread);
  for (; frame != 0 && done + found < to.size() && seen < most; ++seen) {
    std::array<uint8_t, kFrameBytes> head;
    if (!memory.read(frame, head.data(), frame_bytes)) break;
    frame = at<uint64_t>(head.data(), layout.frame_previous);
    if (layout.frame_owner != 0 && head[layout.frame_owner] == kOwnedByCStack) continue;
    PythonFrame& next = to[done + found];
    next = {.code = at<uint64_t>(head.data(), layout.frame_code),
            .first_local = at<uint64_t>(head.data(), layout.frame_locals)};
    instructions[found++] = layout.code_instructions != 0
                                ? at<uint64_t>(head.data(), layout.frame_instruction)
                                : next.code + 2 * at<int32_t>(head.data(), layout.frame_instruction);
    if (found < kMostPieces) continue;
    done += read_heads(python, memory, instructions, to.subspan(done, found));
    found = 0;
  }
  return done + read_heads(python, memory, instructions, to.subspan(done, found));
}

// A variable-length number of the table: six bits a byte, the lowest first.
uint64_t varint(const std::vector<uint8_t>& table, size_t* next) {
  uint64_t value = 0;
  for (unsigned shift = 0; *next < table.size() && shift < 60; shift += 6) {
    const uint8_t byte = table[(*next)++];
    value |= static_cast<uint64_t>(byte & 63) << shift;
    if ((byte & 64) == 0) break;
  }
  return value;
}

int64_t signed_varint(const std::vector<uint8_t>& table, size_t* next) {
  const uint64_t value = varint(table, next);
  return (value & 1) != 0 ? -static_cast<int64_t>(value >> 1) : static_cast<int64_t>(value >> 1);
}

// Pairs of bytes: how many bytes of code, and by how many lines they are further on; -128: they have none.
int64_t line_of_pairs(const PythonCode& code, int32_t instruction) {
  int64_t line = code.first_line;
  int32_t end = 0;
  for (size_t next = 0; next + 1 < code.lines.size(); next += 2) {
    const auto further = static_cast<int8_t>(code.lines[next + 1]);
    if (further != -128) line += further;
    end += code.lines[next];
    if (instruction < end) return further == -128 ? code.first_line : line;
  }
  return code.first_line;
}

}  // namespace

size_t walk_python(const PythonRuntime& python, std::span<PythonFrame> to) {
  if (python.layout == nullptr) return 0;
  return walk_python(python, reinterpret_cast<uint64_t>(python.thread_state()), to);
}

size_t walk_python(const PythonRuntime& python, uint64_t thread, std::span<PythonFrame> to) {
  CheckedMemory memory;
  return walk(python, memory, thread, to);
}

size_t walk_resting_python(const PythonRuntime& python, std::span<PythonFrame> to) {
  if (python.layout == nullptr) return 0;
  RestingMemory memory;
  return walk(python, memory, reinterpret_cast<uint64_t>(python.thread_state()), to);
}

WaitingStack find_waiting_stack(const PythonRuntime& python, uint64_t thread) {
  constexpr uint64_t kClose = 2048;
  const PythonLayout& layout = *python.layout;
  CheckedMemory memory;
  WaitingStack stack;
  if (layout.through_cframe && !memory.read(thread + layout.thread_frame, &stack.cframe, sizeof stack.cframe))
    return {};
  stack.top = current_frame(layout, memory, thread);
  std::vector<uint64_t> frames;
  for (uint64_t frame = stack.top; frame != 0;) {
    if (frames.size() == kMostWaiting) return {};
    frames.push_back(frame);
    if (!memory.read(frame + layout.frame_previous, &frame, sizeof frame)) return {};
  }
  std::sort(frames.begin(), frames.end());
  size_t bytes = 0;
  for (const uint64_t frame : frames) {
    if (stack.pieces.empty() || frame - stack.pieces.back().begin > stack.pieces.back().bytes + kClose) {
      stack.pieces.push_back({frame, layout.frame_locals});
      bytes += layout.frame_locals;
      continue;
    }
    WaitingStack::Piece& piece = stack.pieces.back();
    const uint64_t longer = frame + layout.frame_locals - piece.begin;
    bytes += longer - piece.bytes;
    piece.bytes = longer;
  }
  constexpr size_t kWords = 2;  // read beside
  if (frames.empty() || bytes > kMostStackBytes || stack.pieces.size() > kMostPieces - kWords) return {};
  stack.thread = thread;
  return stack;
}

bool hash_of_waiting(const PythonRuntime& python, const WaitingStack& stack, uint64_t* hash) {
  if (stack.thread == 0) return false;
  const PythonLayout& layout = *python.layout;
  std::array<uint8_t, kMostStackBytes> block;
  uint64_t outer = 0, top = 0;
  std::array<MemoryPiece, kMostPieces> pieces;
  size_t count = 0, bytes = 0;
  for (const WaitingStack::Piece& piece : stack.pieces) {
    pieces[count++] = {piece.begin, block.data() + bytes, piece.bytes};
    bytes += piece.bytes;
  }
  const size_t of_frames = count;
  pieces[count++] = {stack.thread + layout.thread_frame, &outer, sizeof outer};
  if (layout.through_cframe) pieces[count++] = {stack.cframe + layout.cframe_frame, &top, sizeof top};
  if (!read_pieces(std::span(pieces).first(count))) return false;
  if (layout.through_cframe ? outer != stack.cframe || top != stack.top : outer != stack.top) return false;
  uint64_t sum = 0, frame = stack.top;
  for (size_t seen = 0; frame != 0; ++seen) {
    const auto piece = std::find_if(pieces.begin(), pieces.begin() + of_frames, [&](const MemoryPiece& p) {
      return frame >= p.address && frame - p.address + layout.frame_locals <= p.bytes;
    });
    if (piece == pieces.begin() + of_frames || seen == kMostWaiting) return false;
    const uint8_t* const head = static_cast<const uint8_t*>(piece->to) + (frame - piece->address);
    for (const size_t offset : {layout.frame_code, layout.frame_instruction}) {
      sum = (sum ^ at<uint64_t>(head, offset)) * kMix;
      sum ^= sum >> 32;
    }
    frame = at<uint64_t>(head, layout.frame_previous);
  }
  *hash = sum;
  return true;
}

uint64_t object_of(const PythonRuntime& python, uint64_t local) {
  uint64_t type = 0, object = 0;
  const bool is_cell = read_memory(local + 8, &type) && type == python.cell_type && read_memory(local + 16, &object);
  return is_cell ? object : local;
}

uint64_t resting_object_of(const PythonRuntime& python, uint64_t local) {
  if (local == 0) return 0;
  const auto* words = reinterpret_cast<const uint64_t*>(local);
  return words[1] == python.cell_type ? words[2] : local;
}

bool find_code(const PythonRuntime& python, const PythonFrame& frame, PythonObject* name, PythonObject* file,
               PythonObject* lines) {
  const PythonLayout& layout = *python.layout;
  std::array<uint8_t, kCodeHeadBytes> head;
  if (!read_memory(frame.code, head.data(), head.size())) return false;
  return at<uint64_t>(head.data(), 8) == python.code_type &&
         at<uint64_t>(head.data(), layout.code_file) == frame.file &&
         at<uint64_t>(head.data(), layout.code_lines) == frame.lines &&
         find_text(layout, at<uint64_t>(head.data(), layout.code_name), name) && find_text(layout, frame.file, file) &&
         find_bytes(frame.lines, lines);
}

std::string text_of(const PythonObject& object, const uint8_t* content) {
  if (object.width == 0) return {content, content + object.bytes};
  std::string text;
  const auto follow = [&](uint32_t c, int bits) { text.push_back(static_cast<char>(0x80 | (c >> bits & 0x3f))); };
  for (size_t i = 0; i < object.bytes; i += object.width) {
    const uint32_t c = object.width == 1   ? content[i]
                       : object.width == 2 ? at<uint16_t>(content, i)
                                           : at<uint32_t>(content, i);
    if (c < 0x80) {
      text.push_back(static_cast<char>(c));
    } else if (c < 0x800) {
      text.push_back(static_cast<char>(0xc0 | c >> 6)), follow(c, 0);
    } else if (c < 0x10000) {
      text.push_back(static_cast<char>(0xe0 | c >> 12)), follow(c, 6), follow(c, 0);
    } else {
      text.push_back(static_cast<char>(0xf0 | (c >> 18 & 7))), follow(c, 12), follow(c, 6), follow(c, 0);
    }
  }
  return text;
}

bool read_code(const PythonRuntime& python, const PythonFrame& frame, PythonCode* to) {
  std::array<PythonObject, 3> objects;
  if (!find_code(python, frame, &objects[0], &objects[1], &objects[2])) return false;
  std::array<std::vector<uint8_t>, 3> contents;
  for (size_t i = 0; i < objects.size(); ++i) {
    contents[i].resize(objects[i].bytes);
    if (!contents[i].empty() && !read_memory(objects[i].content, contents[i].data(), objects[i].bytes)) return false;
  }
  *to = {text_of(objects[0], contents[0].data()), text_of(objects[1], contents[1].data()), frame.first_line,
         std::move(contents[2]), python.layout->code_instructions == 0};
  return true;
}

int64_t PythonCode::line_of(int32_t instruction) const {
  if (lines_are_pairs) return line_of_pairs(*this, instruction);
  constexpr int32_t kUnit = 2;  // bytes of a code unit
  int64_t line = first_line;
  int32_t end = 0;
  for (size_t next = 0; next < lines.size();) {
    const uint8_t head = lines[next++];
    const unsigned kind = head >> 3 & 15;
    end += ((head & 7) + 1) * kUnit;
    bool known = true;
    if (kind < 10) {
      next += 1;
    } else if (kind < 13) {
      line += kind - 10;
      next += 2;
    } else if (kind == 13) {
      line += signed_varint(lines, &next);
    } else if (kind == 14) {
      line += signed_varint(lines, &next);
      for (int i = 0; i < 3; ++i) varint(lines, &next);
    } else {
      known = false;
    }
    if (instruction < end) return known ? line : first_line;
  }
  return first_line;
}

}  // namespace heddle::profile
