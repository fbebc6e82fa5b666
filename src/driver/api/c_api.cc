#include "heddle/c_api.h"

#include <charconv>
#include <cstring>
#include <memory>
#include <new>

#include "base/check.h"
#include "driver/options/options.h"
#include "heddle/model.h"
#include "heddle/version.h"

struct heddle_options {
  heddle::CompileOptions options;
};
struct heddle_model {
  heddle::Model model;
};
struct heddle_tensor {
  heddle::Tensor tensor;
};
struct heddle_error {
  int code;
  std::string message;
};

namespace {

using heddle::DType;
using heddle::ErrorCode;

static_assert(static_cast<int>(DType::kString) == HEDDLE_STRING && static_cast<int>(DType::kBool) == HEDDLE_BOOL &&
              static_cast<int>(DType::kI64) == HEDDLE_I64 && static_cast<int>(DType::kF4E2M1) == HEDDLE_F4E2M1);

void set_error(heddle_error** error, int code, const char* message) {
  if (error == nullptr) return;
  try {
    *error = new heddle_error{code, message};
  } catch (const std::bad_alloc&) {
    *error = nullptr;
  }
}

// Runs `action`; what it throws becomes the error and `otherwise` the result.
template <typename Result, typename Action>
Result guarded(heddle_error** error, Result otherwise, Action action) {
  if (error != nullptr) *error = nullptr;
  try {
    return action();
  } catch (const heddle::Error& e) {
    set_error(error, static_cast<int>(e.code()), e.what());
  } catch (const std::bad_alloc&) {
    set_error(error, static_cast<int>(ErrorCode::kOutOfMemory), "HDL404 out of memory: an allocation failed");
  } catch (const std::exception& e) {
    set_error(error, static_cast<int>(ErrorCode::kInternal), e.what());
  }
  return otherwise;
}

void require(bool condition, const char* function, const char* rule) {
  if (!condition) heddle::fail(ErrorCode::kInvalidArgument, function, rule);
}

heddle_port port_at(const std::vector<heddle::PortInfo>& ports, size_t index) {
  if (index >= ports.size()) return {};
  const heddle::PortInfo& info = ports[index];
  return {info.name.c_str(), static_cast<heddle_dtype>(info.dtype), info.shape.size(), info.shape.data()};
}

void set_option(heddle::CompileOptions& options, const std::string& key, const std::string& value) {
  if (key == "target") {
    options.target = value;
  } else if (key == "precision") {
    options.precision = value;
  } else if (key == "fusion") {
    options.fusion = value;
  } else if (key == "alias") {
    heddle::driver::add_alias(options, value, "heddle_options_set");
  } else if (key == "threads" || key == "cache" || key == "background") {
    int number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    require(error == std::errc() && end == value.data() + value.size(), "heddle_options_set", "a number is expected");
    if (key == "threads") {
      options.threads = number;
    } else {
      (key == "cache" ? options.use_cache : options.background) = number != 0;
    }
  } else {
    heddle::fail(ErrorCode::kInvalidArgument, "heddle_options_set", fmt::format("there is no option \"{}\"", key),
                 "Use target, precision, threads, fusion, cache, background or alias");
  }
}

std::map<std::string, heddle::Tensor> named_inputs(const char* const* names, const heddle_tensor* const* inputs,
                                                   size_t count, const char* function) {
  require(count == 0 || (names != nullptr && inputs != nullptr), function, "an argument is NULL");
  std::map<std::string, heddle::Tensor> given;
  for (size_t i = 0; i < count; ++i) {
    require(names[i] != nullptr && inputs[i] != nullptr, function, "an input is NULL");
    given[names[i]] = inputs[i]->tensor;
  }
  return given;
}

std::vector<heddle::DeviceTensor> device_tensors(const heddle_device_tensor* given, size_t count,
                                                 const char* function) {
  require(given != nullptr || count == 0, function, "tensors are NULL");
  std::vector<heddle::DeviceTensor> tensors;
  for (size_t i = 0; i < count; ++i) {
    require(given[i].shape != nullptr || given[i].rank == 0, function, "a shape is NULL");
    tensors.push_back({given[i].data, static_cast<DType>(given[i].dtype),
                       heddle::Shape(given[i].shape, given[i].shape + given[i].rank)});
  }
  return tensors;
}

}  // namespace

extern "C" {

const char* heddle_version(void) {
  return heddle::version();
}

int heddle_error_code(const heddle_error* error) {
  return error == nullptr ? 0 : error->code;
}

const char* heddle_error_message(const heddle_error* error) {
  return error == nullptr ? "" : error->message.c_str();
}

void heddle_error_free(heddle_error* error) {
  delete error;
}

heddle_options* heddle_options_new(void) {
  return guarded<heddle_options*>(nullptr, nullptr, [] { return new heddle_options; });
}

int heddle_options_set(heddle_options* options, const char* key, const char* value, heddle_error** error) {
  return guarded(error, 0, [&] {
    require(options != nullptr && key != nullptr && value != nullptr, "heddle_options_set", "an argument is NULL");
    set_option(options->options, key, value);
    return 1;
  });
}

int heddle_options_set_shape(heddle_options* options, const char* input, const int64_t* shape, size_t rank,
                             heddle_error** error) {
  return guarded(error, 0, [&] {
    require(options != nullptr && input != nullptr && (shape != nullptr || rank == 0), "heddle_options_set_shape",
            "an argument is NULL");
    options->options.shapes[input] = heddle::Shape(shape, shape + rank);
    return 1;
  });
}

int heddle_options_set_range(heddle_options* options, const char* extent, int64_t min, int64_t max,
                             heddle_error** error) {
  return guarded(error, 0, [&] {
    require(options != nullptr && extent != nullptr, "heddle_options_set_range", "an argument is NULL");
    options->options.ranges[extent] = {min, max};
    return 1;
  });
}

void heddle_options_set_progress(heddle_options* options, heddle_progress progress, void* context) {
  if (options == nullptr) return;
  options->options.progress = nullptr;
  if (progress == nullptr) return;
  options->options.progress = [=](const std::string& stage, double fraction) {
    progress(stage.c_str(), fraction, context);
  };
}

void heddle_options_free(heddle_options* options) {
  delete options;
}

heddle_model* heddle_model_load(const char* path, const heddle_options* options, heddle_error** error) {
  return guarded<heddle_model*>(error, nullptr, [&] {
    require(path != nullptr, "heddle_model_load", "the path is NULL");
    return new heddle_model{
        heddle::Model::load(path, options == nullptr ? heddle::CompileOptions{} : options->options)};
  });
}

int heddle_model_save(const heddle_model* model, const char* path, heddle_error** error) {
  return guarded(error, 0, [&] {
    require(model != nullptr && path != nullptr, "heddle_model_save", "an argument is NULL");
    model->model.save(path);
    return 1;
  });
}

void heddle_model_free(heddle_model* model) {
  delete model;
}

size_t heddle_model_input_count(const heddle_model* model) {
  return model->model.inputs().size();
}

size_t heddle_model_output_count(const heddle_model* model) {
  return model->model.outputs().size();
}

heddle_port heddle_model_input(const heddle_model* model, size_t index) {
  return port_at(model->model.inputs(), index);
}

heddle_port heddle_model_output(const heddle_model* model, size_t index) {
  return port_at(model->model.outputs(), index);
}

size_t heddle_model_optional_input_count(const heddle_model* model) {
  return model->model.optional_inputs().size();
}

heddle_port heddle_model_optional_input(const heddle_model* model, size_t index) {
  return port_at(model->model.optional_inputs(), index);
}

const char* heddle_model_output_alias(const heddle_model* model, size_t index) {
  const std::vector<heddle::PortInfo>& outputs = model->model.outputs();
  return index < outputs.size() && !outputs[index].alias.empty() ? outputs[index].alias.c_str() : nullptr;
}

heddle_tensor* heddle_tensor_new(heddle_dtype dtype, const int64_t* shape, size_t rank, const void* data,
                                 heddle_error** error) {
  return guarded<heddle_tensor*>(error, nullptr, [&] {
    require(dtype >= HEDDLE_F64 && dtype < HEDDLE_STRING, "heddle_tensor_new", "the type is no numeric type");
    require(shape != nullptr || rank == 0, "heddle_tensor_new", "the shape is NULL");
    heddle::Tensor tensor(static_cast<DType>(dtype), heddle::Shape(shape, shape + rank));
    if (data != nullptr && tensor.bytes() > 0) std::memcpy(tensor.mutable_data(), data, tensor.bytes());
    return new heddle_tensor{std::move(tensor)};
  });
}

heddle_dtype heddle_tensor_dtype(const heddle_tensor* tensor) {
  return static_cast<heddle_dtype>(tensor->tensor.dtype());
}

size_t heddle_tensor_rank(const heddle_tensor* tensor) {
  return tensor->tensor.shape().size();
}

const int64_t* heddle_tensor_shape(const heddle_tensor* tensor) {
  return tensor->tensor.shape().data();
}

size_t heddle_tensor_bytes(const heddle_tensor* tensor) {
  return tensor->tensor.bytes();
}

const void* heddle_tensor_data(const heddle_tensor* tensor) {
  return tensor->tensor.data();
}

void heddle_tensor_free(heddle_tensor* tensor) {
  delete tensor;
}

int heddle_model_run(const heddle_model* model, const char* const* names, const heddle_tensor* const* inputs,
                     size_t count, heddle_tensor** outputs, heddle_error** error) {
  const size_t wanted = model == nullptr || outputs == nullptr ? 0 : model->model.outputs().size();
  for (size_t i = 0; i < wanted; ++i) outputs[i] = nullptr;
  return guarded(error, 0, [&] {
    require(model != nullptr && (outputs != nullptr || model->model.outputs().empty()), "heddle_model_run",
            "an argument is NULL");
    std::vector<heddle::Tensor> results = model->model.run(named_inputs(names, inputs, count, "heddle_model_run"));
    std::vector<std::unique_ptr<heddle_tensor>> handles;
    for (heddle::Tensor& result : results) handles.push_back(std::make_unique<heddle_tensor>(std::move(result)));
    for (size_t i = 0; i < handles.size(); ++i) outputs[i] = handles[i].release();
    return 1;
  });
}

int heddle_model_run_into(const heddle_model* model, const char* const* names, const heddle_tensor* const* inputs,
                          size_t count, heddle_tensor* const* outputs, heddle_error** error) {
  return guarded(error, 0, [&] {
    constexpr const char* kName = "heddle_model_run_into";
    require(model != nullptr && (outputs != nullptr || model->model.outputs().empty()), kName, "an argument is NULL");
    std::map<std::string, heddle::Tensor> into;
    const std::vector<heddle::PortInfo>& ports = model->model.outputs();
    for (size_t i = 0; i < ports.size(); ++i) {
      if (outputs[i] != nullptr) into[ports[i].name] = outputs[i]->tensor;
    }
    model->model.run_into(named_inputs(names, inputs, count, kName), into);
    return 1;
  });
}

int heddle_model_prepare(const heddle_model* model, const heddle_device_tensor* inputs, size_t* workspace_bytes,
                         heddle_error** error) {
  return guarded(error, 0, [&] {
    require(model != nullptr && workspace_bytes != nullptr, "heddle_model_prepare", "an argument is NULL");
    std::vector<heddle::Shape> shapes;
    for (heddle::DeviceTensor& input : device_tensors(inputs, model->model.inputs().size(), "heddle_model_prepare")) {
      shapes.push_back(std::move(input.shape));
    }
    *workspace_bytes = model->model.prepare(shapes).workspace_bytes;
    return 1;
  });
}

int heddle_model_enqueue(const heddle_model* model, const heddle_device_tensor* inputs,
                         const heddle_device_tensor* outputs, void* workspace, void* stream, heddle_error** error) {
  return guarded(error, 0, [&] {
    constexpr const char* kName = "heddle_model_enqueue";
    require(model != nullptr, kName, "the model is NULL");
    const heddle::Model& m = model->model;
    m.enqueue(device_tensors(inputs, m.inputs().size(), kName), device_tensors(outputs, m.outputs().size(), kName),
              workspace, stream);
    return 1;
  });
}

}  // extern "C"
