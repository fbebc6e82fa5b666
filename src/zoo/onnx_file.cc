#include "zoo/onnx_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <system_error>

#include "base/check.h"
#include "base/file/file_parts.h"
#include "zoo/onnx_fields.h"

namespace heddle::zoo {
namespace {

namespace fs = std::filesystem;
using protozero::pbf_writer;

constexpr int kIrVersion = 8;
constexpr int64_t kExternalAlignment = 4096;  // a page, so that a reader can map each tensor
constexpr int64_t kMinExternalBytes = 1024;
constexpr size_t kChunkValues = size_t{1} << 20;

int64_t byte_size(const Initializer& weight, DType real) {
  return element_count(weight.shape) * static_cast<int64_t>(size_of(real));
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// The values of a weight, in pieces, at `offset` of a file.
void put_values(const Initializer& weight, DType real, uint64_t seed, uint64_t offset, const PutPart& put) {
  std::vector<float> chunk;
  const uint64_t key = weight_key(seed, weight.name);
  const auto total = static_cast<size_t>(element_count(weight.shape));
  for (size_t begin = 0; begin < total; begin += kChunkValues) {
    const size_t count = std::min(kChunkValues, total - begin);
    chunk.resize(count);
    fill_values(weight.fill, key, begin, chunk);
    put(offset + begin * size_of(real), bytes_of(encode_values(real, chunk)));
  }
}

void append_length_field(std::string& out, protozero::pbf_tag_type tag, uint64_t length) {
  // Wire type 2: a length, then that many bytes, which the caller streams.
  protozero::write_varint(std::back_inserter(out), (uint64_t{tag} << 3) | 2);
  protozero::write_varint(std::back_inserter(out), length);
}

// TensorProto up to its values: what stands before them in the file, or all of it for a tensor kept outside.
std::string tensor_header(const Initializer& weight, DType real) {
  std::string header;
  pbf_writer writer(header);
  writer.add_packed_int64(onnx::Tensor::kDims, weight.shape.begin(), weight.shape.end());
  writer.add_int32(onnx::Tensor::kDataType, onnx::data_type(real));
  writer.add_string(onnx::Tensor::kName, weight.name);
  return header;
}

void add_pair(pbf_writer& parent, protozero::pbf_tag_type tag, const std::string& key, const std::string& value) {
  pbf_writer entry(parent, tag);
  entry.add_string(onnx::StringPair::kKey, key);
  entry.add_string(onnx::StringPair::kValue, value);
}

// Where the values of one initialiser go, and the bytes that stand before them in the model file.
struct Placement {
  std::string head;              // GraphProto field header, TensorProto header, and the header of raw_data if inline
  int64_t inline_bytes = 0;      // bytes of values that follow `head`
  int64_t external_offset = -1;  // or where they are in the data file
};

Placement place_inline(const Initializer& weight, DType real) {
  Placement place;
  place.inline_bytes = byte_size(weight, real);
  std::string message = tensor_header(weight, real);
  append_length_field(message, onnx::Tensor::kRawData, static_cast<uint64_t>(place.inline_bytes));
  append_length_field(place.head, onnx::Graph::kInitializer,
                      message.size() + static_cast<uint64_t>(place.inline_bytes));
  place.head += message;
  return place;
}

Placement place_external(const Initializer& weight, DType real, const std::string& location, int64_t offset) {
  Placement place;
  place.external_offset = offset;
  std::string message = tensor_header(weight, real);
  pbf_writer writer(message);
  add_pair(writer, onnx::Tensor::kExternalData, "location", location);
  add_pair(writer, onnx::Tensor::kExternalData, "offset", fmt::format("{}", offset));
  add_pair(writer, onnx::Tensor::kExternalData, "length", fmt::format("{}", byte_size(weight, real)));
  writer.add_int32(onnx::Tensor::kDataLocation, onnx::Tensor::kLocationExternal);
  append_length_field(place.head, onnx::Graph::kInitializer, message.size());
  place.head += message;
  return place;
}

std::vector<Placement> place_all(const ModelImage& image, bool external, const std::string& location) {
  std::vector<Placement> places;
  int64_t offset = 0;
  for (const Initializer& weight : image.initializers) {
    if (!external || byte_size(weight, image.real) < kMinExternalBytes) {
      places.push_back(place_inline(weight, image.real));
      continue;
    }
    places.push_back(place_external(weight, image.real, location, offset));
    const int64_t end = offset + byte_size(weight, image.real);
    offset = (end + kExternalAlignment - 1) / kExternalAlignment * kExternalAlignment;
  }
  return places;
}

std::string model_header(const ModelImage& image) {
  std::string header;
  pbf_writer writer(header);
  writer.add_int64(onnx::Model::kIrVersion, kIrVersion);
  writer.add_string(onnx::Model::kProducer, image.producer);
  {
    pbf_writer opset(writer, onnx::Model::kOpsetImport);
    opset.add_string(onnx::OpsetId::kDomain, "");
    opset.add_int64(onnx::OpsetId::kVersion, image.opset);
  }
  for (const auto& [key, value] : image.metadata) add_pair(writer, onnx::Model::kMetadata, key, value);
  return header;
}

}  // namespace

void write_model(const ModelImage& image, uint64_t seed, int64_t max_inline_bytes, const fs::path& path,
                 const WriteProgress& progress) {
  int64_t weight_bytes = 0;
  for (const Initializer& weight : image.initializers) weight_bytes += byte_size(weight, image.real);
  const bool external = weight_bytes > max_inline_bytes;
  const fs::path data_path = path.string() + ".data";
  const std::vector<Placement> places = place_all(image, external, data_path.filename().string());

  uint64_t graph_bytes = image.graph.size(), data_bytes = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    graph_bytes += places[i].head.size() + static_cast<uint64_t>(places[i].inline_bytes);
    if (places[i].external_offset < 0) continue;
    data_bytes = static_cast<uint64_t>(places[i].external_offset + byte_size(image.initializers[i], image.real));
  }
  std::string header = model_header(image);
  append_length_field(header, onnx::Model::kGraph, graph_bytes);

  uint64_t done = 0;
  const auto put_weight = [&](const Initializer& weight, uint64_t offset, const PutPart& put) {
    put_values(weight, image.real, seed, offset, [&](uint64_t at, std::span<const std::byte> values) {
      put(at, values);
      done += values.size();
      if (progress) progress(done, static_cast<uint64_t>(weight_bytes));
    });
  };
  const auto put_model = [&](const PutPart& put) {
    put(0, bytes_of(header));
    put(header.size(), bytes_of(image.graph));
    uint64_t at = header.size() + image.graph.size();
    for (size_t i = 0; i < places.size(); ++i) {
      put(at, bytes_of(places[i].head));
      at += places[i].head.size();
      if (places[i].external_offset < 0) put_weight(image.initializers[i], at, put);
      at += static_cast<uint64_t>(places[i].inline_bytes);
    }
  };
  const auto put_data = [&](const PutPart& put) {
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i].external_offset < 0) continue;
      put_weight(image.initializers[i], static_cast<uint64_t>(places[i].external_offset), put);
    }
  };
  if (external) write_file(data_path.string(), data_bytes, put_data, Sync::kNo);
  try {
    write_file(path.string(), header.size() + graph_bytes, put_model, Sync::kNo);
  } catch (const Error&) {
    std::error_code ignored;
    if (external) fs::remove(data_path, ignored);
    throw;
  }
}

}  // namespace heddle::zoo
