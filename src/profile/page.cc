#include "profile/page.h"

#include <array>
#include <utility>

#include "base/check.h"
#include "base/printable.h"
#include "profile/page_parts.h"

namespace heddle::profile {

namespace {

// JSON has '<' in strings only, where its escape means the same: no "</script>" or "<!--" ends or changes the element.
std::string inside_script(std::string_view json) {
  std::string text;
  text.reserve(json.size() + json.size() / 64);
  for (char c : json) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

std::string inside_title(std::string_view title) {
  std::string text;
  for (char c : printable(title)) {
    switch (c) {
      case '&': text += "&amp;"; break;
      case '<': text += "&lt;"; break;
      case '>': text += "&gt;"; break;
      default: text += c;
    }
  }
  return text;
}

}  // namespace

std::string page(std::string_view json, std::string_view title) {
  auto [html, style, script] = page_parts();
  const std::string name = inside_title(title), data = inside_script(json);
  const std::array<std::pair<std::string_view, std::string_view>, 4> fields = {{
      {"{{title}}", name}, {"{{style}}", style}, {"{{profile}}", data}, {"{{script}}", script}}};
  std::string text;
  text.reserve(html.size() + style.size() + script.size() + data.size() + name.size());
  for (const auto& [mark, value] : fields) {
    size_t at = html.find(mark);
    HEDDLE_CHECK(at != std::string_view::npos);
    text.append(html.substr(0, at)).append(value);
    html.remove_prefix(at + mark.size());
  }
  return text.append(html);
}

}  // namespace heddle::profile
