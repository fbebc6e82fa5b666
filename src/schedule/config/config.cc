#include "schedule/config/config.h"

#include <fmt/format.h>

#include <charconv>
#include <variant>
#include <vector>

namespace heddle::schedule {
#define HEDDLE_ALTERNATIVE(C) , C
using AnyFamily = std::variant<NoChoice HEDDLE_CONFIG_FAMILIES(HEDDLE_ALTERNATIVE)>;
#undef HEDDLE_ALTERNATIVE

struct Choice::Value {
  AnyFamily family;
};

struct ChoiceReader {
  static const AnyFamily& read(const Choice& choice) {
    static const AnyFamily none;
    return choice.value_ == nullptr ? none : choice.value_->family;
  }
};

namespace {

template <typename C>
std::string_view family_name(const C& c) {
  if constexpr (std::is_same_v<C, NoChoice>) {
    return c.name;
  } else {
    return C::kName;
  }
}

// The family's name and those of the members that `visit` hands over whose value is not the initial one.
template <typename C, typename Visit>
std::string print(const C& c, Visit visit) {
  std::string text(family_name(c));
  const C initial{};
  std::vector<int64_t> values;
  visit(initial, [&](std::string_view, const auto& member) { values.push_back(member); });
  size_t at = 0;
  visit(c, [&](std::string_view name, const auto& member) {
    if (member == values[at++]) return;
    text += std::is_same_v<std::decay_t<decltype(member)>, bool> ? fmt::format(" {}", name)
                                                                 : fmt::format(" {}={}", name, member);
  });
  return text;
}

// "stages=4", or "swapped" of a flag.
template <typename C>
bool parse_member(C& c, std::string_view word) {
  const std::string_view key = word.substr(0, word.find('='));
  bool found = false;
  C::fields(c, [&](std::string_view name, auto& member) {
    if (name != key) return;
    if constexpr (std::is_same_v<std::decay_t<decltype(member)>, bool>) {
      member = found = key.size() == word.size();
    } else if (key.size() < word.size()) {
      const std::string_view digits = word.substr(key.size() + 1);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), member);
      found = error == std::errc() && end == digits.data() + digits.size();
    }
  });
  return found;
}

// Sets `result` where the name is one of C's.
template <typename C>
void parse_as(std::string_view name, std::optional<Choice>& result) {
  if constexpr (!std::is_same_v<C, NoChoice>) {
    if (C::kName.empty() || name.substr(0, name.find(' ')) != C::kName) return;
    C c;
    for (name.remove_prefix(C::kName.size()); !name.empty();) {
      name.remove_prefix(1);
      const std::string_view word = name.substr(0, name.find(' '));
      if (!parse_member(c, word)) return;
      name.remove_prefix(word.size());
    }
    result = std::move(c);
  }
}

template <typename... C>
std::optional<Choice> parse_any(std::string_view name, const std::variant<C...>*) {
  std::optional<Choice> result;
  (parse_as<C>(name, result), ...);
  return result;
}

}  // namespace

template <typename C>
requires requires(C& c) {
  C::fields(c, c);
}
Choice::Choice(C c) : value_(std::make_shared<const Value>(Value{std::move(c)})) {}

template <typename T>
const T* Choice::get() const {
  return std::visit(
      [](const auto& c) -> const T* {
        if constexpr (std::is_base_of_v<T, std::decay_t<decltype(c)>>) {
          return &c;
        } else {
          return nullptr;
        }
      },
      ChoiceReader::read(*this));
}

#define HEDDLE_INSTANTIATE(C) \
  template Choice::Choice(C); \
  template const C* Choice::get<C>() const;
HEDDLE_INSTANTIATE(NoChoice)
HEDDLE_CONFIG_FAMILIES(HEDDLE_INSTANTIATE)
#undef HEDDLE_INSTANTIATE

bool Choice::operator==(const Choice& other) const {
  return value_ == other.value_ || ChoiceReader::read(*this) == ChoiceReader::read(other);
}

std::string_view family_of(const Config& config) {
  return std::visit([](const auto& c) { return family_name(c); }, ChoiceReader::read(config.choice));
}

std::string name_of(const Config& config) {
  return std::visit([](const auto& c) { return print(c, [](auto& of, auto&& f) { of.fields(of, f); }); },
                    ChoiceReader::read(config.choice));
}

std::string tile_name(const Config& config) {
  const auto members = [](auto& of, auto&& f) {
    if constexpr (requires { of.tile(of, f); }) of.tile(of, f);
  };
  return std::visit([&](const auto& c) { return print(c, members); }, ChoiceReader::read(config.choice));
}

std::optional<Choice> parse_choice(std::string_view name) {
  return parse_any(name, static_cast<const AnyFamily*>(nullptr));
}

}  // namespace heddle::schedule
