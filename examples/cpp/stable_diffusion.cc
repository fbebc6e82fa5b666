// Makes pictures from the plan files that examples/stable_diffusion/generate.py --save writes for a prompt.
//   c++ -std=c++20 stable_diffusion.cc $(pkg-config --cflags --libs heddle libpng) -o stable_diffusion
//   ./stable_diffusion FOLDER picture.png
// The folder has the prompt as token ids, since the tokenizer is a Python package.
#include <png.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "heddle/model.h"

namespace {

using Tensors = std::map<std::string, heddle::Tensor>;

// The numbers of a text file.
std::vector<double> numbers_in(const std::string& path) {
  std::ifstream file(path);
  std::vector<double> numbers{std::istream_iterator<double>(file), {}};
  if (numbers.empty() || !file.eof())
    throw std::runtime_error(path + ": there are no numbers in it, or not only numbers");
  return numbers;
}

// A tensor for an input of a model. `values` are its elements; if it may be longer, the first ones, and the others are
// 0.
heddle::Tensor tensor_of(const heddle::Model& model, const std::string& name, std::span<const double> values,
                         bool may_be_longer = false) {
  for (const heddle::PortInfo& port : model.inputs()) {
    if (port.name != name) continue;
    heddle::Tensor tensor(port.dtype, port.shape);
    const auto given = static_cast<int64_t>(values.size()), room = heddle::element_count(port.shape);
    if (given > room || (given < room && !may_be_longer)) break;
    const auto fill = [&](auto to) {
      for (size_t i = 0; i < values.size(); ++i) to[i] = static_cast<typename decltype(to)::value_type>(values[i]);
    };
    if (port.dtype == heddle::DType::kF32) fill(tensor.mutable_values<float>());
    if (port.dtype == heddle::DType::kI32) fill(tensor.mutable_values<int32_t>());
    if (port.dtype == heddle::DType::kI64) fill(tensor.mutable_values<int64_t>());
    return tensor;
  }
  throw std::runtime_error("a plan has no input " + name + " for these numbers: it belongs to another folder");
}

heddle::Tensor output_of(const heddle::Model& model, const Tensors& inputs, const std::string& name) {
  const std::vector<heddle::Tensor> outputs = model.run(inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (model.outputs()[i].name == name) return outputs[i];
  }
  throw std::runtime_error("a plan has no output " + name + ": it belongs to another folder");
}

heddle::Tensor pixels_of(const std::string& folder) {
  const heddle::Model encoder = heddle::Model::load(folder + "/text_encoder.plan");
  const heddle::Model step = heddle::Model::load(folder + "/step.plan");
  const heddle::Model decoder = heddle::Model::load(folder + "/decoder.plan");

  const heddle::Tensor text =
      output_of(encoder, {{"input_ids", tensor_of(encoder, "input_ids", numbers_in(folder + "/tokens.txt"))}},
                "pipeline.last_hidden_state");
  const std::vector<double> schedule = numbers_in(folder + "/schedule.txt");  // the guidance, then the table
  const std::span<const double> table = std::span(schedule).subspan(1);
  constexpr size_t kColumns = 4;
  if (table.size() % kColumns != 0) throw std::runtime_error("schedule.txt is cut off: save the request again");
  Tensors inputs = {{"pipeline.guidance", tensor_of(step, "pipeline.guidance", std::span(schedule).first(1))},
                    {"pipeline.table", tensor_of(step, "pipeline.table", table, true)},
                    {"pipeline.latents", tensor_of(step, "pipeline.latents", numbers_in(folder + "/noise.txt"))},
                    {"pipeline.encoder_hidden_states", text}};
  for (size_t i = 0; i < table.size() / kColumns; ++i) {
    inputs["pipeline.step"] = tensor_of(step, "pipeline.step", std::vector<double>{static_cast<double>(i)});
    inputs["pipeline.latents"] = output_of(step, inputs, "pipeline.next_latents");
    std::fprintf(stderr, "\rstep %zu of %zu", i + 1, table.size() / kColumns);
  }
  std::fprintf(stderr, "\n");
  return output_of(decoder, {{"pipeline.latents", inputs["pipeline.latents"]}}, "pipeline.pixels");
}

// The pictures below each other.
void write_png(const std::string& path, const heddle::Tensor& pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(pixels.shape()[2]);
  image.height = static_cast<png_uint_32>(pixels.shape()[0] * pixels.shape()[1]);
  image.format = PNG_FORMAT_RGB;
  if (png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr) == 0) {
    throw std::runtime_error(path + ": " + image.message);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s FOLDER PICTURE.png\n", argv[0]);
    return 2;
  }
  try {
    write_png(argv[2], pixels_of(argv[1]));
    return 0;
  } catch (const heddle::Error& error) {  // its what() says where, why and what to do
    std::fprintf(stderr, "%s\n", error.what());
    return heddle::exit_code(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 4;
  }
}
