#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::cli {

// All output of a command to stdout passes through these functions. They throw kFile if they cannot write. main()
// always calls flush_output(), so failing to write the last bytes is an error, too. If the reader closes the pipe
// (`heddle ... | head`), SIGPIPE ends the process, as in other tools.

// Text styles for terminals. They have no effect if the output is not a terminal, NO_COLOR is set or TERM=dumb.
enum class Style : uint8_t { kPlain, kBold, kGood, kBad };

// Prints one line. The text may contain names from a model, so it is made printable() first.
void print_line(std::string_view line, Style style = Style::kPlain);
// Prints the bytes unchanged. For textual IR and help.
void print_raw(std::string_view text);
// Prints one JSON document. The output is valid JSON without terminal control characters, whatever strings the document
// contains.
void print_json(const nlohmann::json& document);
void print_json_line(const nlohmann::json& document);
void flush_output();

// A table for people. Columns are as wide as their content, and the header is underlined. Cells are made printable().
class Table {
 public:
  explicit Table(std::vector<std::string> header);
  void add(std::vector<std::string> row);
  // `most`: the maximum width of a row in characters; 0 for no limit. In wider rows the widest cells are clipped.
  void print(size_t most = 0) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Prints a message for people on stderr: "heddle: note: ...", where `kind` is "note". The text is made printable(). On
// a terminal, errors are highlighted.
void tell(std::string_view kind, std::string_view text);

// Shows a status line at the bottom of the terminal. The next call replaces the line; any other output removes it. Does
// nothing unless stderr is a terminal.
void show_status(std::string_view text);
void clear_status();

// The width of the terminal in characters. If stdout is not a terminal: a width that is easy to read.
size_t output_columns();

// is_terminal(): true if the file descriptor `stream` is a terminal. has_styles(): true if text styles may be used on
// it.
bool is_terminal(int stream);
bool has_styles(int stream);

}  // namespace heddle::cli
