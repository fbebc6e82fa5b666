#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace heddle::onnx {

class NodeContext;

inline constexpr std::string_view kMicrosoft = "com.microsoft";  // the operator domain of ONNX Runtime

// Lowers one operator to primitives, for the opset versions since <= version <= until of its domain. If the semantics
// differ between these versions, `lower` reads the exact version from the context.
struct OpHandler {
  std::string_view domain;  // "", "ai.onnx.ml", "com.microsoft", ...
  std::string_view op_type;
  int since, until;
  void (*lower)(NodeContext&);
  // True if the operator only moves elements. For string inputs, the operator is then applied to indices into a table
  // of the strings, and its outputs are mapped back through the table.
  bool moves_text = false;
};

constexpr int kOldestOpset = 1;
constexpr int kNewestOpset = 27;
constexpr int kAnyVersion = 1 << 30;

// Returns the handler of an operator; null if Heddle does not support the operator in this version.
const OpHandler* find_handler(std::string_view domain, std::string_view op_type, int64_t version);

// All families of handlers, as registry.cc lists them.
std::span<const std::span<const OpHandler>> all_families();

// The handlers of each family. Each family has its own source file.
std::span<const OpHandler> math_ops();
std::span<const OpHandler> activation_ops();
std::span<const OpHandler> logic_ops();
std::span<const OpHandler> matmul_ops();
std::span<const OpHandler> conv_ops();
std::span<const OpHandler> pool_ops();
std::span<const OpHandler> normalization_ops();
std::span<const OpHandler> reduction_ops();
std::span<const OpHandler> shape_ops();
std::span<const OpHandler> tensor_ops();
std::span<const OpHandler> indexing_ops();
std::span<const OpHandler> resize_ops();
std::span<const OpHandler> sampling_ops();
std::span<const OpHandler> random_ops();
std::span<const OpHandler> attention_ops();
std::span<const OpHandler> microsoft_ops();
std::span<const OpHandler> microsoft_attention_ops();
std::span<const OpHandler> microsoft_quant_ops();
std::span<const OpHandler> rnn_ops();
std::span<const OpHandler> control_ops();
std::span<const OpHandler> sequence_ops();
std::span<const OpHandler> quant_ops();
std::span<const OpHandler> detection_ops();
std::span<const OpHandler> signal_ops();
std::span<const OpHandler> loss_ops();
std::span<const OpHandler> training_ops();
std::span<const OpHandler> linear_attention_ops();
std::span<const OpHandler> text_ops();
std::span<const OpHandler> ml_ops();
std::span<const OpHandler> qlinear_ops();

}  // namespace heddle::onnx
