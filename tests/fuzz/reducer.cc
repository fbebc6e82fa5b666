#include "tests/fuzz/reducer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "heddle/error.h"
#include "ir/reference/eval.h"

namespace heddle::fuzz {
namespace {

using ir::Array;
using ir::Graph;
using ir::Op;
using ir::ValueId;

// A way to rebuild a case with less in it.
struct Edit {
  std::optional<size_t> only_output = {};     // keep this one
  std::optional<size_t> without_output = {};  // drop this one
  std::optional<ValueId> result = {};         // this value is the only output
  std::set<ValueId> as_parameter = {};        // computed values that are given instead
  std::map<ValueId, ValueId> instead = {};    // a value -> an earlier one of the same type
  std::map<int64_t, int64_t> extents = {};    // extent -> smaller extent, everywhere
};

// The leading corner of an array.
Array crop(const Array& x, const Shape& shape) {
  Array result(x.dtype, shape);
  std::vector<int64_t> at(shape.size(), 0);
  for (int64_t to = 0; to < result.size(); ++to) {
    int64_t from = 0;
    for (size_t d = 0; d < shape.size(); ++d) from = from * x.shape[d] + at[d];
    if (x.real()) {
      result.f()[static_cast<size_t>(to)] = x.f()[static_cast<size_t>(from)];
    } else {
      result.i()[static_cast<size_t>(to)] = x.i()[static_cast<size_t>(from)];
    }
    for (size_t d = shape.size(); d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
  return result;
}

class Rebuild {
 public:
  Rebuild(const Case& source, const Edit& edit) : source_(source), edit_(edit), map_(source.graph.value_count()) {}

  Case run() {
    if (!edit_.as_parameter.empty()) {
      ir::evaluate(source_.graph, source_.inputs, {.round = false, .observe = [&](ValueId v, const Array& array) {
                                                     if (edit_.as_parameter.contains(v)) given_.emplace(v, array);
                                                   }});
    }
    mark_needed();
    for (const ir::Node& node : source_.graph.nodes()) {
      if (std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return needed_[v]; })) copy(node);
    }
    for (size_t i = 0; i < source_.graph.outputs().size(); ++i) {
      const Graph::Port& port = source_.graph.outputs()[i];
      if (keeps_output(i)) result_.graph.output(port.name, *map_[resolve(port.value)]);
    }
    if (edit_.result) result_.graph.output("y", *map_[*edit_.result]);
    return std::move(result_);
  }

 private:
  bool keeps_output(size_t i) const {
    if (edit_.result) return false;
    if (edit_.only_output) return i == *edit_.only_output;
    return !edit_.without_output || i != *edit_.without_output;
  }

  ValueId resolve(ValueId v) const {
    for (auto at = edit_.instead.find(v); at != edit_.instead.end(); at = edit_.instead.find(v)) v = at->second;
    return v;
  }

  void mark_needed() {
    const Graph& graph = source_.graph;
    needed_.assign(graph.value_count(), false);
    for (size_t i = 0; i < graph.outputs().size(); ++i) {
      if (keeps_output(i)) needed_[resolve(graph.outputs()[i].value)] = true;
    }
    if (edit_.result) needed_[*edit_.result] = true;
    for (size_t n = graph.nodes().size(); n-- > 0;) {
      const ir::Node& node = graph.nodes()[n];
      const bool computed = std::any_of(node.outputs.begin(), node.outputs.end(),
                                        [&](ValueId v) { return needed_[v] && !given_.contains(v); });
      if (!computed) continue;
      for (ValueId v : node.inputs) needed_[resolve(v)] = true;
    }
  }

  Shape shrink(Shape shape) const {
    for (int64_t& extent : shape) {
      if (auto at = edit_.extents.find(extent); at != edit_.extents.end()) extent = at->second;
    }
    return shape;
  }

  ValueId parameter(const Array& value) {
    Array small = edit_.extents.empty() ? value : crop(value, shrink(value.shape));
    const ValueId v = result_.graph.parameter(fmt::format("x{}", result_.inputs.size()), {small.dtype, small.shape});
    result_.inputs.push_back(std::move(small));
    return v;
  }

  void copy(const ir::Node& node) {
    for (ValueId v : node.outputs) {
      if (auto at = given_.find(v); at != given_.end()) {
        Array value = at->second;
        if (value.real()) ir::round_all(value.dtype, value.f());
        map_[v] = parameter(value);
      }
    }
    const bool all_given =
        std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return map_[v] || !needed_[v]; });
    if (all_given) return;
    if (node.op == Op::kParameter) {
      for (size_t i = 0; i < source_.inputs.size(); ++i) {
        if (source_.graph.inputs()[i].value == node.outputs[0]) map_[node.outputs[0]] = parameter(source_.inputs[i]);
      }
      return;
    }
    if (node.op == Op::kConstant) {
      const Array value = ir::to_array(node.attrs.tensor("value"));
      map_[node.outputs[0]] = result_.graph.constant(
          edit_.extents.empty() ? node.attrs.tensor("value") : ir::to_tensor(crop(value, shrink(value.shape))));
      return;
    }
    std::vector<ValueId> operands;
    for (ValueId v : node.inputs) operands.push_back(*map_[resolve(v)]);
    ir::Attrs attrs = node.attrs;
    for (const char* name : {"shape", "limits"}) {
      if (attrs.has(name)) attrs.set(name, shrink(attrs.ints(name)));
    }
    const ir::NodeId id = result_.graph.add(node.op, std::move(operands), std::move(attrs));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!map_[node.outputs[i]]) map_[node.outputs[i]] = result_.graph.node(id).outputs[i];
    }
  }

  const Case& source_;
  const Edit& edit_;
  Case result_;
  std::vector<std::optional<ValueId>> map_;
  std::vector<bool> needed_;
  std::map<ValueId, Array> given_;
};

size_t node_count(const Case& c) {
  return c.graph.nodes().size();
}

int64_t element_total(const Case& c) {
  int64_t total = 0;
  for (ValueId v = 0; v < c.graph.value_count(); ++v) total += element_count(c.graph.shape(v));
  return total;
}

class Reducer {
 public:
  Reducer(Case c, const std::function<bool(const Case&)>& fails, int budget)
      : case_(std::move(c)), fails_(fails), budget_(budget) {}

  Case run() {
    for (bool progress = true; progress && budget_ > 0;) {
      progress = reduce_outputs();
      progress |= end_earlier();
      progress |= cut_values();
      progress |= bypass_nodes();
      progress |= shrink_extents();
    }
    return std::move(case_);
  }

 private:
  // Takes the edited case if it is smaller and still fails.
  bool attempt(const Edit& edit) {
    if (budget_-- <= 0) return false;
    try {
      Case smaller = Rebuild(case_, edit).run();
      const bool fewer_outputs = smaller.graph.outputs().size() < case_.graph.outputs().size();
      if (!fewer_outputs && node_count(smaller) >= node_count(case_) &&
          element_total(smaller) >= element_total(case_)) {
        return false;
      }
      if (!fails_(smaller)) return false;
      case_ = std::move(smaller);
      return true;
    } catch (const Error&) {  // the edit makes no valid graph
      return false;
    }
  }

  bool reduce_outputs() {
    for (size_t i = 0; case_.graph.outputs().size() > 1 && i < case_.graph.outputs().size(); ++i) {
      if (attempt({.only_output = i})) return true;
    }
    bool progress = false;
    for (size_t i = case_.graph.outputs().size(); i-- > 0 && case_.graph.outputs().size() > 1;) {
      progress |= attempt({.without_output = i});
    }
    return progress;
  }

  // An operand of what makes the output becomes the output.
  bool end_earlier() {
    bool progress = false;
    for (bool again = true; again;) {
      again = false;
      const ValueId last = case_.graph.outputs()[0].value;
      const ir::Node node = case_.graph.producer(last);
      for (ValueId v : node.inputs) {
        again = case_.graph.producer(v).op != Op::kParameter && attempt({.result = v});
        if (again) break;  // the graph is another one now
      }
      progress |= again;
    }
    return progress;
  }

  bool cut_values() {
    bool progress = false;
    for (ValueId v = static_cast<ValueId>(case_.graph.value_count()); v-- > 0;) {
      if (v >= case_.graph.value_count()) continue;
      const Op op = case_.graph.producer(v).op;
      if (op != Op::kParameter && op != Op::kConstant) progress |= attempt({.as_parameter = {v}});
    }
    return progress;
  }

  bool bypass_nodes() {
    bool progress = false;
    for (ValueId v = 0; v < case_.graph.value_count(); ++v) {
      const ir::Node node = case_.graph.producer(v);
      for (ValueId operand : node.inputs) {
        if (case_.graph.type(operand) == case_.graph.type(v) && attempt({.instead = {{v, operand}}})) {
          progress = true;
          break;
        }
      }
    }
    return progress;
  }

  bool shrink_extents() {
    std::set<int64_t> extents;
    for (ValueId v = 0; v < case_.graph.value_count(); ++v) {
      for (int64_t e : case_.graph.shape(v)) extents.insert(e);
    }
    bool progress = false;
    for (auto at = extents.rbegin(); at != extents.rend(); ++at) {
      for (int64_t smaller : {int64_t{1}, int64_t{2}, *at / 2, *at - 1}) {
        if (smaller >= 1 && smaller < *at && attempt({.extents = {{*at, smaller}}})) {
          progress = true;
          break;
        }
      }
    }
    return progress;
  }

  Case case_;
  const std::function<bool(const Case&)>& fails_;
  int budget_;
};

}  // namespace

Case reduce_case(Case c, const std::function<bool(const Case&)>& fails, int budget) {
  return Reducer(std::move(c), fails, budget).run();
}

}  // namespace heddle::fuzz
