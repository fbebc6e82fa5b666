#include "corpus.h"

namespace heddle::hostile {
namespace {

using onnx::testing::external_tensor;
using onnx::testing::kFloat;
using onnx::testing::kInt64;
using onnx::testing::ModelWriter;
using onnx::testing::pbf_writer;
using onnx::testing::raw_tensor;

constexpr auto kMissing = ErrorCode::kMissingData;

// y = x + w with this initialiser.
std::string model_with(const std::string& w) {
  return one_node("Add", {"x", "w"}, {2}, {}, {w}).bytes();
}

std::string with_dims(const Shape& dims) {
  return model_with(raw_tensor<float>("w", kFloat, dims, {1}));
}

std::string with_type(int type) {
  return model_with(raw_tensor<float>("w", type, {2}, {1, 2}));
}

std::string with_data(const std::vector<std::pair<std::string, std::string>>& where) {
  return model_with(external_tensor(where));
}

std::string no_values() {
  std::string w;
  pbf_writer writer(w);
  writer.add_int64(1, 2);
  writer.add_int32(2, kFloat);
  writer.add_string(8, "w");
  return model_with(w);
}

std::string values_in_the_wrong_field() {
  std::string w;
  pbf_writer writer(w);
  writer.add_int64(1, 2);
  writer.add_int32(2, kFloat);
  writer.add_int64(7, 1);
  writer.add_int64(7, 2);
  writer.add_string(8, "w");
  return model_with(w);
}

std::string segmented() {
  std::string w, segment;
  pbf_writer(segment).add_int64(1, 0);
  pbf_writer writer(w);
  writer.add_message(3, segment);
  return model_with(w);
}

std::string sparse(const Shape& dims, const std::vector<int64_t>& indices, size_t values) {
  ModelWriter m = one_node("Add", {"x", "s"}, {2});
  std::string tensor, attribute;
  pbf_writer writer(tensor);
  writer.add_message(1, raw_tensor<float>("s", kFloat, {static_cast<int64_t>(values)}, std::vector<float>(values)));
  writer.add_message(2, longs("i", indices));
  for (const int64_t d : dims) writer.add_int64(3, d);
  pbf_writer a(attribute);
  a.add_string(1, "sparse_value");
  a.add_enum(20, 11);
  a.add_message(22, tensor);
  m.nodes.insert(m.nodes.begin(), {"Constant", {}, {"s"}, {attribute}, "c", ""});
  return m.bytes();
}

void add_types_of_tensors(Corpus& corpus) {
  for (const int type : {0, -1, 27, 99, 1 << 30}) {
    corpus.push_back(
        {"tensor/type-" + std::to_string(type), [type] { return with_type(type); }, kMalformed, "no element type"});
  }
  for (const int type : {14, 15}) {
    corpus.push_back({"tensor/complex-" + std::to_string(type), [type] { return with_type(type); },
                      ErrorCode::kUnsupportedType, "complex"});
  }
  corpus.push_back(
      {"tensor/text-without-text", [] { return with_type(onnx::testing::kString); }, kMalformed, "strings"});
}

void add_locations(Corpus& corpus) {
  const std::vector<std::pair<std::string, std::string>> outside = {
      {"parent", "../w.bin"},
      {"absolute", "/etc/passwd"},
      {"down-and-up", "a/../../w.bin"},
      {"parent-alone", ".."},
      {"empty", ""},
      {"nul", std::string("w.bin\0/x", 8)},
      {"ends-in-a-parent", "a/b/.."},
  };
  for (const auto& [name, location] : outside) {
    corpus.push_back({"data/" + name,
                      [location = location] {
                        return with_data({{"location", location}});
                      },
                      kMissing, name == "nul" ? "" : "not below the model's folder"});
  }
}

void add_links(Corpus& corpus) {
  const std::string eight(8, '\0');
  corpus.push_back({"data/link",
                    [] {
                      return with_data({{"location", "w.bin"}});
                    },
                    kMissing,
                    "symbolic link",
                    {{"w.bin", "-> /etc/passwd"}}});
  corpus.push_back({"data/link-to-a-folder",
                    [] {
                      return with_data({{"location", "d/passwd"}});
                    },
                    kMissing,
                    "symbolic link",
                    {{"d", "-> /etc"}}});
  corpus.push_back({"data/link-to-itself",
                    [] {
                      return with_data({{"location", "w.bin"}});
                    },
                    kMissing,
                    "symbolic link",
                    {{"w.bin", "-> w.bin"}}});
  corpus.push_back({"data/link-to-a-device",
                    [] {
                      return with_data({{"location", "w.bin"}});
                    },
                    kMissing,
                    "symbolic link",
                    {{"w.bin", "-> /dev/zero"}}});
  corpus.push_back({"data/folder",
                    [] {
                      return with_data({{"location", "d"}});
                    },
                    kMissing,
                    "not a regular file",
                    {{"d/file", ""}}});
  corpus.push_back({"data/file-as-folder",
                    [] {
                      return with_data({{"location", "f/w.bin"}});
                    },
                    kMissing,
                    "opening",
                    {{"f", eight}}});
}

void add_ranges(Corpus& corpus) {
  const std::string eight(8, '\0');
  corpus.push_back({"data/missing", [] { return with_data({{"location", "none.bin"}}); }, kMissing, "none.bin"});
  corpus.push_back({"data/no-location", [] { return with_data({{"offset", "0"}}); }, kMissing, "not below"});
  corpus.push_back({"data/long-name",
                    [] {
                      return with_data({{"location", std::string(100'000, 'a')}});
                    },
                    kMissing, "opening"});
  corpus.push_back({"data/right",
                    [] {
                      return with_data({{"location", "w.bin"}});
                    },
                    std::nullopt,
                    "",
                    {{"w.bin", eight}}});
  corpus.push_back({"data/too-short",
                    [] {
                      return with_data({{"location", "w.bin"}});
                    },
                    kMissing,
                    "truncated",
                    {{"w.bin", "1234"}}});
  corpus.push_back({"data/offset-beyond-the-end",
                    [] {
                      return with_data({{"location", "w.bin"}, {"offset", "9"}});
                    },
                    kMissing,
                    "truncated",
                    {{"w.bin", eight}}});
  corpus.push_back({"data/offset-that-overflows",
                    [] {
                      return with_data({{"location", "w.bin"}, {"offset", "18446744073709551615"}});
                    },
                    kMissing,
                    "truncated",
                    {{"w.bin", eight}}});
  corpus.push_back({"data/offset-of-65-bits",
                    [] {
                      return with_data({{"location", "w.bin"}, {"offset", "18446744073709551616"}});
                    },
                    kMalformed,
                    "not a number",
                    {{"w.bin", eight}}});
  corpus.push_back({"data/offset-is-negative",
                    [] {
                      return with_data({{"location", "w.bin"}, {"offset", "-8"}});
                    },
                    kMalformed,
                    "not a number",
                    {{"w.bin", eight}}});
  corpus.push_back({"data/length-that-overflows",
                    [] {
                      return with_data({{"location", "w.bin"}, {"offset", "1"}, {"length", "18446744073709551615"}});
                    },
                    kMissing,
                    "truncated",
                    {{"w.bin", eight}}});
  corpus.push_back({"data/length-of-another-shape",
                    [] {
                      return with_data({{"location", "w.bin"}, {"length", "4"}});
                    },
                    kMalformed,
                    "4 bytes of data",
                    {{"w.bin", eight}}});
  corpus.push_back({"data/empty-file",
                    [] {
                      return with_data({{"location", "w.bin"}});
                    },
                    kMissing,
                    "truncated",
                    {{"w.bin", ""}}});
}

}  // namespace

Corpus tensor_models() {
  constexpr int64_t kHuge = int64_t{1} << 62;
  Corpus corpus = {
      {"tensor/negative-extent", [] { return with_dims({-3}); }, kMalformed, "negative"},
      {"tensor/smallest-extent", [] { return with_dims({INT64_MIN}); }, kMalformed, "negative"},
      {"tensor/product-overflows",
       [] {
         return with_dims({kHuge, kHuge});
       },
       kMalformed, "overflows"},
      {"tensor/product-is-64-bits",
       [] {
         return with_dims({int64_t{1} << 32, int64_t{1} << 32});
       },
       kMalformed, "overflows"},
      {"tensor/zero-times-huge",
       [] {
         return with_dims({0, kHuge, kHuge});
       },
       kMalformed, ""},
      {"tensor/too-few-bytes", [] { return with_dims({3}); }, kMalformed, "4 bytes of data"},
      {"tensor/too-many-bytes", [] { return with_dims({0}); }, kMalformed, "4 bytes of data"},
      {"tensor/many-dimensions", [] { return with_dims(Shape(100'000, 1)); }, std::nullopt, ""},
      {"tensor/no-values", no_values, kMissing, "0 values"},
      {"tensor/values-in-the-wrong-field", values_in_the_wrong_field, kMissing, "0 values"},
      {"tensor/segments", segmented, kMalformed, "segments"},
      {"tensor/sparse", [] { return sparse({2}, {1}, 1); }, std::nullopt, ""},
      {"tensor/sparse-index-outside", [] { return sparse({2}, {2}, 1); }, kMalformed, "outside"},
      {"tensor/sparse-index-negative", [] { return sparse({2}, {-1}, 1); }, kMalformed, "outside"},
      {"tensor/sparse-too-few-indices", [] { return sparse({2}, {1}, 2); }, kMalformed, "indices"},
      {"tensor/sparse-that-expands",
       [] {
         return sparse({int64_t{1} << 29, 1}, {1}, 1);
       },
       ErrorCode::kLimit, "bytes"},
      {"tensor/sparse-that-overflows",
       [] {
         return sparse({kHuge, kHuge}, {1}, 1);
       },
       kMalformed, "overflows"},
  };
  add_types_of_tensors(corpus);
  add_locations(corpus);
  add_links(corpus);
  add_ranges(corpus);
  return corpus;
}

}  // namespace heddle::hostile
