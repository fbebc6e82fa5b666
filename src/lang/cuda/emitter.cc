#include "lang/cuda/emitter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "heddle/error.h"
#include "lang/cuda/scalar_text.h"

namespace heddle::lang::cuda {
namespace {

// Words that no value may be called.
const std::set<std::string, std::less<>> kReserved = {
    "alignas",  "alignof",  "and",     "asm",       "auto",    "block",    "bool",    "break",     "case",   "catch",
    "char",     "class",    "const",   "continue",  "default", "delete",   "dims",    "do",        "double", "else",
    "enum",     "explicit", "export",  "extern",    "false",   "float",    "for",     "friend",    "get",    "goto",
    "half",     "if",       "inline",  "int",       "kShared", "long",     "mutable", "namespace", "new",    "not",
    "operator", "or",       "private", "protected", "public",  "register", "return",  "short",     "signed", "sizeof",
    "static",   "struct",   "switch",  "template",  "this",    "throw",    "tile",    "true",      "try",    "typedef",
    "union",    "unsigned", "using",   "virtual",   "void",    "volatile", "while",   "xor",       "exp",    "log",
    "min",      "max",      "abs",     "sin",       "cos",     "sqrt",     "y0",      "y1",        "j0",     "j1",
};

std::string identifier(const std::string& name, ValueId v) {
  if (name.empty()) return fmt::format("t{}", v);
  std::string plain;
  for (const char c : name) plain += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (std::isdigit(static_cast<unsigned char>(plain[0])) != 0) plain = "v" + plain;
  const bool layout = plain.size() > 1 && plain[0] == 'L' && std::isdigit(static_cast<unsigned char>(plain[1])) != 0;
  return kReserved.count(plain) != 0 || layout || plain.find("__") != std::string::npos ? "v_" + plain : plain;
}

}  // namespace

std::string Emitter::fresh(const std::string& wanted) {
  std::string name = wanted;
  for (int i = 2; !names_.insert(name).second; ++i) name = fmt::format("{}_{}", wanted, i);
  return name;
}

std::string Emitter::name(ValueId v) {
  return fresh(identifier(kernel.values[static_cast<size_t>(v)].name, v));
}

std::string Emitter::layout_name(const Layout& layout) {
  return alias_of(layout.type);
}

std::string Emitter::alias_of(const std::string& type) {
  const auto found = layout_names_.find(type);
  if (found != layout_names_.end()) return found->second;
  std::string text = type;
  // A layout that is made of another one names it.
  if (const size_t open = type.find("_t<"); open < type.find('<')) {
    const size_t begin = open + 3;
    size_t end = begin;
    for (int depth = 0; depth > 0 || (type[end] != ',' && type[end] != '>'); ++end) {
      depth += type[end] == '<' ? 1 : type[end] == '>' ? -1 : 0;
    }
    text = type.substr(0, begin) + alias_of(type.substr(begin, end - begin)) + type.substr(end);
  }
  const std::string name = fmt::format("L{}", layout_names_.size());
  aliases.push_back(fmt::format("using {} = {};", name, text));
  return layout_names_.emplace(type, name).first->second;
}

std::string Emitter::held_type(ValueId v) {
  const Type& t = type(v);
  if (t.is_view()) return fmt::format("block::View<{}, {}>", element_type(t.element), t.rank());
  if (t.is_scalar()) return scalar_type(t);
  return fmt::format("block::Tile<{}, {}>", scalar_type(t), layout_name(layout(v)));
}

std::string Emitter::converted(std::string text, const Layout& from, const Layout& to, const Type& type) {
  if (from == to) return text;
  need_shared(convert_bytes(from, to, type.pointer ? 8 : size_of(type.element)));
  return fmt::format("block::convert<{}>(kShared, {})", layout_name(to), text);
}

std::string Emitter::tile(ValueId v, const Layout& in) {
  if (uniform(v)) return fmt::format("block::fill<{}, {}>({})", layout_name(in), scalar_type(type(v)), text(v));
  return converted(text(v), layout(v), in, type(v));
}

std::string Emitter::placed(std::string text) const {
  constexpr std::string_view kName = "kShared", kFree = "kFree";
  if (kept_bytes > 0) return text;
  for (size_t at = text.find(kName); at != std::string::npos; at = text.find(kName, at)) {
    text.replace(at, kName.size(), kFree);
  }
  return text;
}

std::string Emitter::comment(const Op& op) {
  const std::string place = kernel.short_place(op.frame);
  if (place == last_place_) return {};
  last_place_ = place;
  return place;
}

void Emitter::declare(const Op& op, ValueId v, const std::string& text, bool pure) {
  const std::string to = name(v);
  if (pure) {
    out.value(to, placed(text), comment(op));
  } else {
    const std::string place = comment(op);
    out.raw(
        fmt::format("const auto {} = {};{}", to, placed(text), place.empty() ? "" : "  " + codegen::comment_of(place)));
  }
  bind(v, to);
}

void Emitter::statement(const Op& op, const std::string& text) {
  const std::string place = comment(op);
  out.line("{};{}", placed(text), place.empty() ? "" : "  " + codegen::comment_of(place));
}

std::string Emitter::functor(const Op& op, const Region& region, const std::vector<std::string>& parameters,
                             const std::vector<std::string>& unpacked) {
  const std::string to = fresh("f");
  out.open(fmt::format("const auto {} = [=]({}) {{", to, fmt::join(parameters, ", ")));
  for (const std::string& line : unpacked) out.raw(line);
  for (const Op& inner : region.ops) {
    if (inner.code != OpCode::kYield) {
      emit(inner);
      continue;
    }
    std::vector<std::string> values;
    for (const ValueId v : inner.operands) values.push_back(text(v));
    out.raw(values.size() == 1 ? fmt::format("return {};", values[0])
                               : fmt::format("return tile::make_tuple({});", fmt::join(values, ", ")));
  }
  out.close("};");
  (void)op;
  return to;
}

void Emitter::emit(const Region& region) {
  for (const Op& op : region.ops) emit(op);
}

bool Emitter::is_staged(const Op& op) const {
  if (op.results.size() != 1) return false;
  if (operands.count(op.results[0]) != 0) {
    // Operands that were laid down are tiles as well.
    return operands.at(op.results[0]).copied;
  }
  const std::vector<const Op*>& users = uses.users(op.results[0]);
  const bool loads = op.code == OpCode::kLoad || op.code == OpCode::kLoadView;
  return loads && !users.empty() && std::all_of(users.begin(), users.end(), [&](const Op* user) {
           return user->code == OpCode::kPermute && is_staged(*user);
         });
}

void Emitter::emit(const Op& op) {
  if (is_staged(op) || skipped.count(&op) != 0) return;
  if (emit_elementwise(*this, op) || emit_shape(*this, op) || emit_memory(*this, op) || emit_over_axis(*this, op) ||
      emit_product(*this, op) || emit_control(*this, op) || emit_effect(*this, op)) {
    return;
  }
  const std::string where = kernel.place(op.frame);
  throw Error(ErrorCode::kUnsupportedOperator, where.empty() ? "kernel " + kernel.name : where,
              fmt::format("`{}` has no form on a GPU yet", to_string(op.code)), "Run the kernel on the CPU");
}

}  // namespace heddle::lang::cuda
