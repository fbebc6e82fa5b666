#include "zoo/onnx_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <system_error>

#include "base/check.h"
#include "zoo/onnx_fields.h"

namespace heddle::zoo {
namespace {

namespace fs = std::filesystem;
using protozero::pbf_writer;

constexpr int kIrVersion = 8;
constexpr int64_t kExternalAlignment = 4096;  // a page, so that a reader can map each tensor
constexpr int64_t kMinExternalBytes = 1024;
constexpr size_t kChunkValues = size_t{1} << 20;

int64_t byte_size(const Initializer& weight) {
  return element_count(weight.shape) * int64_t{sizeof(float)};
}

// A file under a temporary name, which takes its own name in commit() and is removed if that is never called.
class NewFile {
 public:
  explicit NewFile(fs::path path) : path_(std::move(path)), part_(path_.string() + ".part") {
    stream_.open(part_, std::ios::binary | std::ios::trunc);
    check("it cannot be created");
  }
  ~NewFile() {
    stream_.close();
    std::error_code ignored;
    fs::remove(part_, ignored);
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(const void* data, size_t bytes) {
    stream_.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
    check("writing to it failed");
    size_ += static_cast<int64_t>(bytes);
  }
  void write(const std::string& text) { write(text.data(), text.size()); }
  void pad_to(int64_t offset) { write(std::string(static_cast<size_t>(offset - size_), '\0')); }
  int64_t size() const { return size_; }

  void commit() {
    stream_.close();
    check("writing to it failed");
    std::error_code error;
    fs::rename(part_, path_, error);
    if (error) fail(ErrorCode::kFile, path_.string(), "it cannot be put in place: " + error.message());
  }

 private:
  void check(const char* why) {
    if (!stream_) fail(ErrorCode::kFile, path_.string(), why, "Check the folder, its permissions and the free space.");
  }

  fs::path path_, part_;
  std::ofstream stream_;
  int64_t size_ = 0;
};

void write_values(const Initializer& weight, uint64_t seed, std::vector<float>& chunk, NewFile& file) {
  const uint64_t key = weight_key(seed, weight.name);
  const auto total = static_cast<size_t>(element_count(weight.shape));
  for (size_t begin = 0; begin < total; begin += kChunkValues) {
    const size_t count = std::min(kChunkValues, total - begin);
    chunk.resize(count);
    fill_values(weight.fill, key, begin, chunk);
    file.write(chunk.data(), count * sizeof(float));
  }
}

void append_length_field(std::string& out, protozero::pbf_tag_type tag, uint64_t length) {
  // Wire type 2: a length, then that many bytes, which the caller streams.
  protozero::write_varint(std::back_inserter(out), (uint64_t{tag} << 3) | 2);
  protozero::write_varint(std::back_inserter(out), length);
}

// TensorProto up to its values: what stands before them in the file, or all of it for a tensor kept outside.
std::string tensor_header(const Initializer& weight) {
  std::string header;
  pbf_writer writer(header);
  writer.add_packed_int64(onnx::Tensor::kDims, weight.shape.begin(), weight.shape.end());
  writer.add_int32(onnx::Tensor::kDataType, onnx::data_type(DType::kF32));
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

Placement place_inline(const Initializer& weight) {
  Placement place;
  place.inline_bytes = byte_size(weight);
  std::string message = tensor_header(weight);
  append_length_field(message, onnx::Tensor::kRawData, static_cast<uint64_t>(place.inline_bytes));
  append_length_field(place.head, onnx::Graph::kInitializer,
                      message.size() + static_cast<uint64_t>(place.inline_bytes));
  place.head += message;
  return place;
}

Placement place_external(const Initializer& weight, const std::string& location, int64_t offset) {
  Placement place;
  place.external_offset = offset;
  std::string message = tensor_header(weight);
  pbf_writer writer(message);
  add_pair(writer, onnx::Tensor::kExternalData, "location", location);
  add_pair(writer, onnx::Tensor::kExternalData, "offset", fmt::format("{}", offset));
  add_pair(writer, onnx::Tensor::kExternalData, "length", fmt::format("{}", byte_size(weight)));
  writer.add_int32(onnx::Tensor::kDataLocation, onnx::Tensor::kLocationExternal);
  append_length_field(place.head, onnx::Graph::kInitializer, message.size());
  place.head += message;
  return place;
}

std::vector<Placement> place_all(const ModelImage& image, bool external, const std::string& location) {
  std::vector<Placement> places;
  int64_t offset = 0;
  for (const Initializer& weight : image.initializers) {
    if (!external || byte_size(weight) < kMinExternalBytes) {
      places.push_back(place_inline(weight));
      continue;
    }
    places.push_back(place_external(weight, location, offset));
    const int64_t end = offset + byte_size(weight);
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

void write_model(const ModelImage& image, uint64_t seed, int64_t max_inline_bytes, const fs::path& path) {
  int64_t weight_bytes = 0;
  for (const Initializer& weight : image.initializers) weight_bytes += byte_size(weight);
  const bool external = weight_bytes > max_inline_bytes;
  const fs::path data_path = path.string() + ".data";
  const std::vector<Placement> places = place_all(image, external, data_path.filename().string());

  std::unique_ptr<NewFile> data_file;
  std::vector<float> chunk;
  if (external) data_file = std::make_unique<NewFile>(data_path);

  NewFile file(path);
  uint64_t graph_bytes = image.graph.size();
  for (const Placement& place : places) graph_bytes += place.head.size() + static_cast<uint64_t>(place.inline_bytes);
  std::string header = model_header(image);
  append_length_field(header, onnx::Model::kGraph, graph_bytes);
  file.write(header);
  file.write(image.graph);
  for (size_t i = 0; i < places.size(); ++i) {
    file.write(places[i].head);
    if (places[i].external_offset < 0) {
      write_values(image.initializers[i], seed, chunk, file);
    } else {
      data_file->pad_to(places[i].external_offset);
      write_values(image.initializers[i], seed, chunk, *data_file);
    }
  }
  if (data_file) data_file->commit();
  file.commit();
}

}  // namespace heddle::zoo
