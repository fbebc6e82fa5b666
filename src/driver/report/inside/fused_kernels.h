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

// By line of a text: positions of nodes in their group.
using LineMap = std::vector<std::vector<size_t>>;

// A line, from 0, of the text of this symbol.
using TextLine = std::pair<std::string, size_t>;

// A kernel that several nodes share, and what was sampled in it.
struct FusedKernel {
  const ir::Group* group = nullptr;      // that its lines were found for
  std::map<std::string, LineMap> lines;  // by symbol: its own text, and those that it calls or that are launched beside
  std::set<std::string> launches;        // on a GPU: their symbols
  std::vector<double> samples;           // by node of the group
  double elsewhere = 0;                  // samples at lines of no node
  double memory = 0;                     // samples of waits for memory, which are no line's
};

// The kernels of a model that several of its nodes share, with what is known of their lines: written again, by the
// tuner's and the cost model's choices. A kernel that was made by other options has another symbol and is left out.
class FusedKernels {
 public:
  FusedKernels(const CompiledModel& model, const Target& target);

  bool empty() const { return kernels_.empty(); }
  size_t steps();  // that run one of them
  std::map<std::string, FusedKernel>& all() { return kernels_; }
  // Of an outermost step, or by a symbol that steps name; null: none.
  FusedKernel* of(size_t step);
  FusedKernel* of_symbol(const std::string& symbol);

  // Counts samples of a kernel for the nodes of a line; without one, or at a line of no node, they are elsewhere.
  void count(FusedKernel& kernel, const std::optional<TextLine>& at, double samples = 1) const;
  // By step: shares by node of the step's group, which sum to 1; empty where there are fewer than 100 samples, or where
  // it is not known of which node much of them is. Waits for memory are divided by what the nodes read and write
  // outside of the kernel: the line that waits only meets them first.
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
  std::optional<ir::Graph> graph_;         // whose kinds are tags
  std::set<std::string> symbols_;          // that steps run
  std::set<std::vector<bool>> arguments_;  // that kernels of the model have of their numbers
  std::map<std::string, FusedKernel> kernels_;
  std::map<std::string, std::string> by_symbol_;  // by symbol that steps name: of kernels_
};

// Where texts of kernels lie in the files that line tables tell of.
class TextPlaces {
 public:
  // Where `file` has this text, it is known by its symbol.
  void add(const std::string& file, const std::string& content, const std::string& text, const std::string& symbol);

  // Of some places, the innermost that lies in a text.
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
