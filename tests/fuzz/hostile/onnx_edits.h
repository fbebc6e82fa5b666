#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz/hostile/onnx_tree.h"
#include "tests/fuzz/rng.h"

namespace heddle::fuzz {

// What edits draw from besides the model itself: the operators and attributes of all models there are.
class OnnxPool {
 public:
  void add(WireMessage& model);

  std::vector<std::pair<std::string, std::string>> operators;   // name, domain
  std::map<std::string, std::vector<WireField>> attributes_of;  // by operator
  std::vector<WireField> attributes;
};

// One edit of a model that stays a model: an operator, an attribute, an edge, a shape, a type, a tensor's size or
// contents, external data, a subgraph, a function, an opset, or a part of `donor` that joins in. `serial` differs
// between the edits of one model, for new names.
void edit_onnx(WireMessage& model, WireMessage& donor, const OnnxPool& pool, Rng& rng, int serial);

// The edits by what they are about, for edit_onnx().
struct OnnxEditor {
  WireMessage& model;
  WireMessage& donor;
  const OnnxPool& pool;
  Rng& rng;
  int serial;
  OnnxParts parts;

  std::vector<WireMessage*>& all(OnnxKind kind) { return of(parts, kind); }
  // Null where there is none.
  WireMessage* any(OnnxKind kind) { return all(kind).empty() ? nullptr : rng.pick(all(kind)); }
  std::string fresh(const char* what) const { return std::string(what) + "_" + std::to_string(serial); }
  // Of values: what nodes make, inputs, initialisers.
  std::vector<std::string> names(WireMessage& graph);
};

// onnx_values.cc
void edit_attribute(OnnxEditor& e);
void move_attribute(OnnxEditor& e);
void edit_tensor_shape(OnnxEditor& e);
void edit_tensor_data(OnnxEditor& e);
void make_external(OnnxEditor& e);
void edit_value_type(OnnxEditor& e);
void edit_dimension(OnnxEditor& e);
void change_extent(OnnxEditor& e);
void change_element_type(OnnxEditor& e);
void edit_opset(OnnxEditor& e);

// onnx_structure.cc
void change_operator(OnnxEditor& e);
void change_edge(OnnxEditor& e);
void change_output_name(OnnxEditor& e);
void remove_node(OnnxEditor& e);
void repeat_node(OnnxEditor& e);
void swap_nodes(OnnxEditor& e);
void share_operand(OnnxEditor& e);
void change_outputs(OnnxEditor& e);
void exchange_initializer(OnnxEditor& e);
void wrap_in_branch(OnnxEditor& e);
void wrap_in_loop(OnnxEditor& e);
void wrap_in_function(OnnxEditor& e);
void join_donor(OnnxEditor& e);

}  // namespace heddle::fuzz
