// Continues a sequence of tokens with a language model whose attention is GroupQueryAttention. The caches have room for
// all tokens and stay where they are: each step writes one row of each in place.
//   c++ -std=c++20 generate.cc $(pkg-config --cflags --libs heddle) -o generate
//   ./generate MODEL_FOLDER/onnx/model.onnx COUNT TOKEN...
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "heddle/model.h"

namespace {

using heddle::DType;
using heddle::Tensor;

// Every input and the outputs that lie in the memory of inputs, for one token a run.
class Decoder {
 public:
  Decoder(const std::string& path, int64_t capacity) : model_(load(path, capacity)), capacity_(capacity) {
    for (const heddle::PortInfo& port : model_.inputs()) inputs_[port.name] = Tensor(port.dtype, port.shape);
    for (const heddle::PortInfo& port : model_.outputs()) {
      if (!port.alias.empty()) outputs_[port.name] = inputs_.at(port.alias);  // copies of a tensor share its memory
    }
  }

  // Reads the token at this position and returns the most probable next one.
  int64_t step(int64_t token, int64_t position) {
    inputs_["input_ids"] = Tensor::of<int64_t>(DType::kI64, {1, 1}, {token});
    Tensor mask(DType::kI64, {1, capacity_});  // 1 for the keys that the token may see
    std::fill_n(mask.mutable_values<int64_t>().begin(), position + 1, 1);
    inputs_["attention_mask"] = mask;
    if (inputs_.count("position_ids") != 0) inputs_["position_ids"] = Tensor::of<int64_t>(DType::kI64, {1, 1}, {position});
    const std::vector<Tensor> results = model_.run_into(inputs_, outputs_);
    for (size_t i = 0; i < results.size(); ++i) {
      if (model_.outputs()[i].name != "logits") continue;
      const std::span<const float> logits = results[i].values<float>();
      return std::max_element(logits.begin(), logits.end()) - logits.begin();
    }
    throw heddle::Error(heddle::ErrorCode::kInvalidArgument, "generate", "the model has no output logits");
  }

 private:
  static heddle::Model load(const std::string& path, int64_t capacity) {
    heddle::CompileOptions options;
    options.alias["present.*"] = "past_key_values.*";
    // Extents by input and dimension. Those of one name vary together, so that one cache stands for all.
    options.ranges["input_ids.1"] = {1, 1};
    options.ranges["attention_mask.1"] = {capacity, capacity};
    options.ranges["past_key_values.0.key.2"] = {capacity, capacity};
    return heddle::Model::load(path, options);
  }

  heddle::Model model_;
  int64_t capacity_;
  std::map<std::string, Tensor> inputs_, outputs_;
};

void generate(const std::string& path, int64_t count, const std::vector<int64_t>& prompt) {
  const auto known = static_cast<int64_t>(prompt.size());
  Decoder decoder(path, known + count);
  int64_t next = 0;
  for (int64_t position = 0; position < known + count - 1; ++position) {
    next = decoder.step(position < known ? prompt[static_cast<size_t>(position)] : next, position);
    if (position + 1 < known) continue;  // the prompt goes on
    std::printf("%lld\n", static_cast<long long>(next));
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t count = argc > 2 ? std::atoll(argv[2]) : 0;
  if (argc < 4 || count < 1) {
    std::fprintf(stderr, "usage: %s MODEL COUNT TOKEN...\n", argv[0]);
    return 2;
  }
  std::vector<int64_t> prompt;
  for (int i = 3; i < argc; ++i) prompt.push_back(std::atoll(argv[i]));
  try {
    generate(argv[1], count, prompt);
    return 0;
  } catch (const heddle::Error& error) {  // its what() says where, why and what to do
    std::fprintf(stderr, "%s\n", error.what());
    return heddle::exit_code(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 4;
  }
}
