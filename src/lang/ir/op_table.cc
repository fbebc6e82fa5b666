#include "lang/ir/op_table.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "lang/ir/rules.h"

namespace heddle::lang {
namespace {

std::vector<std::string_view> pieces(std::string_view text, char separator) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) result.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

AttributeInfo attribute_of(std::string_view text) {
  using Kind = AttributeInfo::Kind;
  const size_t colon = text.find(':');
  std::string_view name = text.substr(0, colon);
  const std::string_view kind = text.substr(colon + 1);
  const bool needed = name.back() == '!';
  if (needed) name.remove_suffix(1);
  if (kind == "int") return {name, Kind::kInt, needed, {}};
  if (kind == "list") return {name, Kind::kList, needed, {}};
  if (kind == "number") return {name, Kind::kNumber, needed, {}};
  if (kind == "value") return {name, Kind::kValue, needed, {}};
  if (kind == "string") return {name, Kind::kString, needed, {}};
  return {name, Kind::kWord, needed, pieces(kind, '|')};
}

std::vector<AttributeInfo> attributes_of(std::string_view text) {
  std::vector<AttributeInfo> result;
  for (const std::string_view piece : pieces(text, ' ')) result.push_back(attribute_of(piece));
  return result;
}

constexpr int operands_of(ir::OpClass op_class) {
  return op_class == ir::OpClass::kUnary ? 1 : op_class == ir::OpClass::kBinary ? 2 : 3;
}

using Table = std::array<OpInfo, 256>;

Table make_table() {
  using namespace ir;
  using namespace rules;
  Table all;
  const auto add = [&](OpCode op, int least, int most, int regions, unsigned traits, std::string_view attributes,
                       Rule rule) {
    all[static_cast<size_t>(op)] = {ir::to_string(op), least, most, regions, traits, attributes_of(attributes), rule};
  };
#define HEDDLE_MAP(enumerator, name, op_class, users, ...)                                  \
  if constexpr ((users & kTile) != 0) {                                                     \
    constexpr int kOperands = operands_of(OpClass::op_class);                               \
    add(OpCode::enumerator, kOperands, kOperands, 0, kPure | kElementwise, "", same_types); \
  }
#define HEDDLE_TILE_OP(enumerator, name, ...) add(OpCode::enumerator, __VA_ARGS__);
#define HEDDLE_TILE_FORM(enumerator, ...) add(OpCode::enumerator, __VA_ARGS__);
#include "ir/ops.def"
  return all;
}

const Table& table() {
  static const Table all = make_table();
  return all;
}

}  // namespace

const OpInfo& info_of(OpCode code) {
  return table()[static_cast<size_t>(code)];
}

std::optional<OpCode> parse_op(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, OpCode> map;
    for (size_t i = 0; i < table().size(); ++i) {
      if (table()[i].rule != nullptr) map.emplace(table()[i].name, static_cast<OpCode>(i));
    }
    return map;
  }();
  const auto found = by_name.find(name);
  if (found == by_name.end()) return std::nullopt;
  return found->second;
}

const std::vector<std::string_view>& op_names() {
  static const auto names = [] {
    std::vector<std::string_view> list;
    for (const OpInfo& info : table()) {
      if (info.rule != nullptr) list.push_back(info.name);
    }
    return list;
  }();
  return names;
}

}  // namespace heddle::lang
