#include "corpus.h"

namespace heddle::hostile {
namespace {

using onnx::testing::ModelWriter;
using onnx::testing::pbf_writer;

// A ModelProto whose field `tag` has another wire type than onnx.proto gives it.
std::string wrong_type_in_model(int tag, bool as_varint) {
  std::string bytes = relu_model().bytes();
  pbf_writer writer(bytes);
  if (as_varint) {
    writer.add_int64(static_cast<uint32_t>(tag), 7);
  } else {
    writer.add_string(static_cast<uint32_t>(tag), "text");
  }
  return bytes;
}

std::string model_of_graph(const std::string& graph) {
  std::string bytes, set;
  pbf_writer writer(bytes);
  writer.add_int64(1, 8);
  writer.add_message(7, graph);
  pbf_writer(set).add_int64(2, 17);
  writer.add_message(8, set);
  return bytes;
}

std::string wrong_type_in_graph(int tag) {
  std::string graph = relu_model().graph_bytes();
  pbf_writer(graph).add_int64(static_cast<uint32_t>(tag), 7);
  return model_of_graph(graph);
}

std::string wrong_type_in_node(int tag) {
  std::string node, graph;
  pbf_writer(node).add_int64(static_cast<uint32_t>(tag), 7);
  pbf_writer(graph).add_message(1, node);
  return model_of_graph(graph);
}

std::string wrong_type_in_tensor(int tag, bool as_varint) {
  std::string tensor, graph;
  pbf_writer writer(tensor);
  if (as_varint) {
    writer.add_int64(static_cast<uint32_t>(tag), 7);
  } else {
    writer.add_fixed64(static_cast<uint32_t>(tag), 7);
  }
  pbf_writer(graph).add_message(5, tensor);
  return model_of_graph(graph);
}

std::string wrong_type_in_attribute(int tag, bool as_varint) {
  std::string attribute, node, graph;
  pbf_writer writer(attribute);
  if (as_varint) {
    writer.add_int64(static_cast<uint32_t>(tag), 7);
  } else {
    writer.add_fixed64(static_cast<uint32_t>(tag), 7);
  }
  pbf_writer(node).add_message(5, attribute);
  pbf_writer(graph).add_message(1, node);
  return model_of_graph(graph);
}

void add_truncations(Corpus& corpus) {
  const size_t size = relu_model().bytes().size();
  constexpr size_t kPieces = 12;
  for (size_t i = 1; i < kPieces; ++i) {
    const size_t kept = size * i / kPieces;
    corpus.push_back({"wire/cut-after-" + std::to_string(kept), [kept] { return relu_model().bytes().substr(0, kept); },
                      kMalformed, ""});
  }
}

void add_wrong_types(Corpus& corpus) {
  for (const int tag : {1}) {
    corpus.push_back({"wire/model-field-" + std::to_string(tag) + "-is-text",
                      [tag] { return wrong_type_in_model(tag, false); }, kMalformed, "wire type"});
  }
  for (const int tag : {7, 8, 25}) {
    corpus.push_back({"wire/model-field-" + std::to_string(tag) + "-is-a-number",
                      [tag] { return wrong_type_in_model(tag, true); }, kMalformed, "wire type"});
  }
  for (const int tag : {1, 2, 5, 11, 12, 13, 15}) {
    corpus.push_back({"wire/graph-field-" + std::to_string(tag) + "-is-a-number",
                      [tag] { return wrong_type_in_graph(tag); }, kMalformed, "wire type"});
  }
  for (const int tag : {1, 2, 3, 4, 5, 7, 8}) {
    corpus.push_back({"wire/node-field-" + std::to_string(tag) + "-is-a-number",
                      [tag] { return wrong_type_in_node(tag); }, kMalformed, "wire type"});
  }
  for (const int tag : {4, 6, 8, 9, 10, 13}) {
    corpus.push_back({"wire/tensor-field-" + std::to_string(tag) + "-is-a-number",
                      [tag] { return wrong_type_in_tensor(tag, true); }, kMalformed, "wire type"});
  }
  for (const int tag : {1, 2, 5, 7, 11, 14}) {
    corpus.push_back({"wire/tensor-field-" + std::to_string(tag) + "-is-fixed",
                      [tag] { return wrong_type_in_tensor(tag, false); }, kMalformed, "wire type"});
  }
  for (const int tag : {1, 2, 4, 5, 6, 7, 9, 14, 22}) {
    corpus.push_back({"wire/attribute-field-" + std::to_string(tag) + "-is-a-number",
                      [tag] { return wrong_type_in_attribute(tag, true); }, kMalformed, "wire type"});
  }
  for (const int tag : {3, 8, 20}) {
    corpus.push_back({"wire/attribute-field-" + std::to_string(tag) + "-is-fixed",
                      [tag] { return wrong_type_in_attribute(tag, false); }, kMalformed, "wire type"});
  }
}

std::string unknown_attribute_type() {
  std::string attribute, node, graph;
  pbf_writer writer(attribute);
  writer.add_string(1, "a");
  writer.add_enum(20, 99);
  pbf_writer(node).add_message(5, attribute);
  pbf_writer(graph).add_message(1, node);
  return model_of_graph(graph);
}

// Two bytes each in the file, hundreds in memory.
std::string many_empty_messages(int tag, size_t count) {
  std::string graph;
  graph.reserve(2 * count);
  for (size_t i = 0; i < count; ++i) graph += {static_cast<char>(tag << 3 | 2), '\0'};
  return model_of_graph(graph);
}

std::string nested_types(int levels) {
  std::string type = onnx::testing::tensor_type(1, {2});
  for (int i = 0; i < levels; ++i) {
    std::string sequence, outer;
    pbf_writer(sequence).add_message(1, type);
    pbf_writer(outer).add_message(4, sequence);
    type = outer;
  }
  ModelWriter m = relu_model();
  m.inputs.push_back(onnx::testing::value_info("deep", type));
  return m.bytes();
}

}  // namespace

Corpus wire_models() {
  Corpus corpus = {
      {"wire/empty", [] { return std::string(); }, kMalformed, "empty"},
      {"wire/text", [] { return std::string("This is a text file, not a model."); }, kMalformed, "not ONNX"},
      {"wire/zeros", [] { return std::string(4096, '\0'); }, kMalformed, "protobuf"},
      {"wire/ones", [] { return std::string(4096, '\xff'); }, kMalformed, "protobuf"},
      {"wire/git-lfs-pointer",
       [] { return std::string("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"); }, kMalformed,
       ""},
      {"wire/no-graph", [] { return std::string("\x08\x08", 2); }, kMalformed, "no graph"},
      {"wire/length-beyond-the-end", [] { return std::string("\x3a\xff\xff\xff\x7f", 5); }, kMalformed, "protobuf"},
      {"wire/length-of-64-bits", [] { return std::string("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11); },
       kMalformed, "protobuf"},
      {"wire/varint-without-an-end", [] { return "\x08" + std::string(64, '\x80'); }, kMalformed, "protobuf"},
      {"wire/varint-of-eleven-bytes", [] { return "\x08" + std::string(10, '\xff') + "\x01"; }, kMalformed, "protobuf"},
      {"wire/field-0", [] { return std::string("\x02\x00", 2); }, kMalformed, "protobuf"},
      {"wire/group", [] { return std::string("\x0b\x0c", 2); }, kMalformed, ""},
      {"wire/two-graphs", [] { return relu_model().bytes() + relu_model().bytes(); }, std::nullopt, ""},
      {"wire/unknown-fields",
       [] {
         std::string bytes = relu_model().bytes();
         pbf_writer(bytes).add_string(4000, "from the future");
         return bytes;
       },
       std::nullopt, ""},
      {"wire/unknown-attribute-type", unknown_attribute_type, kMalformed, "unknown type 99"},
      {"wire/types-in-types", [] { return nested_types(1000); }, ErrorCode::kLimit, "depth"},
      {"wire/many-empty-nodes", [] { return many_empty_messages(1, 1 << 22); }, ErrorCode::kLimit, "bytes"},
      {"wire/many-empty-initialisers", [] { return many_empty_messages(5, 1 << 22); }, ErrorCode::kLimit, "bytes"},
      {"wire/many-empty-inputs", [] { return many_empty_messages(11, 1 << 22); }, ErrorCode::kLimit, "bytes"},
  };
  add_truncations(corpus);
  add_wrong_types(corpus);
  return corpus;
}

}  // namespace heddle::hostile
