#include "lang/ir/kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/text/lexer.h"

namespace heddle::lang {

const Attribute* Attributes::find(std::string_view name) const {
  for (const auto& [key, value] : all_) {
    if (key == name) return &value;
  }
  return nullptr;
}

int64_t Attributes::integer(std::string_view name, int64_t otherwise) const {
  const Attribute* found = find(name);
  return found == nullptr ? otherwise : found->integer;
}

std::string_view Attributes::word(std::string_view name, std::string_view otherwise) const {
  const Attribute* found = find(name);
  return found == nullptr ? otherwise : std::string_view(found->text);
}

std::vector<int64_t> Attributes::list(std::string_view name) const {
  const Attribute* found = find(name);
  return found == nullptr ? std::vector<int64_t>() : found->list;
}

void Attributes::set(std::string name, Attribute value) {
  for (auto& [key, old] : all_) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  all_.emplace_back(std::move(name), std::move(value));
}

std::optional<Order> order_of(const Op& op) {
  const bool less = op.code == OpCode::kLt || op.code == OpCode::kLe;
  if (!less && op.code != OpCode::kGt && op.code != OpCode::kGe) return std::nullopt;
  const bool strict = op.code == OpCode::kLt || op.code == OpCode::kGt;
  return Order{op.operands[less ? 0 : 1], op.operands[less ? 1 : 0], strict};
}

ValueId Kernel::add_value(Type type, std::string name) {
  values.push_back({std::move(type), std::move(name)});
  return static_cast<ValueId>(values.size() - 1);
}

std::string Kernel::value_name(ValueId value) const {
  const std::string& name = values[static_cast<size_t>(value)].name;
  if (name.empty()) return fmt::format("%_{}", value);
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
  return "%" + (plain ? name : ir::quoted(name));
}

std::string Kernel::short_place(int frame) const {
  if (frame < 0) return {};
  const Frame& at = frames[static_cast<size_t>(frame)];
  return fmt::format("{}:{}", files[static_cast<size_t>(at.file)], at.line);
}

std::string Kernel::place(int frame) const {
  std::string text = short_place(frame);
  while (frame >= 0) {
    frame = frames[static_cast<size_t>(frame)].caller;
    if (frame >= 0) text += " called from " + short_place(frame);
  }
  return text;
}

}  // namespace heddle::lang
