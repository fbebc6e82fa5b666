#pragma once

#include <concepts>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "heddle/tensor.h"
#include "runtime/plan.h"

namespace heddle::runtime {

// Writer and Reader have the same members, so that one description of a structure (plan_io.cc) both writes and reads
// it. Numbers are little-endian, each sequence follows its element count, and a tensor is stored as its index in a
// table.

struct TableEntry {
  int64_t offset = 0;  // from the start of the tensor section
  int64_t bytes = 0;
  Hash128 hash;
};

class Writer {
 public:
  static constexpr bool kReading = false;

  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void number(T& value) { out_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void flag(bool& value) {
    uint8_t byte = value ? 1 : 0;
    number(byte);
  }
  void text(std::string& value) {
    count(value.size());
    out_ += value;
  }
  template <typename T, typename F>
  void sequence(std::vector<T>& values, F&& each) {
    count(values.size());
    for (T& value : values) each(value);
  }
  void tensor(Tensor& value) {
    const auto [found, added] = positions_.emplace(value.data(), tensors_.size());
    if (added) tensors_.push_back(value);
    uint64_t position = found->second;
    // Tensors of different sizes may begin at the same address, so this tensor may need a separate entry.
    if (tensors_[position].bytes() != value.bytes()) {
      position = tensors_.size();
      tensors_.push_back(value);
    }
    DType dtype = value.dtype();
    Shape shape = value.shape();
    number(position);
    number(dtype);
    sequence(shape, [&](int64_t& extent) { number(extent); });
  }

  std::string& out() { return out_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  void count(uint64_t n) { number(n); }
  std::string out_;
  std::map<const void*, uint64_t> positions_;
  std::vector<Tensor> tensors_;
};

[[noreturn]] inline void damaged(const char* rule) {
  fail(ErrorCode::kDamagedArtefact, "plan", rule, "Compile the model again");
}

class Reader {
 public:
  static constexpr bool kReading = true;

  explicit Reader(std::string_view in) : in_(in) {}

  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void number(T& value) {
    if (in_.size() < sizeof value) damaged("it ends too early");
    std::memcpy(&value, in_.data(), sizeof value);
    in_.remove_prefix(sizeof value);
  }
  void flag(bool& value) {
    uint8_t byte = 0;
    number(byte);
    if (byte > 1) damaged("a flag is neither true nor false");
    value = byte == 1;
  }
  void text(std::string& value) {
    const size_t n = count();
    value = in_.substr(0, n);
    in_.remove_prefix(n);
  }
  template <typename T, typename F>
  void sequence(std::vector<T>& values, F&& each) {
    values.resize(count());
    for (T& value : values) each(value);
  }
  void tensor(Tensor& value) {
    uint64_t position = 0;
    DType dtype{};
    Shape shape;
    number(position);
    number(dtype);
    sequence(shape, [&](int64_t& extent) { number(extent); });
    if (position >= table_.size()) damaged("a tensor is missing");
    if (dense_bytes(dtype, shape) != table_[position].bytes) damaged("a tensor has a wrong size");
    value = Tensor::borrow(dtype, std::move(shape), base_ + table_[position].offset, owner_);
  }

  // Sets the tensor section and its table. Must be called before the first tensor is read. The caller has already
  // checked the entries against the size of the file.
  void set_tensors(const std::byte* base, std::shared_ptr<const void> owner, std::vector<TableEntry> table) {
    base_ = base;
    owner_ = std::move(owner);
    table_ = std::move(table);
  }
  bool at_end() const { return in_.empty(); }

 private:
  // Reads the number of elements of a sequence. Every element takes at least one byte, so a number larger than the
  // number of remaining bytes is invalid. It is rejected before memory is allocated for the sequence.
  size_t count() {
    uint64_t n = 0;
    number(n);
    if (n > in_.size()) damaged("a count is beyond its end");
    return n;
  }

  std::string_view in_;
  const std::byte* base_ = nullptr;
  std::shared_ptr<const void> owner_;
  std::vector<TableEntry> table_;
};

}  // namespace heddle::runtime
