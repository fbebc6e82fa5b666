// Loads a model, runs it on random numbers and prints the beginning of each output.
//   c++ -std=c++20 run_model.cc $(pkg-config --cflags --libs heddle) -o run_model
//   ./run_model model.onnx [threads]
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "heddle/model.h"

namespace {

// Inputs of other types than f32 stay zero: they are token ids or masks, whose range depends on the model.
heddle::Tensor random_tensor(const heddle::PortInfo& port, std::mt19937& random) {
  heddle::Tensor tensor(port.dtype, port.shape);
  if (port.dtype == heddle::DType::kF32) {
    std::normal_distribution<float> normal;
    for (float& value : tensor.mutable_values<float>()) value = normal(random);
  }
  return tensor;
}

void print(const heddle::PortInfo& port, const heddle::Tensor& tensor) {
  std::printf("%s: %s%s", port.name.c_str(), std::string(heddle::to_string(tensor.dtype())).c_str(),
              heddle::to_string(tensor.shape()).c_str());
  if (tensor.dtype() == heddle::DType::kF32) {
    const std::span<const float> values = tensor.values<float>();
    for (size_t i = 0; i < values.size() && i < 5; ++i) std::printf(" %g", values[i]);
  }
  std::printf("\n");
}

void run(const std::string& path, int threads) {
  heddle::CompileOptions options;
  options.threads = threads;
  const heddle::Model model = heddle::Model::load(path, options);

  std::mt19937 random(1);
  std::map<std::string, heddle::Tensor> inputs;
  for (const heddle::PortInfo& port : model.inputs()) inputs[port.name] = random_tensor(port, random);

  const std::vector<heddle::Tensor> outputs = model.run(inputs);
  for (size_t i = 0; i < outputs.size(); ++i) print(model.outputs()[i], outputs[i]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: %s MODEL [THREADS]\n", argv[0]);
    return 2;
  }
  try {
    run(argv[1], argc == 3 ? std::atoi(argv[2]) : 0);
    return 0;
  } catch (const heddle::Error& error) {  // its what() says where, why and what to do
    std::fprintf(stderr, "%s\n", error.what());
    return heddle::exit_code(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 4;
  }
}
