#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::cli {

// All output of a command to stdout passes through here. These functions throw kFile if they cannot write. main()
// always calls flush_output(), so a failure to write the last bytes is an error, too. If the reader has gone away
// (`heddle ... | head`), SIGPIPE ends the process, as in other tools.

// Text styles on a terminal. Elsewhere, and with NO_COLOR or TERM=dumb, they do nothing.
enum class Style : uint8_t { kPlain, kBold, kGood, kBad };

// One line. The text may hold names from a model: they are made printable().
void print_line(std::string_view line, Style style = Style::kPlain);
// The bytes as they are: textual IR, help.
void print_raw(std::string_view text);
// One JSON document. It is valid and free of terminal control characters, whatever its texts contain.
void print_json(const nlohmann::json& document);
void print_json_line(const nlohmann::json& document);
void flush_output();

// A table for people: columns as wide as their content, the header underlined. Cells are made printable().
class Table {
 public:
  explicit Table(std::vector<std::string> header);
  void add(std::vector<std::string> row);
  // `most`: the maximum width of a row in characters, 0 for no limit. Wider rows get their widest cells clipped.
  void print(size_t most = 0) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Lines for people on stderr, made printable(): "heddle: note: ...". An error stands out on a terminal.
void tell(std::string_view kind, std::string_view text);

// Shows a line at the bottom of the terminal. The next call replaces it and any other output removes it. Only for a
// stderr that is a terminal.
void show_status(std::string_view text);
void clear_status();

// The width of the terminal in characters; a width that is easy to read if stdout is no terminal.
size_t output_columns();

// Whether a stream is a terminal; whether styles may be used on it.
bool is_terminal(int stream);
bool has_styles(int stream);

}  // namespace heddle::cli
