#include "driver/compile/open_batch.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/check.h"

namespace heddle::driver {
namespace {

// A dimension of an input that the model leaves open.
struct BatchPlace {
  std::string input;
  size_t dim;
  int64_t extent;
  std::string symbol;
};

// The outermost extents that the model leaves open, as far as they are as large as the first of them, and wherever else
// the model names one of these.
std::vector<BatchPlace> places_of_batch(const std::vector<onnx::ModelFile::InputDims>& inputs,
                                        const std::map<std::string, Shape>& shapes) {
  std::vector<BatchPlace> open;
  for (const auto& input : inputs) {
    const auto shape = shapes.find(input.name);
    if (shape == shapes.end() || shape->second.size() != input.extents.size()) continue;
    for (size_t d = 0; d < input.extents.size(); ++d) {
      if (input.extents[d] < 0) open.push_back({input.name, d, shape->second[d], input.symbols[d]});
    }
  }
  const auto first = std::find_if(open.begin(), open.end(), [](const BatchPlace& place) { return place.dim == 0; });
  if (first == open.end()) return {};
  const int64_t batch = first->extent;
  std::set<std::string> names;
  std::erase_if(open, [&](const BatchPlace& place) { return place.extent != batch; });
  for (const BatchPlace& place : open) {
    if (place.dim == 0) names.insert(place.symbol);
  }
  names.erase("");
  std::erase_if(open, [&](const BatchPlace& place) { return place.dim > 0 && !names.contains(place.symbol); });
  return open;
}

// Odd and even, small and large ones show what counts rows, tiles and blocks of them. They are the same for any batch,
// so that a program that loads the model with another one has equal kernels. Not 1, in which loops over the batch
// vanish.
std::set<int64_t> other_batches(int64_t batch) {
  if (batch <= 0) return {};
  std::set<int64_t> others = {3, 8, 48, 80};
  others.erase(batch);
  return others;
}

}  // namespace

std::vector<CompileOptions> learn_batch(Session& session, const CompileOptions& options, const CompileTexts& compile) {
  const std::vector<onnx::ModelFile::InputDims> inputs = session.input_dims(options);
  const auto is_open = [](const auto& input) { return !input.extents.empty() && input.extents[0] < 0; };
  if (!session.takes_numbers(options) || std::none_of(inputs.begin(), inputs.end(), is_open)) return {};
  const auto watch = [&](const CompileOptions& shape) {
    session.numbers.watch();
    const auto end = std::shared_ptr<void>(nullptr, [&](void*) { session.numbers.watched(); });
    CompiledModel compiled = compile(shape);
    return std::pair(session.numbers.watched(), std::move(compiled.imported));
  };
  CompileOptions other = options;
  other.progress = nullptr;
  std::vector<CompileOptions> others, of_other_forms;
  std::vector<NumberTable::Plan> plans;
  session.batch_is_open = true;
  try {
    auto [plan, graph] = watch(other);
    plans.push_back(std::move(plan));
    for (const ir::Graph::Port& input : graph->inputs()) other.shapes[input.name] = graph->shape(input.value);
    for (const auto& [output, input] : other.rows) other.shapes.erase(input);  // the output's batch decides
    const std::vector<BatchPlace> places = places_of_batch(inputs, other.shapes);
    const int64_t batch = places.empty() ? 0 : places[0].extent;
    for (const int64_t another : other_batches(batch)) {
      for (const BatchPlace& place : places) other.shapes[place.input][place.dim] = another;
      try {
        plans.push_back(watch(other).first);
        others.push_back(other);
      } catch (const Error&) {
        // The model does not take this batch.
      }
    }
  } catch (const Error&) {
    // Whoever compiles these shapes learns why.
  }
  session.batch_is_open = !others.empty();
  for (size_t i = 0; i < plans.size() && session.batch_is_open; ++i) {
    std::vector<const NumberTable::Plan*> rest;
    for (const NumberTable::Plan& plan : plans) {
      if (&plan != &plans[i]) rest.push_back(&plan);
    }
    const bool has_forms = session.numbers.learn(plans[i], rest);
    if (has_forms && i > 0) of_other_forms.push_back(others[i - 1]);
  }
  return of_other_forms;
}

bool differs_in_batch(const runtime::Plan& known, const CompileOptions& options) {
  std::set<std::pair<int64_t, int64_t>> changes;
  bool in_front = false;
  for (const runtime::Port& input : known.inputs) {
    const auto given = options.shapes.find(input.name);
    if (given == options.shapes.end() || given->second.size() != input.shape.size()) continue;
    for (size_t d = 0; d < input.shape.size(); ++d) {
      if (given->second[d] == input.shape[d]) continue;
      changes.emplace(input.shape[d], given->second[d]);
      in_front = in_front || d == 0;
    }
  }
  return in_front && changes.size() == 1;
}

}  // namespace heddle::driver
