#include "lang/ir/op_table.h"

#include <algorithm>
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

const std::vector<OpInfo>& table() {
  using namespace rules;
  static const std::vector<OpInfo> all = {
#define HEDDLE_TILE_OP(Enum, name, least, most, regions, traits, attributes, rule) \
  {OpCode::k##Enum, name, least, most, regions, traits, attributes_of(attributes), rule},
#include "lang/ir/ops.def"
#undef HEDDLE_TILE_OP
  };
  return all;
}

}  // namespace

const OpInfo& info_of(OpCode code) {
  return table()[static_cast<size_t>(code)];
}

std::optional<OpCode> parse_op(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, OpCode> map;
    for (const OpInfo& info : table()) map.emplace(info.name, info.code);
    return map;
  }();
  const auto found = by_name.find(name);
  if (found == by_name.end()) return std::nullopt;
  return found->second;
}

const std::vector<std::string_view>& op_names() {
  static const auto names = [] {
    std::vector<std::string_view> list;
    for (const OpInfo& info : table()) list.push_back(info.name);
    return list;
  }();
  return names;
}

}  // namespace heddle::lang
