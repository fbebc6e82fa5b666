#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {

std::span<const std::span<const OpHandler>> all_families() {
  // clang-format off: one family a line, so that two branches can add theirs.
  static const std::array kFamilies = {
      math_ops(),
      activation_ops(),
      logic_ops(),
      matmul_ops(),
      conv_ops(),
      pool_ops(),
      normalization_ops(),
      reduction_ops(),
      shape_ops(),
      tensor_ops(),
      indexing_ops(),
      resize_ops(),
      sampling_ops(),
      random_ops(),
      attention_ops(),
      microsoft_ops(),
      microsoft_attention_ops(),
      microsoft_quant_ops(),
      rnn_ops(),
      control_ops(),
      sequence_ops(),
      quant_ops(),
      detection_ops(),
      signal_ops(),
      loss_ops(),
      training_ops(),
      linear_attention_ops(),
      text_ops(),
      ml_ops(),
      qlinear_ops(),
  };
  // clang-format on
  return kFamilies;
}

const OpHandler* find_handler(std::string_view domain, std::string_view op_type, int64_t version) {
  static const auto kIndex = [] {
    std::unordered_map<std::string_view, std::vector<const OpHandler*>> index;
    for (const auto family : all_families()) {
      for (const OpHandler& handler : family) index[handler.op_type].push_back(&handler);
    }
    return index;
  }();
  const auto at = kIndex.find(op_type);
  if (at == kIndex.end()) return nullptr;
  for (const OpHandler* handler : at->second) {
    if (handler->domain == domain && handler->since <= version && version <= handler->until) return handler;
  }
  return nullptr;
}

}  // namespace heddle::onnx
