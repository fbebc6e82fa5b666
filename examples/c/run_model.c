/* Loads a model, runs it on zeros and prints the beginning of each output.
 *   cc -std=c99 run_model.c $(pkg-config --cflags --libs heddle) -o run_model
 *   ./run_model model.onnx
 */
#include <stdio.h>
#include <stdlib.h>

#include "heddle/c_api.h"

static int fail(heddle_error* error) {
  fprintf(stderr, "%s\n", heddle_error_message(error));
  heddle_error_free(error);
  return 1;
}

static void print_output(heddle_port port, const heddle_tensor* tensor) {
  printf("%s:", port.name);
  if (heddle_tensor_dtype(tensor) == HEDDLE_F32) {
    const float* data = heddle_tensor_data(tensor);
    const size_t count = heddle_tensor_bytes(tensor) / sizeof(float);
    for (size_t i = 0; i < count && i < 5; ++i) printf(" %g", data[i]);
  }
  printf(" (%zu bytes)\n", heddle_tensor_bytes(tensor));
}

static int run(const heddle_model* model) {
  const size_t inputs = heddle_model_input_count(model), outputs = heddle_model_output_count(model);
  const char** names = calloc(inputs + 1, sizeof *names);
  heddle_tensor** in = calloc(inputs + 1, sizeof *in);
  heddle_tensor** out = calloc(outputs + 1, sizeof *out);
  heddle_error* error = NULL;
  for (size_t i = 0; i < inputs && error == NULL; ++i) {
    const heddle_port port = heddle_model_input(model, i);
    names[i] = port.name;
    in[i] = heddle_tensor_new(port.dtype, port.shape, port.rank, NULL, &error);
  }
  if (error == NULL && heddle_model_run(model, names, (const heddle_tensor* const*)in, inputs, out, &error)) {
    for (size_t i = 0; i < outputs; ++i) print_output(heddle_model_output(model, i), out[i]);
  }
  for (size_t i = 0; i < inputs; ++i) heddle_tensor_free(in[i]);
  for (size_t i = 0; i < outputs; ++i) heddle_tensor_free(out[i]);
  free(names);
  free(in);
  free(out);
  return error == NULL ? 0 : fail(error);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s MODEL\n", argv[0]);
    return 2;
  }
  heddle_error* error = NULL;
  heddle_model* model = heddle_model_load(argv[1], NULL, &error);
  if (model == NULL) return fail(error);
  const int status = run(model);
  heddle_model_free(model);
  return status;
}
