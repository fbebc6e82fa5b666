#include "frontend/onnx/reader/file_kind.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace heddle::onnx {
namespace {

constexpr std::string_view kUnpack = "Unpack it and name the .onnx file that it holds";
constexpr std::string_view kExport =
    "Export the network that the weights belong to, by torch.onnx.export() for PyTorch";
constexpr std::string_view kDownload = "Download the model itself";
constexpr std::string_view kSave =
    "Save it in binary form with onnx.save(onnx.load(path, format=\"textproto\"), \"model.onnx\")";
constexpr std::string_view kFromTensorFlow = "Convert it: python -m tf2onnx.convert";

struct Signature {
  size_t at;
  std::string_view bytes;
  FileKind kind;
};

using namespace std::string_view_literals;

// None of them can begin an ONNX protobuf message.
constexpr Signature kSignatures[] = {
    {0, "\x1f\x8b"sv, {"compressed by gzip", kUnpack}},
    {0,
     "PK\3\4"sv,
     {"a zip archive, such as a PyTorch file (.pt, .pth), a Keras model or an archive of models",
      "Export the network to ONNX (torch.onnx.export(), tf2onnx); unpack an archive and name the .onnx file in it"}},
    {0, "\x28\xb5\x2f\xfd"sv, {"compressed by zstd", kUnpack}},
    {0, "BZh"sv, {"compressed by bzip2", kUnpack}},
    {0,
     "\xfd"
     "7zXZ\0"sv,
     {"compressed by xz", kUnpack}},
    {0, "7z\xbc\xaf\x27\x1c"sv, {"a 7z archive", kUnpack}},
    {0, "\x04\x22\x4d\x18"sv, {"compressed by lz4", kUnpack}},
    {257, "ustar"sv, {"a tar archive", kUnpack}},
    {0, "\x89HDF\r\n\x1a\n"sv, {"an HDF5 file, such as weights of Keras", kFromTensorFlow}},
    {0,
     "version https://git-lfs.github.com/spec/"sv,
     {"a pointer of git-lfs in place of the model", "Fetch the model with: git lfs pull"}},
    {0, "GGUF"sv, {"a GGUF file, which holds weights without a network", "Export the network to ONNX"}},
    {0, "\x93NUMPY"sv, {"an array of NumPy", "Name the model; arrays are its inputs"}},
    {0, "\x80\2"sv, {"a file of Python's pickle, such as a PyTorch file", kExport}},
    {0, "\x80\4"sv, {"a file of Python's pickle", kExport}},
    {0, "\x80\5"sv, {"a file of Python's pickle", kExport}},
    {0, "ML\xefR"sv, {"MLIR bytecode, such as StableHLO", "Export the network to ONNX"}},
    {0, "<!DOCTYPE"sv, {"a page of HTML", kDownload}},
    {0, "<!doctype"sv, {"a page of HTML", kDownload}},
    {0, "<html"sv, {"a page of HTML", kDownload}},
    {0, "<?xml"sv, {"an XML file, such as a model of OpenVINO", "Use the ONNX model that it was made from"}},
    {0, "ir_version:"sv, {"ONNX in protobuf's form as text", kSave}},
    {0, "\n"sv, {"no message of ONNX; a graph of TensorFlow (.pb) begins like it", kFromTensorFlow}},
    {0,
     "\x7f"
     "ELF"sv,
     {"a program or library", "Name an ONNX, .hir or plan file"}},
};

// Flatbuffers formats have their name after the root offset.
constexpr Signature kFlatbuffers[] = {
    {4, "ORTM"sv, {"a model in ONNX Runtime's own format (.ort)", "Use the .onnx file that it was made from"}},
    {4, "TFL3"sv, {"a model of TensorFlow Lite", "Convert it: python -m tf2onnx.convert --tflite"}},
};

template <size_t N>
std::optional<FileKind> find(const Signature (&signatures)[N], std::string_view bytes) {
  for (const Signature& s : signatures) {
    if (bytes.size() >= s.at + s.bytes.size() && bytes.substr(s.at, s.bytes.size()) == s.bytes) return s.kind;
  }
  return std::nullopt;
}

// A length of 8 bytes, then a JSON header.
bool is_safetensors(std::string_view bytes) {
  uint64_t length = 0;
  if (bytes.size() < sizeof length + 2) return false;
  std::memcpy(&length, bytes.data(), sizeof length);
  return length >= 2 && length <= bytes.size() - sizeof length && bytes[sizeof length] == '{' &&
         (bytes[sizeof length + 1] == '"' || bytes[sizeof length + 1] == '}');
}

}  // namespace

std::optional<FileKind> foreign_kind(std::string_view bytes) {
  if (const auto kind = find(kSignatures, bytes)) return kind;
  uint32_t root = 0;
  constexpr uint32_t kMostRoot = 1 << 16;
  if (bytes.size() >= 8) std::memcpy(&root, bytes.data(), sizeof root);
  if (root > 0 && root < std::min<uint64_t>(bytes.size(), kMostRoot)) {
    if (const auto kind = find(kFlatbuffers, bytes)) return kind;
  }
  if (is_safetensors(bytes)) return FileKind{"a safetensors file, which holds weights without a network", kExport};
  const std::string_view start = bytes.substr(0, 64);
  const size_t text = start.find_first_not_of(" \t\r\n");
  if (text != std::string_view::npos && start[text] == '{' && start.find('"') != std::string_view::npos) {
    return FileKind{"a JSON file", "Name the model itself, a .onnx file"};
  }
  // SavedModel: the schema version, then a MetaGraph.
  if (bytes.starts_with("\x08\x01\x12"sv) && bytes.find("saved_model") != std::string_view::npos) {
    return FileKind{"a SavedModel of TensorFlow", kFromTensorFlow};
  }
  return std::nullopt;
}

}  // namespace heddle::onnx
