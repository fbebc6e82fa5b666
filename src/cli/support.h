#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/arguments.h"

namespace heddle::cli {

// The options with shapes and (from --input files) values filled in, and a progress display where stderr is a terminal.
// Throws kInvalidArgument on a malformed NAME=... item.
struct Prepared {
  CompileOptions options;
  std::map<std::string, Tensor> inputs;
};
Prepared prepare(const Arguments& arguments);

// `inputs` with integer files seen as the types that the model wants (read_npy()).
std::map<std::string, Tensor> fit_types(std::map<std::string, Tensor> inputs, const std::vector<PortInfo>& ports);

// A table for people: columns as wide as their content, the header underlined.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void print() const;  // to stdout

 private:
  std::vector<std::vector<std::string>> rows_;
};

void print_line(const std::string& line);  // to stdout
// One JSON document to stdout. Names that are not UTF-8 (a model may have them) get replacement characters.
void print_json(const nlohmann::json& document);

// "1.5 GB", "12 KB"
std::string human_bytes(double bytes);
// "1.234 ms"
std::string human_seconds(double seconds);

}  // namespace heddle::cli
