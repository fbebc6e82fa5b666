#pragma once

#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "heddle/tensor.h"
#include "ir/graph.h"

namespace heddle::onnx {

// The value of an ONNX name during import. Sequences have a static length, and text is constant, so the IR needs no
// types for them. An optional with a value is represented by its value; an empty optional is kNone.
class Value {
 public:
  enum class Kind : uint8_t { kAbsent, kTensor, kStrings, kSequence, kNone };

  Value() = default;                            // absent: an omitted input or output
  Value(ir::ValueId tensor) : data_(tensor) {}  // NOLINT: implicit on purpose
  static Value strings(Tensor text) { return Value(std::move(text)); }
  static Value sequence(std::vector<Value> items) {
    Value value;
    value.data_ = std::make_shared<const std::vector<Value>>(std::move(items));
    return value;
  }
  static Value none() {
    Value value;
    value.data_ = Empty{};
    return value;
  }

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool absent() const { return kind() == Kind::kAbsent; }
  bool is_tensor() const { return kind() == Kind::kTensor; }
  ir::ValueId tensor() const { return std::get<ir::ValueId>(data_); }
  const Tensor& text() const { return std::get<Tensor>(data_); }
  const std::vector<Value>& items() const { return *std::get<Items>(data_); }

 private:
  struct Empty {};
  using Items = std::shared_ptr<const std::vector<Value>>;
  explicit Value(Tensor text) : data_(std::move(text)) {}

  std::variant<std::monostate, ir::ValueId, Tensor, Items, Empty> data_;  // in the same order as Kind
};

}  // namespace heddle::onnx
