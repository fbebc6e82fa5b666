// Edits of attributes, tensors and types.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tests/fuzz/hostile/onnx_edits.h"

namespace heddle::fuzz {
namespace {

uint64_t near(uint64_t value, Rng& rng) {
  switch (rng.range(0, 5)) {
    case 0:
      return interesting(rng);
    case 1:
      return 0 - value;
    case 2:
      return value * 2;
    default:
      return value + static_cast<uint64_t>(rng.range(-2, 2));
  }
}

std::string float_bytes(Rng& rng) {
  static const std::vector<float> values = {
      0.0F, -0.0F, 1.0F, -1.0F, 0.5F, 2.0F, 1e-30F, 1e30F, -3e38F, std::numeric_limits<float>::infinity(), NAN, 1e-45F};
  const float value = rng.pick(values);
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string number_bytes(uint64_t value, size_t bytes) {
  std::string out(reinterpret_cast<const char*>(&value), sizeof value);
  out.resize(bytes);
  return out;
}

// Bytes of an element of TensorProto.DataType; 0: text, or several in a byte, or unknown.
size_t element_bytes(uint64_t type) {
  static const std::map<uint64_t, size_t> bytes = {{1, 4},  {2, 1},  {3, 1},  {4, 2},  {5, 2},  {6, 4},
                                                   {7, 8},  {9, 1},  {10, 2}, {11, 8}, {12, 4}, {13, 8},
                                                   {16, 2}, {17, 1}, {18, 1}, {19, 1}, {20, 1}};
  const auto found = bytes.find(type);
  return found == bytes.end() ? 0 : found->second;
}

uint64_t type_of(WireMessage& tensor) {
  const WireField* type = first_field(tensor, field::kTensorType);
  return type == nullptr ? 0 : type->varint;
}

uint64_t wire_elements(WireMessage& tensor) {
  uint64_t count = 1;
  for (const WireField* dim : all_fields(tensor, field::kTensorDim)) count *= dim->varint;
  return count;
}

constexpr uint64_t kMostData = 1 << 16;

// Makes the raw data as long as type and shape say, repeating what is there.
void fit_data(WireMessage& tensor) {
  WireField* raw = first_field(tensor, field::kTensorRaw);
  const uint64_t bytes = wire_elements(tensor) * element_bytes(type_of(tensor));
  if (raw == nullptr || wire_elements(tensor) > kMostData || bytes > kMostData) return;
  const std::string before = raw->bytes.empty() ? std::string(1, '\1') : raw->bytes;
  raw->bytes.clear();
  while (raw->bytes.size() < bytes) raw->bytes += before.substr(0, bytes - raw->bytes.size());
}

uint64_t new_extent(uint64_t old, Rng& rng) {
  static const std::vector<uint64_t> likely = {0, 1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 33, 64, 100, 127, 129};
  if (rng.chance(0.7)) return rng.pick(likely);
  return near(old, rng);
}

void edit_list(WireMessage& attribute, uint64_t number, Rng& rng) {
  const std::vector<WireField*> items = all_fields(attribute, number);
  if (items.empty()) return;
  WireField& item = *rng.pick(items);
  switch (rng.range(0, 4)) {
    case 0: {
      const WireField copy = item;
      attribute.push_back(copy);
      return;
    }
    case 1:
      attribute.erase(attribute.begin() + (&item - attribute.data()));
      return;
    case 2:
      std::swap(item, *rng.pick(items));
      return;
    default:
      if (item.wire == 0) item.varint = near(item.varint, rng);
      if (item.wire == 5) item.bytes = float_bytes(rng);
  }
}

}  // namespace

void edit_attribute(OnnxEditor& e) {
  WireMessage* attribute = e.any(OnnxKind::kAttribute);
  if (attribute == nullptr || attribute->empty()) return;
  if (WireField* f = first_field(*attribute, field::kAttributeFloat); f != nullptr && e.rng.chance(0.7)) {
    f->bytes = float_bytes(e.rng);
    return;
  }
  if (WireField* i = first_field(*attribute, field::kAttributeInt); i != nullptr && e.rng.chance(0.7)) {
    i->varint = near(i->varint, e.rng);
    return;
  }
  for (const uint64_t list : {field::kAttributeInts, field::kAttributeFloats}) {
    if (first_field(*attribute, list) != nullptr && e.rng.chance(0.8)) return edit_list(*attribute, list, e.rng);
  }
  if (WireField* s = first_field(*attribute, field::kAttributeString); s != nullptr && e.rng.chance(0.7)) {
    const WireField& other = e.rng.pick(e.pool.attributes);
    const auto text = std::find_if(other.fields.begin(), other.fields.end(),
                                   [](const WireField& f) { return f.number == field::kAttributeString; });
    s->bytes = text != other.fields.end() ? text->bytes : std::string(static_cast<size_t>(e.rng.range(0, 40)), 'a');
    return;
  }
  set_field(*attribute, e.rng.chance(0.5) ? int_field(field::kAttributeType, static_cast<uint64_t>(e.rng.range(0, 15)))
                                          : text_field(field::kAttributeRef, "alpha"));
}

void move_attribute(OnnxEditor& e) {
  WireMessage* node = e.any(OnnxKind::kNode);
  if (node == nullptr || e.pool.attributes.empty()) return;
  const std::vector<WireField*> attributes = all_fields(*node, field::kNodeAttribute);
  if (!attributes.empty() && e.rng.chance(0.4)) {
    node->erase(node->begin() + (e.rng.pick(attributes) - node->data()));
    return;
  }
  const auto same = e.pool.attributes_of.find(text_of(*node, field::kNodeOp));
  const bool likely = same != e.pool.attributes_of.end() && !same->second.empty() && e.rng.chance(0.8);
  const WireField added = e.rng.pick(likely ? same->second : e.pool.attributes);
  if (!attributes.empty() && e.rng.chance(0.5)) {
    *e.rng.pick(attributes) = added;
  } else {
    node->push_back(added);
  }
}

void edit_tensor_shape(OnnxEditor& e) {
  WireMessage* tensor = e.any(OnnxKind::kTensor);
  if (tensor == nullptr) return;
  const std::vector<WireField*> dims = all_fields(*tensor, field::kTensorDim);
  const int64_t what = e.rng.range(0, 3);
  if (dims.empty() || what == 0) {
    tensor->push_back(int_field(field::kTensorDim, new_extent(1, e.rng)));
  } else if (what == 1) {
    tensor->erase(tensor->begin() + (e.rng.pick(dims) - tensor->data()));
  } else {
    WireField& dim = *e.rng.pick(dims);
    dim.varint = new_extent(dim.varint, e.rng);
  }
  if (e.rng.chance(0.6)) fit_data(*tensor);
}

void edit_tensor_data(OnnxEditor& e) {
  WireMessage* tensor = e.any(OnnxKind::kTensor);
  if (tensor == nullptr) return;
  if (WireField* raw = first_field(*tensor, field::kTensorRaw); raw != nullptr && !raw->bytes.empty()) {
    const size_t bytes = std::max<size_t>(1, element_bytes(type_of(*tensor)));
    const size_t count = std::max<size_t>(1, raw->bytes.size() / bytes);
    if (e.rng.chance(0.1)) {
      raw->bytes.resize(static_cast<size_t>(e.rng.range(0, static_cast<int64_t>(raw->bytes.size() * 2))));
      return;
    }
    for (int64_t edits = e.rng.range(1, 3); edits > 0; --edits) {
      const auto at = bytes * static_cast<size_t>(e.rng.range(0, static_cast<int64_t>(count) - 1));
      const uint64_t type = type_of(*tensor);
      raw->bytes.replace(at, bytes, type == 1 ? float_bytes(e.rng) : number_bytes(near(1, e.rng), bytes));
    }
    return;
  }
  std::vector<WireField*> numbers;
  for (WireField& f : *tensor) {
    if (f.number != field::kTensorDim && f.number != field::kTensorType && (f.wire == 0 || f.wire == 5)) {
      numbers.push_back(&f);
    }
  }
  if (numbers.empty()) return;
  WireField& number = *e.rng.pick(numbers);
  if (number.wire == 0) number.varint = near(number.varint, e.rng);
  if (number.wire == 5) number.bytes = float_bytes(e.rng);
}

void make_external(OnnxEditor& e) {
  static const std::vector<std::string> places = {"data.bin",
                                                  "none.bin",
                                                  "",
                                                  "/etc/passwd",
                                                  "../data.bin",
                                                  "./data.bin",
                                                  "a/b",
                                                  ".",
                                                  "/dev/zero",
                                                  "data.bin/x",
                                                  std::string("data\0.bin", 9),
                                                  std::string(5000, 'x')};
  static const std::vector<std::string> numbers = {
      "0", "4", "64", "-1", "4096", "18446744073709551616", "9223372036854775807", "", "1e3", "0x10", " 8"};
  WireMessage* tensor = e.any(OnnxKind::kTensor);
  if (tensor == nullptr) return;
  remove_fields(*tensor, field::kTensorExternal);
  const auto entry = [&](const char* key, const std::string& value) {
    if (e.rng.chance(0.15)) return;
    WireMessage pair = {text_field(field::kEntryKey, key), text_field(field::kEntryValue, value)};
    tensor->push_back(message_field(field::kTensorExternal, std::move(pair)));
  };
  entry("location", e.rng.chance(0.6) ? places[0] : e.rng.pick(places));
  entry("offset", e.rng.pick(numbers));
  if (e.rng.chance(0.5)) entry("length", e.rng.pick(numbers));
  if (e.rng.chance(0.8)) remove_fields(*tensor, field::kTensorRaw);
  set_field(*tensor, int_field(field::kTensorLocation, 1));
}

void edit_value_type(OnnxEditor& e) {
  WireMessage* type = e.any(OnnxKind::kType);
  if (type == nullptr) return;
  switch (e.rng.range(0, 4)) {
    case 0: {  // a sequence or an optional of it
      WireMessage inner = {message_field(1, *type)};
      *type = {message_field(e.rng.chance(0.5) ? field::kTypeSequence : field::kTypeOptional, std::move(inner))};
      return;
    }
    case 1:
      if (!type->empty()) type->front().number = e.rng.chance(0.5) ? field::kTypeSparse : 5;
      return;
    case 2:
      type->clear();
      return;
    default:
      for (WireField& tensor : *type) {
        if (tensor.number != field::kTypeTensor) continue;
        if (e.rng.chance(0.3)) return remove_fields(tensor.fields, field::kElemShape);
        set_field(tensor.fields, int_field(field::kElemType, static_cast<uint64_t>(e.rng.range(0, 27))));
      }
  }
}

void edit_dimension(OnnxEditor& e) {
  static const std::vector<std::string> symbols = {"N", "M", "batch", "", "a b", "\xff"};
  if (e.rng.chance(0.3)) {
    if (WireMessage* shape = e.any(OnnxKind::kShape); shape != nullptr) {
      if (!shape->empty() && e.rng.chance(0.5)) {
        shape->pop_back();
      } else {
        shape->push_back(message_field(field::kShapeDim, {int_field(field::kDimValue, new_extent(1, e.rng))}));
      }
    }
    return;
  }
  WireMessage* dim = e.any(OnnxKind::kDimension);
  if (dim == nullptr) return;
  const WireField* value = first_field(*dim, field::kDimValue);
  const uint64_t extent = value == nullptr ? 1 : value->varint;
  if (e.rng.chance(0.4)) {
    *dim = {text_field(field::kDimParam, e.rng.pick(symbols))};
  } else {
    *dim = {int_field(field::kDimValue, new_extent(extent, e.rng))};
  }
}

// Everywhere, so that the model may be right for the new extent.
void change_extent(OnnxEditor& e) {
  WireMessage* from = e.any(OnnxKind::kDimension);
  if (from == nullptr || first_field(*from, field::kDimValue) == nullptr) return;
  const uint64_t old = first_field(*from, field::kDimValue)->varint, changed = new_extent(old, e.rng);
  for (WireMessage* dim : e.all(OnnxKind::kDimension)) {
    WireField* value = first_field(*dim, field::kDimValue);
    if (value != nullptr && value->varint == old) value->varint = changed;
  }
  for (WireMessage* tensor : e.all(OnnxKind::kTensor)) {
    for (WireField* dim : all_fields(*tensor, field::kTensorDim)) {
      if (dim->varint == old) dim->varint = changed;
    }
    fit_data(*tensor);
  }
}

void change_element_type(OnnxEditor& e) {
  static const std::vector<uint64_t> likely = {1, 10, 11, 16, 6, 7, 9, 2, 3, 8, 12, 13, 17, 21, 22};
  WireMessage* from = e.any(OnnxKind::kTensorType);
  if (from == nullptr || first_field(*from, field::kElemType) == nullptr) return;
  const uint64_t old = first_field(*from, field::kElemType)->varint, changed = e.rng.pick(likely);
  for (WireMessage* type : e.all(OnnxKind::kTensorType)) {
    WireField* element = first_field(*type, field::kElemType);
    if (element != nullptr && element->varint == old) element->varint = changed;
  }
  for (WireMessage* tensor : e.all(OnnxKind::kTensor)) {
    if (type_of(*tensor) != old) continue;
    set_field(*tensor, int_field(field::kTensorType, changed));
    fit_data(*tensor);
  }
}

void edit_opset(OnnxEditor& e) {
  static const std::vector<std::string> domains = {"",      "ai.onnx",        "ai.onnx.ml", "com.microsoft",
                                                   "local", "ai.onnx.preview"};
  WireMessage* opset = e.any(OnnxKind::kOpset);
  if (opset == nullptr || e.rng.chance(0.2)) {
    WireMessage added = {text_field(field::kOpsetDomain, e.rng.pick(domains)),
                         int_field(field::kOpsetVersion, static_cast<uint64_t>(e.rng.range(1, 27)))};
    e.model.push_back(message_field(field::kModelOpset, std::move(added)));
  } else if (e.rng.chance(0.2)) {
    set_field(*opset, text_field(field::kOpsetDomain, e.rng.pick(domains)));
  } else {
    const auto version = static_cast<uint64_t>(e.rng.range(5, 28));
    set_field(*opset, int_field(field::kOpsetVersion, e.rng.chance(0.9) ? version : interesting(e.rng)));
  }
}

}  // namespace heddle::fuzz
