#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::cli {

// Everything that a command says on stdout passes through here. What cannot be written is an error: the functions throw
// kFile, the last bytes in flush_output(), which main() calls whatever the command did. A reader that has gone away
// (`heddle ... | head`) ends the process as it ends other tools, by SIGPIPE.

// How a word stands out on a terminal. Elsewhere, and with NO_COLOR or TERM=dumb, styles do nothing.
enum class Style : uint8_t { kPlain, kBold, kGood, kBad };

// One line. The text may hold names from a model: they are made printable().
void print_line(std::string_view line, Style style = Style::kPlain);
// The bytes as they are: textual IR, help.
void print_raw(std::string_view text);
// One JSON document: valid, and without characters that a terminal would obey, whatever is in its texts.
void print_json(const nlohmann::json& document);
void print_json_line(const nlohmann::json& document);
void flush_output();

// A table for people: columns as wide as their content, the header underlined. Cells are made printable().
class Table {
 public:
  explicit Table(std::vector<std::string> header);
  void add(std::vector<std::string> row);
  // `most`: columns of a row, 0 for any number; the widest cells are clipped where a row has more.
  void print(size_t most = 0) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Lines for people on stderr, made printable(): "heddle: note: ...". An error stands out on a terminal.
void tell(std::string_view kind, std::string_view text);

// A line at the bottom of the terminal that the next call rewrites and everything else that is printed removes. For a
// stderr that is a terminal.
void show_status(std::string_view text);
void clear_status();

// Columns of the terminal that stdout is, or as many as are read with ease elsewhere.
size_t output_columns();

// Whether a stream is a terminal; whether styles may be used on it.
bool is_terminal(int stream);
bool has_styles(int stream);

}  // namespace heddle::cli
