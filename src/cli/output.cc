#include "cli/output.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/check.h"
#include "base/printable.h"
#include "cli/capture.h"

namespace heddle::cli {
namespace {

// stdout with a buffer of its own: who writes learns what became of every byte.
class Output {
 public:
  void write(std::string_view text) {
    buffer_ += text;
    if (buffer_.size() >= kMost) flush();
  }

  void flush() {
    if (!buffer_.empty()) clear_status();
    std::string_view rest = buffer_;
    while (!rest.empty()) {
      const ssize_t written = ::write(STDOUT_FILENO, rest.data(), rest.size());
      if (written >= 0) {
        rest.remove_prefix(static_cast<size_t>(written));
      } else if (errno != EINTR) {
        refuse(errno);
      }
    }
    buffer_.clear();
  }

 private:
  static constexpr size_t kMost = 1 << 16;

  [[noreturn]] void refuse(int error) {
    buffer_.clear();  // what was lost is told once
    if (error == EPIPE) {
      ::signal(SIGPIPE, SIG_DFL);
      ::raise(SIGPIPE);
    }
    fail(ErrorCode::kFile, "standard output", fmt::format("writing failed: {}", std::strerror(error)),
         error == ENOSPC ? "Make room on the disk" : "Check where the output is to go");
  }

  std::string buffer_;
};

size_t status_columns = 0;  // of the line that show_status() left

Output& output() {
  static Output instance;
  return instance;
}

std::string styled(std::string_view text, Style style, int stream) {
  if (style == Style::kPlain || !has_styles(stream)) return std::string(text);
  const char* const begin = style == Style::kGood ? "\x1b[32m" : style == Style::kBad ? "\x1b[1;31m" : "\x1b[1m";
  return fmt::format("{}{}\x1b[0m", begin, text);
}

std::string json_text(const nlohmann::json& document, int indent) {
  return document.dump(indent, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

void print_line(std::string_view line, Style style) {
  const std::string text = printable(line, Lines::kMany);
  print_raw((captive() != nullptr ? text : styled(text, style, STDOUT_FILENO)) + "\n");
}

void print_raw(std::string_view text) {
  if (std::string* const text_of_thread = captive(); text_of_thread != nullptr) {
    *text_of_thread += text;
  } else {
    output().write(text);
  }
}

void print_json(const nlohmann::json& document) {
  print_raw(json_text(document, 2));
}

void print_json_line(const nlohmann::json& document) {
  print_raw(json_text(document, -1));
}

void flush_output() {
  output().flush();
}

Table::Table(std::vector<std::string> header) {
  add(std::move(header));
}

void Table::add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = printable(cell);
  rows_.push_back(std::move(row));
}

void Table::print(size_t most) const {
  constexpr size_t kBetween = 2, kLeast = 8;  // columns between two cells, and of one that is clipped
  std::vector<size_t> widths(rows_[0].size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
  }
  size_t all = std::accumulate(widths.begin(), widths.end(), kBetween * (widths.size() - 1));
  for (; most > 0 && all > most; --all) {
    size_t& widest = *std::max_element(widths.begin(), widths.end());
    if (widest <= kLeast) break;
    --widest;
  }
  for (size_t r = 0; r < rows_.size(); ++r) {
    std::string line, rule;
    for (size_t i = 0; i < rows_[r].size(); ++i) {
      const bool last = i + 1 == rows_[r].size();
      const std::string cell = clipped(rows_[r][i], widths[i]);
      line += cell + (last ? "" : std::string(widths[i] - columns(cell) + kBetween, ' '));
      rule += std::string(widths[i], '-') + (last ? "" : "  ");
    }
    print_line(line, r == 0 ? Style::kBold : Style::kPlain);
    if (r == 0) print_line(rule);
  }
}

void show_status(std::string_view text) {
  winsize window{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1;
  const std::string line = clipped(printable(text), known ? window.ws_col - 1U : 79U);
  const size_t width = columns(line);
  std::fprintf(stderr, "\r%s%*s", line.c_str(), static_cast<int>(status_columns > width ? status_columns - width : 0),
               "");
  std::fflush(stderr);
  status_columns = width;
}

void clear_status() {
  if (status_columns == 0) return;
  std::fprintf(stderr, "\r%*s\r", static_cast<int>(status_columns), "");
  std::fflush(stderr);
  status_columns = 0;
}

void tell(std::string_view kind, std::string_view text) {
  clear_status();
  // A line feed in a name cannot make a line that looks like one of these.
  std::string lines = printable(text, Lines::kMany);
  for (size_t at = lines.find('\n'); at != std::string::npos; at = lines.find('\n', at + 3)) lines.insert(at + 1, "  ");
  const Style style = kind == "error" ? Style::kBad : Style::kBold;
  std::fprintf(stderr, "heddle: %s %s\n", styled(fmt::format("{}:", kind), style, STDERR_FILENO).c_str(),
               lines.c_str());
}

size_t output_columns() {
  constexpr size_t kElsewhere = 120;
  winsize window{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1;
  return known && captive() == nullptr ? window.ws_col : kElsewhere;
}

bool is_terminal(int stream) {
  return ::isatty(stream) != 0;
}

bool has_styles(int stream) {
  const char* const plain = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  const bool wanted = (plain == nullptr || *plain == '\0') && terminal != nullptr && std::strcmp(terminal, "dumb") != 0;
  return wanted && is_terminal(stream);
}

}  // namespace heddle::cli
