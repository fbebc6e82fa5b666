#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "driver/compile/compile.h"
#include "driver/report/inside/node_work.h"

namespace heddle::driver {

// By line of a text: the nodes that it computes, as indices into Group::nodes.
using LineMap = std::vector<std::vector<size_t>>;

// A text's symbol, and a line of the text, from 0.
using TextLine = std::pair<std::string, size_t>;

// A kernel that computes several nodes of the model, and the samples taken in it.
struct FusedKernel {
  const ir::Group* group = nullptr;      // the group that `lines` refers to
  std::map<std::string, LineMap> lines;  // by symbol: its own text, and those it calls or is launched with
  std::set<std::string> launches;        // symbols of its launches on a GPU
  std::vector<double> samples;           // by node of the group
  double elsewhere = 0;                  // samples at lines that belong to no node
  double memory = 0;                     // samples of waits for memory, which no line gets
};

// The kernels of a model that compute several of its nodes, with the nodes of their lines. To find these, kernels are
// emitted again with the choices of the tuner and the cost model. A kernel that was compiled with other options has
// another symbol and is left out.
class FusedKernels {
 public:
  FusedKernels(const CompiledModel& model, const Target& target);

  bool empty() const { return kernels_.empty(); }
  size_t steps();  // the number of steps that run one of them
  std::map<std::string, FusedKernel>& all() { return kernels_; }
  // The kernel of an outermost step, or of a symbol that steps name; null if there is none.
  FusedKernel* of(size_t step);
  FusedKernel* of_symbol(const std::string& symbol);

  // Adds samples to the nodes of a line. Without a line, or at a line of no node, they count as `elsewhere`.
  void count(FusedKernel& kernel, const std::optional<TextLine>& at, double samples = 1) const;
  // By step: the share of each node of the step's group; shares sum to 1. Empty if there are fewer than 100 samples or
  // many of them cannot be assigned to a node. Waits for memory are divided in proportion to the bytes that nodes read
  // and write outside of the kernel, since the line that waits is only the first to meet them.
  std::vector<std::vector<double>> shares();

 private:
  void add(size_t step);
  bool has_several(const ir::Group& group) const;
  bool runs(const codegen::KernelSource& source) const;
  std::optional<codegen::KernelSource> emitted(const schedule::KernelPlan& plan) const;
  std::vector<codegen::KernelSource> write_again(const ir::Group& group);
  const ir::Group* group_of(size_t step) const;
  std::vector<double> by_lines(const FusedKernel& kernel, const std::vector<NodeWork>& work) const;
  std::vector<double> shares_in(const FusedKernel& kernel) const;

  const CompiledModel& model_;
  const Target& target_;
  TunedConfigs tuned_;
  std::optional<ir::Graph> graph_;         // a copy whose node kinds say which node it is
  std::set<std::string> symbols_;          // that the steps run
  std::set<std::vector<bool>> arguments_;  // for kernels of the model: which numbers are arguments
  std::map<std::string, FusedKernel> kernels_;
  std::map<std::string, std::string> by_symbol_;  // by symbol that steps name: the key in kernels_
};

// Positions of kernel texts in the files that line tables name.
class TextPlaces {
 public:
  // Records where this text lies in the content of `file`, if it does, under its symbol.
  void add(const std::string& file, const std::string& content, const std::string& text, const std::string& symbol);

  // The first of `places`, innermost first, that lies in a text.
  template <typename Places>
  std::optional<TextLine> text_at(const Places& places) const {
    for (const auto& place : places) {
      const auto texts = texts_.find(std::string(place.file));
      if (texts == texts_.end() || place.line == 0) continue;
      for (const Text& text : texts->second) {
        if (text.begin < place.line && place.line <= text.end) {
          return TextLine(text.symbol, static_cast<size_t>(place.line) - 1 - text.begin);
        }
      }
    }
    return std::nullopt;
  }

 private:
  struct Text {
    size_t begin, end;  // lines of the file, from 0
    std::string symbol;
  };
  std::map<std::string, std::vector<Text>> texts_;  // by file
};

}  // namespace heddle::driver
