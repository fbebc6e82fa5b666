#include "zoo/zoo.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/near_miss.h"
#include "zoo/models.h"
#include "zoo/onnx_file.h"

namespace heddle::zoo {
namespace {

constexpr int64_t kMaxBatch = 4096;
constexpr Range kImage{.fallback = 224, .min = 32, .max = 4096};
constexpr Range kNone{};
constexpr Range kWidth{768, 64, 4096, 64};  // heads of 64

// The opsets differ on purpose: below 17 layer normalisation is written as a chain of smaller operators.
struct Entry {
  ModelInfo info;
  int opset;
  void (*build)(GraphBuilder&, const Options&);
};

constexpr std::array<Entry, 27> kEntries{{
    {{"resnet18", "ResNet-18, image classification", kNone, kImage, kNone}, 13, resnet18},
    {{"resnet50", "ResNet-50, image classification", kNone, kImage, kNone}, 13, resnet50},
    {{"vgg16", "VGG-16, image classification", kNone, kImage, kNone}, 13, vgg16},
    {{"vgg19", "VGG-19, image classification", kNone, kImage, kNone}, 13, vgg19},
    {{"repvgg-a0", "RepVGG-A0 in deploy form, image classification", kNone, kImage, kNone}, 17, repvgg_a0},
    {{"repvgg-b0", "RepVGG-B0 in deploy form, image classification", kNone, kImage, kNone}, 17, repvgg_b0},
    {{"mobilenet-v2", "MobileNetV2, image classification", kNone, kImage, kNone}, 13, mobilenet_v2},
    {{"vit-b16", "Vision Transformer B/16, image classification", kNone, {224, 16, 4096, 16}, kWidth}, 17, vit_b16},
    {{"bert-base", "BERT base, text encoder", {128, 1, 512}, kNone, kWidth}, 14, bert_base},
    {{"transformer", "Transformer base, encoder and decoder", {64, 1, 512}, kNone, kNone}, 16, transformer},
    {{"gpt2", "GPT-2, 124 million parameters, text generation", {128, 1, 1024}, kNone, kWidth}, 17, gpt2},
    {{"llama", "Llama 3.2 1B, text generation", {128, 1, 4096}, kNone, {2048, 256, 8192, 256}}, 17, llama},
    {{"gpt2-step", "A token of GPT-2 behind cached keys", {1024, 1, 1024}, kNone, kWidth}, 17, gpt2_step},
    {{"llama-step", "A token of Llama 3.2 1B behind cached keys", {4096, 1, 16384}, kNone, {2048, 256, 8192, 256}},
     17,
     llama_step},
    {{"t5-small", "T5 small, text encoder and decoder", {128, 1, 512}, kNone, kNone}, 17, t5_small},
    {{"deberta-v3-small", "DeBERTa v3 small, text encoder", {128, 1, 512}, kNone, kWidth}, 17, deberta},
    {{"whisper-encoder", "The encoder of Whisper base, speech", {3000, 1, 3000}, kNone, kNone}, 17, whisper_encoder},
    {{"swin-t", "Swin-T, image classification", kNone, {224, 224, 1120, 224}, {96, 32, 192, 32}}, 17, swin_t},
    {{"convnext-t", "ConvNeXt-T, image classification", kNone, kImage, {96, 8, 192, 8}}, 17, convnext_t},
    {{"asr", "Convolutions and a transformer encoder, speech recognition", {800, 7, 4000}, kNone, kNone}, 17, asr},
    {{"crnn", "Convolutions and two bidirectional LSTMs, text recognition", kNone, {320, 16, 16384}, kNone}, 14, crnn},
    {{"dien", "Embeddings, GRU, attention and AUGRU, click prediction", {100, 1, 10000}, kNone, kNone}, 16, dien},
    {{"sd-text", "Text encoder of Stable Diffusion 1.x and the first of XL", {77, 1, 77}, kNone, kWidth}, 17, sd_text},
    {{"sd-unet",
      "UNet of Stable Diffusion 1.x, 860 million parameters",
      {77, 1, 4096},
      {64, 8, 512, 8},
      {320, 32, 1024, 32},
      kWidth},
     17,
     sd_unet},
    {{"sd-vae-decoder",
      "Decoder of Stable Diffusion 1.x and XL, from a latent to a picture",
      kNone,
      {64, 8, 512, 8},
      {128, 32, 256, 32}},
     17,
     sd_vae_decoder},
    {{"sdxl-text-2", "Second text encoder of Stable Diffusion XL", {77, 1, 77}, kNone, {1280, 64, 4096, 64}},
     17,
     sdxl_text_2},
    {{"sdxl-unet",
      "UNet of Stable Diffusion XL, 2.6 billion parameters",
      {77, 1, 4096},
      {128, 8, 512, 8},
      {320, 32, 1024, 32},
      {2048, 512, 2048, 512}},
     17,
     sdxl_unet},
}};

int64_t checked(const ModelInfo& info, std::string_view option, const Range& range, int64_t value) {
  if (value == 0) return range.fallback;
  const std::string where = fmt::format("zoo model '{}', option {}", info.name, option);
  if (range.fallback == 0) fail(ErrorCode::kInvalidArgument, where, "this model has no such option", "Leave it out");
  if (value < range.min || value > range.max || value % range.step != 0) {
    const std::string step = range.step == 1 ? "" : fmt::format(" and a multiple of {}", range.step);
    fail(ErrorCode::kInvalidArgument, where,
         fmt::format("{} is not between {} and {}{}", value, range.min, range.max, step),
         fmt::format("The default is {}", range.fallback));
  }
  return value;
}

const Entry& find(std::string_view name) {
  const auto at = std::find_if(kEntries.begin(), kEntries.end(), [&](const Entry& e) { return e.info.name == name; });
  if (at != kEntries.end()) return *at;
  std::vector<std::string_view> known;
  for (const Entry& entry : kEntries) known.push_back(entry.info.name);
  fail(ErrorCode::kInvalidArgument, fmt::format("zoo model '{}'", name), "there is no such model",
       did_you_mean(name, known) + fmt::format("Known: {}", fmt::join(known, ", ")));
}

}  // namespace

std::span<const ModelInfo> models() {
  static const auto infos = [] {
    std::array<ModelInfo, kEntries.size()> list;
    std::transform(kEntries.begin(), kEntries.end(), list.begin(), [](const Entry& entry) { return entry.info; });
    return list;
  }();
  return infos;
}

void write(std::string_view name, const Options& options, const std::filesystem::path& path) {
  const Entry& entry = find(name);
  Options filled = options;
  const Range batch{.fallback = 1, .min = 1, .max = kMaxBatch};
  filled.batch = checked(entry.info, "batch", batch, options.batch);
  filled.seq = checked(entry.info, "seq", entry.info.seq, options.seq);
  filled.size = checked(entry.info, "size", entry.info.size, options.size);
  filled.width = checked(entry.info, "width", entry.info.width, options.width);
  filled.context = checked(entry.info, "context", entry.info.context, options.context);
  GraphBuilder graph(std::string(name), entry.opset, options.real);
  entry.build(graph, filled);
  write_model(graph.finish(), options.seed, options.max_inline_bytes, path, options.progress);
}

}  // namespace heddle::zoo
