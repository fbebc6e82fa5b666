#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/tensor.h"
#include "zoo/weights.h"

namespace heddle::zoo {

// A weight of a model. Its values are generated while the file is written, and are never all in memory at once.
struct Initializer {
  std::string name;
  Shape shape;
  Fill fill;
};

// A model to be written to a file. The graph is already encoded; the weights are generated later from initializers.
struct ModelImage {
  std::string producer = "heddle zoo";
  int opset = 17;
  DType real = DType::kF32;  // the type of floating-point weights
  std::string graph;         // the encoded fields of GraphProto except the initializers
  std::vector<Initializer> initializers;
  std::vector<std::pair<std::string, std::string>> metadata;
};

// Writes `image` to `path`. If all weights together exceed `max_inline_bytes` bytes, they are written to `path` +
// ".data"; only weights below 1 KiB stay inline, since shape inference needs them. `progress` is called with the number
// of weight bytes written so far and in total. Throws kFile; a failed call leaves no file behind.
using WriteProgress = std::function<void(uint64_t done, uint64_t all)>;
void write_model(const ModelImage& image, uint64_t seed, int64_t max_inline_bytes, const std::filesystem::path& path,
                 const WriteProgress& progress = {});

}  // namespace heddle::zoo
