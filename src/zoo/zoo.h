#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

#include "heddle/dtype.h"

namespace heddle::zoo {

// The allowed values of a numeric option of one model. `fallback` is the default; 0 means that the model has no such
// option.
struct Range {
  int64_t fallback = 0;
  int64_t min = 1;
  int64_t max = 1;
  int64_t step = 1;
};

struct ModelInfo {
  std::string_view name;
  std::string_view description;
  Range seq;           // tokens, audio frames or events in a history
  Range size;          // height and width of a picture or latent; width alone for crnn
  Range width;         // channels of the first stage or of a token
  Range context = {};  // channels of a token of the text that a picture is made from
};

struct Options {
  int64_t batch = 1;
  // 0 selects the model's default.
  int64_t seq = 0;
  int64_t size = 0;
  int64_t width = 0;
  int64_t context = 0;
  uint64_t seed = 0;
  DType real = DType::kF32;  // of weights, inputs and intermediate values: f32, f16 or bf16
  // If the weights have more than this many bytes in total, they are written to a second file, FILE.data.
  int64_t max_inline_bytes = int64_t{1} << 30;
  // Called from time to time with the number of weight bytes written so far and in total.
  std::function<void(uint64_t done, uint64_t all)> progress = {};
};

// Returns all models, in the order of listings for users.
std::span<const ModelInfo> models();

// Writes the model `name` as ONNX to `path`. Equal options give equal bytes. The values of a tensor depend only on the
// seed and the tensor's name. Throws kInvalidArgument for an unknown name or an option out of range. Throws kFile if
// writing fails; no file is left then.
void write(std::string_view name, const Options& options, const std::filesystem::path& path);

}  // namespace heddle::zoo
