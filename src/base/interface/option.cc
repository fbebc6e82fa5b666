#include "base/interface/option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <utility>

namespace heddle {
namespace {

std::atomic<Interface> spoken{Interface::kLibrary};

std::string in_words(std::string library, std::string command_line, std::string python) {
  switch (spoken.load(std::memory_order_relaxed)) {
    case Interface::kCommandLine:
      return command_line;
    case Interface::kPython:
      return python;
    case Interface::kLibrary:
      break;
  }
  return library;
}

// The value of a key of an option that is a map, `field` in C++ and `keyword` in Python.
std::string entry(std::string_view field, std::string_view keyword, std::string command_line, std::string_view key) {
  return in_words(fmt::format("{}[\"{}\"]", field, key), std::move(command_line),
                  fmt::format("{}={{\"{}\": ...}}", keyword, key));
}

std::string tuple(const Shape& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

}  // namespace

void speak_of(Interface interface) {
  spoken.store(interface, std::memory_order_relaxed);
}

namespace option {

std::string shape() {
  return in_words("CompileOptions::shapes", "--shape", "`shapes` or `dims`");
}

std::string shape(const std::vector<NamedShape>& shapes) {
  std::vector<std::string> library, words, items;
  for (const auto& [name, extents] : shapes) {
    library.push_back(fmt::format("{{\"{}\", {{{}}}}}", name, fmt::join(extents, ", ")));
    words.push_back(fmt::format("--shape {}={}", name, fmt::join(extents, ",")));
    items.push_back(fmt::format("\"{}\": {}", name, tuple(extents)));
  }
  return in_words(fmt::format("CompileOptions::shapes = {{{}}}", fmt::join(library, ", ")),
                  fmt::format("{}", fmt::join(words, " ")), fmt::format("shapes={{{}}}", fmt::join(items, ", ")));
}

std::string shape_of(std::string_view input) {
  return entry("CompileOptions::shapes", "shapes", fmt::format("--shape {}=...", input), input);
}

std::string target(std::string_view value) {
  return in_words(fmt::format("CompileOptions::target = \"{}\"", value), fmt::format("--target {}", value),
                  fmt::format("target=\"{}\"", value));
}

std::string precision(std::string_view value) {
  return in_words(fmt::format("CompileOptions::precision = \"{}\"", value), fmt::format("--precision {}", value),
                  fmt::format("precision=\"{}\"", value));
}

std::string threads() {
  return in_words("CompileOptions::threads", "--threads", "`threads`");
}

std::string threads(int count) {
  return in_words(fmt::format("CompileOptions::threads = {}", count), fmt::format("--threads {}", count),
                  fmt::format("threads={}", count));
}

std::string tuned() {
  return in_words("CompileOptions::tuned = true", "without --untuned", "tuned=True");
}

std::string tune(const std::vector<std::string>& options) {
  const std::string words = fmt::format("heddle tune MODEL{}{}", options.empty() ? "" : " ", fmt::join(options, " "));
  const std::string call = fmt::format("heddle.tune(MODEL{}{})", options.empty() ? "" : ", ", fmt::join(options, ", "));
  return in_words(words, words, call);
}

std::vector<std::string> explain_more(bool is_measured) {
  const std::string every = in_words("-v", "-v", "explain(verbose=True)") + " for every decision";
  const std::string measured = in_words("--measure", "--measure", "profile()") + " for measured times";
  return is_measured ? std::vector{every} : std::vector{measured, every};
}

std::string value_of(std::string_view input) {
  return entry("CompileOptions::values", "values", fmt::format("--input {}=FILE.npy", input), input);
}

std::string input(std::string_view name) {
  return entry("inputs", "inputs", fmt::format("--input {}=FILE.npy", name), name);
}

std::string limit(std::string_view name) {
  return in_words(fmt::format("CompileOptions::limits.{}", name), fmt::format("--limit {}=...", name),
                  fmt::format("limits={{\"{}\": ...}}", name));
}

std::string external_data_links() {
  return in_words("CompileOptions::external_data_links", "--external-data-links", "external_data_links=True");
}

}  // namespace option
}  // namespace heddle
