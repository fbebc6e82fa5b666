// Links only if the library exports every function of its public headers.
#include <cstdio>

#include "heddle/c_api.h"
#include "heddle/model.h"
#include "heddle/ops.h"
#include "heddle/version.h"

namespace {

// Also where it is inline: its out-of-line parts have to be found.
template <typename... Functions>
int count(Functions... functions) {
  return (static_cast<int>(functions != nullptr) + ...);
}

int count_model() {
  using heddle::Model;
  return count(&Model::load, &Model::inputs, &Model::optional_inputs, &Model::outputs, &Model::run, &Model::run_into,
               &Model::save);
}

int count_tensor() {
  using heddle::Tensor;
  const Tensor tensor(heddle::DType::kF32, {2});
  return count(&Tensor::unfilled, &Tensor::borrow, &Tensor::of_strings, &Tensor::reshaped) +
         count(&heddle::element_count, static_cast<std::string (*)(const heddle::Shape&)>(&heddle::to_string)) +
         static_cast<int>(tensor.size() == 2);
}

int count_dtype() {
  return count(static_cast<std::string_view (*)(heddle::DType)>(&heddle::to_string), &heddle::parse_dtype,
               &heddle::size_of, &heddle::bits_of, &heddle::is_float, &heddle::is_signed_int, &heddle::is_unsigned_int,
               &heddle::round_to, &heddle::encode_float, &heddle::decode_float);
}

int count_ops() {
  using heddle::ops::Attention, heddle::ops::Gemm;
  const heddle::ops::GemmProblem a, b;
  return count(&heddle::ops::gemm_instances, &heddle::ops::gemm, &Gemm::prepare, &Gemm::config, &Gemm::reason,
               &Gemm::workspace_bytes, &heddle::ops::attention, &Attention::prepare, &Attention::operator(),
               &Attention::config, &Attention::reason, &Attention::workspace_bytes) +
         static_cast<int>(a == b);
}

int count_c() {
  return count(&heddle_version, &heddle_error_code, &heddle_error_message, &heddle_error_free, &heddle_options_new,
               &heddle_options_set, &heddle_options_set_shape, &heddle_options_set_progress, &heddle_options_free,
               &heddle_model_load, &heddle_model_save, &heddle_model_free, &heddle_model_input_count,
               &heddle_model_output_count, &heddle_model_input, &heddle_model_output,
               &heddle_model_optional_input_count, &heddle_model_optional_input, &heddle_model_output_alias,
               &heddle_model_run, &heddle_model_run_into, &heddle_tensor_new, &heddle_tensor_dtype, &heddle_tensor_rank,
               &heddle_tensor_shape, &heddle_tensor_bytes, &heddle_tensor_data, &heddle_tensor_free);
}

// An exception of the library is caught as what it is: its type information is one on both sides.
int count_errors() {
  try {
    heddle::Model::load("/nowhere.onnx");
  } catch (const heddle::Error& error) {
    return count(&heddle::exit_code) + static_cast<int>(error.code() == heddle::ErrorCode::kFile);
  }
  return 0;
}

}  // namespace

int main() {
  std::printf("heddle %s: %d\n", heddle::version(),
              count_model() + count_tensor() + count_dtype() + count_ops() + count_c() + count_errors());
}
