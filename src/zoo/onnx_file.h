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

// A weight. Its values are drawn while the file is written and never held all at once.
struct Initializer {
  std::string name;
  Shape shape;
  Fill fill;
};

// A model. Its small parts are already encoded; its weights are still recipes.
struct ModelImage {
  std::string producer = "heddle zoo";
  int opset = 17;
  DType real = DType::kF32;  // of the weights
  std::string graph;         // encoded fields of GraphProto except the initialisers
  std::vector<Initializer> initializers;
  std::vector<std::pair<std::string, std::string>> metadata;
};

// Writes `image` to `path`. If its weights exceed `max_inline_bytes` bytes in all, they go to `path` + ".data"; tensors
// below 1 KiB stay inline, since shape inference needs them. `progress` gets the number of weight bytes written and
// their total. Throws kFile; a failed call leaves no file behind.
using WriteProgress = std::function<void(uint64_t done, uint64_t all)>;
void write_model(const ModelImage& image, uint64_t seed, int64_t max_inline_bytes, const std::filesystem::path& path,
                 const WriteProgress& progress = {});

}  // namespace heddle::zoo
