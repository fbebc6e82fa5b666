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

// For each line of a kernel's source text: the nodes that the line computes, as indices into Group::nodes.
using LineMap = std::vector<std::vector<size_t>>;

// A line of a kernel's source text: the kernel's symbol, and the line number from 0.
using TextLine = std::pair<std::string, size_t>;

// A kernel that computes several nodes of the model, and the profiler samples taken in the kernel.
struct FusedKernel {
  const ir::Group* group = nullptr;      // the group that `lines` refers to
  std::map<std::string, LineMap> lines;  // by symbol: this kernel, and texts that it calls or is launched with
  std::set<std::string> launches;        // symbols of its launches on a GPU
  std::vector<double> samples;           // by node of the group
  double elsewhere = 0;                  // samples at lines that belong to no node
  double memory = 0;                     // samples of waits for memory, assigned to no line
};

// The kernels of a model that compute several model nodes. Each kernel has a map from source lines to nodes. The maps
// are found by emitting the kernels again, with the choices of the tuner and the cost model. A kernel that was compiled
// with other options has a different symbol and is left out.
class FusedKernels {
 public:
  FusedKernels(const CompiledModel& model, const Target& target);

  bool empty() const { return kernels_.empty(); }
  size_t steps();  // the number of steps that run a fused kernel
  std::map<std::string, FusedKernel>& all() { return kernels_; }
  // of() returns the fused kernel that an outermost step runs. of_symbol() returns the fused kernel that plan steps
  // call `symbol`. Both return null if there is no such kernel.
  FusedKernel* of(size_t step);
  FusedKernel* of_symbol(const std::string& symbol);

  // Adds samples to the nodes of line `at`. The samples count as `elsewhere` if `at` is nullopt or the line has no
  // node.
  void count(FusedKernel& kernel, const std::optional<TextLine>& at, double samples = 1) const;
  // For each plan step: the share of time of each node in the step's group. Shares sum to 1. A step's entry is empty if
  // it has fewer than 100 samples, or if many of its samples cannot be assigned to a node. Samples of waits for memory
  // are divided in proportion to the bytes that each node reads from and writes to memory outside the kernel: the line
  // at which a thread waits is only the first that needs the data.
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
  std::optional<ir::Graph> graph_;         // a copy of the graph in which each node's kind is its node_tag()
  std::set<std::string> symbols_;          // the symbols that the plan's steps run
  std::set<std::vector<bool>> arguments_;  // per kernel of the model: flags of the numbers that are arguments
  std::map<std::string, FusedKernel> kernels_;
  std::map<std::string, std::string> by_symbol_;  // a symbol in a plan step -> the key in kernels_
};

// Locates kernel source texts in the files that line tables name.
class TextPlaces {
 public:
  // Records the lines of `file` that hold `text`, under `symbol`. Does nothing if `content` does not contain `text`.
  void add(const std::string& file, const std::string& content, const std::string& text, const std::string& symbol);

  // Returns the text line of the first of `places` (innermost frame first) that is inside a recorded text.
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
    size_t begin, end;  // line numbers in the file, from 0
    std::string symbol;
  };
  std::map<std::string, std::vector<Text>> texts_;  // by file
};

}  // namespace heddle::driver
