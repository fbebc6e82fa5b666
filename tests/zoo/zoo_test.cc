#include "zoo/zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "heddle/error.h"
#include "heddle/tensor.h"
#include "onnx_view.h"
#include "zoo/models.h"

namespace heddle::zoo {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::ModelView;
using testing::parse_model;
using testing::read_file;
using testing::TensorView;

// The smallest sizes that the models take without becoming trivial.
Options small_options(std::string_view name) {
  Options options;
  const ModelInfo& info =
      *std::find_if(models().begin(), models().end(), [&](const auto& m) { return m.name == name; });
  if (info.seq.fallback != 0) options.seq = name == "asr" ? 35 : 5;
  if (info.size.fallback != 0) options.size = info.size.min == 8 ? 8 : std::max<int64_t>(info.size.min, 32);
  if (info.context.fallback != 0) options.context = info.context.min;
  if (info.width.fallback != 0) options.width = std::max<int64_t>(info.width.min, 32);
  return options;
}

class ZooFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string name = test->name();
    std::replace(name.begin(), name.end(), '/', '_');
    folder_ = fs::path(::testing::TempDir()) / ("heddle_zoo_" + name);
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write_and_read(std::string_view name, const Options& options) {
    write(name, options, folder_ / "model.onnx");
    return read_file(folder_ / "model.onnx");
  }

  fs::path folder_;
};

class ZooModel : public ZooFile, public ::testing::WithParamInterface<std::string> {};

TEST_P(ZooModel, WritesAGraphInOrderWithAllItsWeights) {
  const ModelView model = parse_model(write_and_read(GetParam(), small_options(GetParam())));
  EXPECT_GE(model.opset, 13);
  std::set<std::string> known(model.inputs.begin(), model.inputs.end());
  for (const TensorView& tensor : model.initializers) {
    EXPECT_TRUE(known.insert(tensor.name).second) << tensor.name << " is defined twice";
    EXPECT_EQ(static_cast<int64_t>(tensor.raw.size()), 4 * element_count(tensor.dims)) << tensor.name;
  }
  std::set<std::string> node_names;
  for (const auto& node : model.nodes) {
    EXPECT_TRUE(node_names.insert(node.name).second) << node.name << " is defined twice";
    for (const std::string& input : node.inputs) {
      EXPECT_TRUE(input.empty() || known.contains(input)) << node.name << " reads " << input;
    }
    known.insert(node.outputs.begin(), node.outputs.end());
  }
  ASSERT_FALSE(model.outputs.empty());
  for (const std::string& output : model.outputs) EXPECT_TRUE(known.contains(output)) << output;
}

// Weights in the model, and in a file beside it.
TEST_F(ZooFile, TellsHowFarItIs) {
  for (const int64_t most : {int64_t{1} << 30, int64_t{1}}) {
    Options options = small_options("resnet18");
    options.max_inline_bytes = most;
    std::vector<uint64_t> told;
    uint64_t total = 0;
    options.progress = [&](uint64_t done, uint64_t all) { told.push_back(done), total = all; };
    write("resnet18", options, folder_ / "model.onnx");
    ASSERT_GT(told.size(), 10U);
    EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
    EXPECT_EQ(told.back(), total);
  }
}

TEST_F(ZooFile, TypesOfHalfTheSize) {
  for (const DType type : {DType::kF16, DType::kBF16}) {
    Options options = small_options("llama-step");
    options.real = type;
    const ModelView model = parse_model(write_and_read("llama-step", options));
    EXPECT_FALSE(model.initializers.empty());
    for (const TensorView& tensor : model.initializers) {
      EXPECT_EQ(static_cast<int64_t>(tensor.raw.size()), 2 * element_count(tensor.dims)) << tensor.name;
    }
  }
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const ModelInfo& info : models()) names.emplace_back(info.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooModel, ::testing::ValuesIn(all_names()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

int64_t parameters(void (*build)(GraphBuilder&, const Options&), const Options& options) {
  GraphBuilder graph("model", 17);
  build(graph, options);
  int64_t count = 0;
  for (const Initializer& weight : graph.finish().initializers) {
    const bool learned =
        weight.name.find("running_") == std::string::npos && weight.name.find("norm_") == std::string::npos;
    if (learned) count += element_count(weight.shape);
  }
  return count;
}

// The published numbers of trainable parameters (torchvision, timm; BERT without its pooler).
TEST(ZooArchitectures, HaveThePublishedNumberOfParameters) {
  const Options image{.size = 224};
  EXPECT_EQ(parameters(resnet18, image), 11689512);
  EXPECT_EQ(parameters(resnet50, image), 25557032);
  EXPECT_EQ(parameters(vgg16, image), 138357544);
  EXPECT_EQ(parameters(vgg19, image), 143667240);
  EXPECT_EQ(parameters(repvgg_a0, image), 8309384);
  EXPECT_EQ(parameters(repvgg_b0, image), 14339048);
  EXPECT_EQ(parameters(mobilenet_v2, image), 3504872);
  EXPECT_EQ(parameters(vit_b16, {.size = 224, .width = 768}), 86567656);
  EXPECT_EQ(parameters(bert_base, {.seq = 128, .width = 768}), 108891648);
  EXPECT_EQ(parameters(gpt2, {.seq = 128, .width = 768}), 124439808);
  EXPECT_EQ(parameters(llama, {.seq = 16, .width = 2048}), 1235814400);
  EXPECT_EQ(parameters(gpt2_step, {.seq = 128, .width = 768}), 124439808);
  EXPECT_EQ(parameters(llama_step, {.seq = 16, .width = 2048}), 1235814400);
  EXPECT_EQ(parameters(t5_small, {.seq = 16}), 60506624);
  EXPECT_EQ(parameters(swin_t, {.size = 224, .width = 96}), 28288354);
  EXPECT_EQ(parameters(convnext_t, {.size = 224, .width = 96}), 28589128);
  EXPECT_EQ(parameters(deberta, {.seq = 16, .width = 768}), 141304320);
  EXPECT_EQ(parameters(whisper_encoder, {.seq = 16}), 20590592);
  EXPECT_EQ(parameters(sd_text, {.seq = 77, .width = 768}), 123060480);
  EXPECT_EQ(parameters(sd_unet, {.seq = 77, .size = 64, .width = 320, .context = 768}), 859520964);
  EXPECT_EQ(parameters(sd_vae_decoder, {.size = 64, .width = 128}), 49490199);
  EXPECT_EQ(parameters(sdxl_text_2, {.seq = 77, .width = 1280}), 694659840);
  EXPECT_EQ(parameters(sdxl_unet, {.seq = 77, .size = 128, .width = 320, .context = 2048}), 2567463684);
}

TEST_F(ZooFile, EqualSeedsGiveEqualBytes) {
  Options options = small_options("crnn");
  const std::string first = write_and_read("crnn", options);
  EXPECT_EQ(first, write_and_read("crnn", options));
  options.seed = 1;
  const std::string other = write_and_read("crnn", options);
  EXPECT_EQ(first.size(), other.size());
  EXPECT_NE(first, other);
}

TEST_F(ZooFile, LargeWeightsGoToASecondFileWithTheSameValues) {
  Options options = small_options("dien");
  const ModelView whole = parse_model(write_and_read("dien", options));
  options.max_inline_bytes = 4096;
  const ModelView divided = parse_model(write_and_read("dien", options));
  const std::string data = read_file(folder_ / "model.onnx.data");
  ASSERT_EQ(whole.initializers.size(), divided.initializers.size());
  int outside = 0;
  for (size_t i = 0; i < whole.initializers.size(); ++i) {
    const TensorView& expected = whole.initializers[i];
    const TensorView& actual = divided.initializers[i];
    if (actual.external.empty()) {
      EXPECT_EQ(actual.raw, expected.raw) << actual.name;
      EXPECT_LT(actual.raw.size(), 1024U);
      continue;
    }
    ++outside;
    EXPECT_EQ(actual.external.at("location"), "model.onnx.data");
    const size_t offset = std::stoull(actual.external.at("offset")), length = std::stoull(actual.external.at("length"));
    EXPECT_EQ(offset % 4096, 0U);
    EXPECT_TRUE(data.compare(offset, length, expected.raw) == 0) << actual.name;
  }
  EXPECT_GT(outside, 5);
}

void expect_error(ErrorCode code, std::string_view text, const std::function<void()>& action) {
  try {
    action();
    ADD_FAILURE() << "no error; expected " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_THAT(error.what(), HasSubstr(std::string(text)));
  }
}

TEST_F(ZooFile, WrongOptionsAreRefusedByName) {
  const fs::path path = folder_ / "model.onnx";
  const auto code = ErrorCode::kInvalidArgument;
  expect_error(code, "resnet18, resnet50", [&] { write("resnet", {}, path); });
  expect_error(code, "option seq", [&] { write("resnet18", {.seq = 5}, path); });
  expect_error(code, "option batch", [&] { write("resnet18", {.batch = -1}, path); });
  expect_error(code, "between 1 and 512", [&] { write("bert-base", {.seq = 513}, path); });
  expect_error(code, "multiple of 16", [&] { write("vit-b16", {.size = 100}, path); });
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(ZooFile, AFileThatCannotBeWrittenIsAnError) {
  expect_error(ErrorCode::kFile, "no_such_folder",
               [&] { write("dien", {}, folder_ / "no_such_folder" / "model.onnx"); });
  fs::create_directory(folder_ / "model.onnx");
  expect_error(ErrorCode::kFile, "model.onnx", [&] { write("dien", {}, folder_ / "model.onnx"); });
  EXPECT_FALSE(fs::exists(folder_ / "model.onnx.part"));
}

TEST(ZooWeights, FollowTheirDistribution) {
  std::vector<float> values(100000);
  fill_values(Fill::normal(3, 2), weight_key(7, "w"), 0, values);
  double sum = 0, squares = 0;
  for (const float value : values) {
    sum += value;
    squares += value * value;
  }
  const double count = static_cast<double>(values.size()), mean = sum / count;
  EXPECT_NEAR(mean, 3, 0.03);
  EXPECT_NEAR(squares / count - mean * mean, 4, 0.1);
  fill_values(Fill::uniform(-1, 5), weight_key(7, "w"), 0, values);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  EXPECT_NEAR(*low, -1, 0.01);
  EXPECT_NEAR(*high, 5, 0.01);
}

TEST(ZooWeights, AnyPartCanBeMadeAlone) {
  std::vector<float> whole(1000), part(37);
  const uint64_t key = weight_key(1, "layer.weight");
  fill_values(Fill::normal(0, 1), key, 0, whole);
  fill_values(Fill::normal(0, 1), key, 501, part);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 501));
}

}  // namespace
}  // namespace heddle::zoo
