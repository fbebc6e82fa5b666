#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <vector>

// Just enough of an ONNX reader to look at what the zoo wrote. Protozero throws on malformed bytes.
namespace heddle::zoo::testing {

struct TensorView {
  std::string name;
  std::vector<int64_t> dims;
  std::string raw;                              // inline values
  std::map<std::string, std::string> external;  // location, offset, length
};

struct NodeView {
  std::string name, type;
  std::vector<std::string> inputs, outputs;
};

struct ModelView {
  int64_t opset = 0;
  std::vector<NodeView> nodes;
  std::vector<TensorView> initializers;
  std::vector<std::string> inputs, outputs;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::string bytes(std::filesystem::file_size(path), '\0');
  std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

inline TensorView parse_tensor(protozero::pbf_reader reader) {
  TensorView tensor;
  while (reader.next()) {
    switch (reader.tag()) {
      case 1:
        for (const int64_t extent : reader.get_packed_int64()) tensor.dims.push_back(extent);
        break;
      case 8:
        tensor.name = reader.get_string();
        break;
      case 9:
        tensor.raw = reader.get_bytes();
        break;
      case 13: {
        protozero::pbf_reader entry = reader.get_message();
        std::string key;
        while (entry.next()) {
          if (entry.tag() == 1) {
            key = entry.get_string();
          } else {
            tensor.external[key] = entry.get_string();
          }
        }
        break;
      }
      default:
        reader.skip();
    }
  }
  return tensor;
}

inline NodeView parse_node(protozero::pbf_reader reader) {
  NodeView node;
  while (reader.next()) {
    switch (reader.tag()) {
      case 1:
        node.inputs.push_back(reader.get_string());
        break;
      case 2:
        node.outputs.push_back(reader.get_string());
        break;
      case 3:
        node.name = reader.get_string();
        break;
      case 4:
        node.type = reader.get_string();
        break;
      default:
        reader.skip();
    }
  }
  return node;
}

inline std::string parse_name(protozero::pbf_reader reader) {
  return reader.next(1) ? reader.get_string() : std::string();
}

inline void parse_graph(protozero::pbf_reader reader, ModelView& model) {
  while (reader.next()) {
    switch (reader.tag()) {
      case 1:
        model.nodes.push_back(parse_node(reader.get_message()));
        break;
      case 5:
        model.initializers.push_back(parse_tensor(reader.get_message()));
        break;
      case 11:
        model.inputs.push_back(parse_name(reader.get_message()));
        break;
      case 12:
        model.outputs.push_back(parse_name(reader.get_message()));
        break;
      default:
        reader.skip();
    }
  }
}

inline ModelView parse_model(const std::string& bytes) {
  ModelView model;
  protozero::pbf_reader reader(bytes);
  while (reader.next()) {
    if (reader.tag() == 7) {
      parse_graph(reader.get_message(), model);
    } else if (reader.tag() == 8) {
      protozero::pbf_reader opset = reader.get_message();
      if (opset.next(2)) model.opset = opset.get_int64();
    } else {
      reader.skip();
    }
  }
  return model;
}

}  // namespace heddle::zoo::testing
