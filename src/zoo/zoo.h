#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

#include "heddle/dtype.h"

namespace heddle::zoo {

// What a numeric option of one model may be; fallback 0 means that the model has no such option.
struct Range {
  int64_t fallback = 0;
  int64_t min = 1;
  int64_t max = 1;
  int64_t step = 1;
};

struct ModelInfo {
  std::string_view name;
  std::string_view description;
  Range seq;    // tokens, audio frames or events in a history
  Range size;   // height and width of a picture or latent; width alone for crnn
  Range width;  // channels of the first stage or of a token
};

struct Options {
  int64_t batch = 1;
  // 0: the model's own default.
  int64_t seq = 0;
  int64_t size = 0;
  int64_t width = 0;
  uint64_t seed = 0;
  DType real = DType::kF32;  // of weights, inputs and all between: f32, f16, bf16
  // Weights of more bytes in all than this go to a second file, FILE.data.
  int64_t max_inline_bytes = int64_t{1} << 30;
  // Told now and then how many of all bytes of weights are written.
  std::function<void(uint64_t done, uint64_t all)> progress = {};
};

// All models, in the order in which they are listed to users.
std::span<const ModelInfo> models();

// Writes the model `name` as ONNX to `path`. Equal options give equal bytes; a tensor's values depend on the seed and
// its name only. Throws kInvalidArgument for an unknown name or an option out of range, kFile if writing fails (then
// no file stays behind).
void write(std::string_view name, const Options& options, const std::filesystem::path& path);

}  // namespace heddle::zoo
