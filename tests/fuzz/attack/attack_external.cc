#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "heddle/error.h"
#include "tests/fuzz/attack/attack.h"
#include "tests/fuzz/attack/pipeline.h"
#include "tests/fuzz/hostile/onnx_tree.h"
#include "tests/fuzz/rng.h"

namespace heddle::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kFloat = 1;

WireField value_field(uint64_t number, const std::string& name, const std::vector<uint64_t>& shape) {
  WireMessage dims;
  for (const uint64_t extent : shape) {
    dims.push_back(message_field(field::kShapeDim, {int_field(field::kDimValue, extent)}));
  }
  WireMessage tensor = {int_field(field::kElemType, kFloat), message_field(field::kElemShape, std::move(dims))};
  WireMessage type = {message_field(field::kTypeTensor, std::move(tensor))};
  return message_field(number,
                       {text_field(field::kValueName, name), message_field(field::kValueType, std::move(type))});
}

WireField node_field(const std::string& op, const std::string& a, const std::string& b, const std::string& out) {
  WireMessage node = {text_field(field::kNodeInput, a), text_field(field::kNodeInput, b),
                      text_field(field::kNodeOutput, out), text_field(field::kNodeOp, op)};
  return message_field(field::kGraphNode, std::move(node));
}

// What the file that the weights name is.
enum class Place : uint8_t {
  kFile,
  kSparse,
  kAbsent,
  kFolder,
  kLink,
  kLinkOut,
  kBrokenLink,
  kLinkLoop,
  kLinkedFolder,
  kPipe
};
constexpr int kPlaces = 10;

void make_place(Place place, const std::string& folder, const std::string& name, int64_t bytes) {
  std::error_code ignored;
  const std::string path = folder + "/" + name;
  switch (place) {
    case Place::kFile:
      return write_bytes(path, std::string(static_cast<size_t>(bytes), '\1'));
    case Place::kSparse:
      write_bytes(path, "");
      if (truncate(path.c_str(), int64_t{1} << 40) != 0) write_bytes(path, "too large for this file system");
      return;
    case Place::kAbsent:
      return;
    case Place::kFolder:
      fs::create_directory(path, ignored);
      return;
    case Place::kLink:
      write_bytes(path + ".target", std::string(static_cast<size_t>(bytes), '\1'));
      return fs::create_symlink(name + ".target", path, ignored);
    case Place::kLinkOut:
      return fs::create_symlink("/etc/passwd", path, ignored);
    case Place::kBrokenLink:
      return fs::create_symlink("nowhere", path, ignored);
    case Place::kLinkLoop:
      return fs::create_symlink(name, path, ignored);
    case Place::kLinkedFolder:
      fs::create_symlink("/etc", folder + "/linked", ignored);
      return;
    case Place::kPipe:
      mkfifo(path.c_str(), 0600);
  }
}

class ExternalAttack : public Attack {
 public:
  // y = (x + w) * v with w and v outside.
  void make(uint64_t seed, const std::string& folder) override {
    Rng rng(seed);
    WireMessage graph = {node_field("Add", "x", "w", "t"),
                         node_field("Mul", "t", "v", "y"),
                         value_field(field::kGraphInput, "x", {4, 8}),
                         value_field(field::kGraphOutput, "y", {4, 8}),
                         tensor("w", rng),
                         tensor("v", rng)};
    WireMessage opset = {int_field(field::kOpsetVersion, 17)};
    const WireMessage model = {int_field(1, 8), message_field(field::kModelOpset, std::move(opset)),
                               message_field(field::kModelGraph, std::move(graph))};
    std::string bytes;
    encode_wire(model, bytes);
    write_bytes(folder + "/model.onnx", bytes);
    const auto place = rng.chance(0.5) ? Place::kFile : static_cast<Place>(rng.range(0, kPlaces - 1));
    make_place(place, folder, "weights.bin", rng.range(0, 400));
  }

  std::string run(uint64_t seed, const std::string& folder) override {
    return compile_everywhere({.path = folder + "/model.onnx", .seed = seed, .run = false});
  }

  std::string main_file() const override { return "model.onnx"; }

 private:
  static WireField tensor(const std::string& name, Rng& rng) {
    static const std::vector<std::string> places = {"weights.bin",
                                                    "./weights.bin",
                                                    "a/../weights.bin",
                                                    "../weights.bin",
                                                    "linked/passwd",
                                                    "/etc/passwd",
                                                    "",
                                                    ".",
                                                    "..",
                                                    "weights.bin/",
                                                    "weights.bin/x",
                                                    "model.onnx",
                                                    "/dev/zero",
                                                    "/dev/stdin",
                                                    "/proc/self/mem",
                                                    "~/.profile",
                                                    "weights.bin\n\x1b[31m",
                                                    std::string("weights\0.bin", 12),
                                                    std::string(300, 'w'),
                                                    std::string(5000, 'w')};
    static const std::vector<std::string> numbers = {"0",
                                                     "4",
                                                     "64",
                                                     "128",
                                                     "399",
                                                     "400",
                                                     "401",
                                                     "-1",
                                                     "1099511627776",
                                                     "9223372036854775807",
                                                     "18446744073709551615",
                                                     "18446744073709551616",
                                                     "",
                                                     " 4",
                                                     "4 ",
                                                     "0x4",
                                                     "4.0",
                                                     "1e2",
                                                     "four",
                                                     "+4",
                                                     "00000004"};
    WireMessage out = {int_field(field::kTensorDim, 8), int_field(field::kTensorType, kFloat),
                       text_field(field::kTensorName, name), int_field(field::kTensorLocation, 1)};
    if (rng.chance(0.2)) out[0].varint = interesting(rng);
    if (rng.chance(0.1)) out[1].varint = static_cast<uint64_t>(rng.range(0, 27));
    if (rng.chance(0.05)) out.push_back(text_field(field::kTensorRaw, std::string(32, '\1')));
    const auto entry = [&](const char* key, const std::string& value) {
      WireMessage pair = {text_field(field::kEntryKey, key), text_field(field::kEntryValue, value)};
      out.push_back(message_field(field::kTensorExternal, std::move(pair)));
    };
    if (rng.chance(0.97)) entry("location", rng.chance(0.6) ? places[0] : rng.pick(places));
    if (rng.chance(0.6)) entry("offset", rng.pick(numbers));
    if (rng.chance(0.6)) entry("length", rng.chance(0.5) ? "32" : rng.pick(numbers));
    if (rng.chance(0.1))
      entry(rng.pick(std::vector<const char*>{"location", "offset", "checksum", ""}), rng.pick(numbers));
    return message_field(field::kGraphInitializer, std::move(out));
  }
};

}  // namespace

std::unique_ptr<Attack> make_external_attack() {
  return std::make_unique<ExternalAttack>();
}

}  // namespace heddle::fuzz
