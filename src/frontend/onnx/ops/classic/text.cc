#include <algorithm>
#include <array>
#include <map>
#include <regex>
#include <set>

#include "frontend/onnx/lowering/op_helpers.h"
#include "frontend/onnx/node_context.h"
#include "frontend/onnx/op_registry.h"

// Text is constant at import, so its operators are computed here; only numbers that they make reach the graph.
namespace heddle::onnx {
namespace {

const Tensor& text_input(const NodeContext& ctx, size_t i) {
  if (ctx.value(i).kind() != Value::Kind::kStrings) {
    ctx.fail(ErrorCode::kUnsupportedType, fmt::format("input {} must be text", i));
  }
  return ctx.value(i).text();
}

// Flat index of the element that a broadcast tensor shows at flat index `at` of `to`.
int64_t broadcast_index(int64_t at, const Shape& to, const Shape& from) {
  int64_t index = 0, stride = 1;
  for (size_t d = 0; d < to.size(); ++d) {  // from the last dimension
    const int64_t extent = to[to.size() - 1 - d];
    const int64_t position = at % extent;
    at /= extent;
    if (d >= from.size()) break;
    const int64_t own = from[from.size() - 1 - d];
    if (own != 1) index += position * stride;
    stride *= own;
  }
  return index;
}

void lower_string_concat(NodeContext& ctx) {
  const Tensor &x = text_input(ctx, 0), &y = text_input(ctx, 1);
  const Shape shape = ir::broadcast_shapes(x.shape(), y.shape());
  std::vector<std::string> values;
  for (int64_t i = 0; i < element_count(shape); ++i) {
    values.push_back(x.strings()[static_cast<size_t>(broadcast_index(i, shape, x.shape()))] +
                     y.strings()[static_cast<size_t>(broadcast_index(i, shape, y.shape()))]);
  }
  ctx.set(0, Value::strings(Tensor::of_strings(shape, std::move(values))));
}

// Parts between delimiters, at most `most` splits (< 0: any); an empty delimiter stands for runs of white space.
std::vector<std::string> split(const std::string& text, const std::string& delimiter, int64_t most) {
  constexpr const char* kSpace = " \t\n\r\f\v";
  std::vector<std::string> parts;
  size_t at = delimiter.empty() ? text.find_first_not_of(kSpace) : 0;
  while (at != std::string::npos) {
    const bool last = most >= 0 && static_cast<int64_t>(parts.size()) == most;
    const size_t end = last                ? std::string::npos
                       : delimiter.empty() ? text.find_first_of(kSpace, at)
                                           : text.find(delimiter, at);
    parts.push_back(text.substr(at, end == std::string::npos ? end : end - at));
    if (end == std::string::npos) break;
    at = delimiter.empty() ? text.find_first_not_of(kSpace, end) : end + delimiter.size();
  }
  return parts;
}

void lower_string_split(NodeContext& ctx) {
  const Tensor& x = text_input(ctx, 0);
  const std::string delimiter = ctx.attr_string("delimiter", "");
  const int64_t most = ctx.has_attr("maxsplit") ? ctx.attr_int("maxsplit") : -1;
  std::vector<std::vector<std::string>> rows;
  Ints counts;
  size_t widest = 0;
  for (const std::string& text : x.strings()) {
    rows.push_back(split(text, delimiter, most));
    counts.push_back(static_cast<int64_t>(rows.back().size()));
    widest = std::max(widest, rows.back().size());
  }
  std::vector<std::string> values;
  for (auto& row : rows) {
    row.resize(widest);
    values.insert(values.end(), row.begin(), row.end());
  }
  Shape shape = x.shape();
  if (ctx.wants(1)) ctx.set(1, int_constant(ctx.b, shape, counts));
  shape.push_back(static_cast<int64_t>(widest));
  if (ctx.wants(0)) ctx.set(0, Value::strings(Tensor::of_strings(std::move(shape), std::move(values))));
}

// Letters of ASCII only; the locale of the node plays no part.
std::string fold_case(std::string text, bool upper) {
  for (char& c : text) {
    if (upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z') c = static_cast<char>(c ^ 0x20);
  }
  return text;
}

void lower_normalize(NodeContext& ctx) {
  const Tensor& x = text_input(ctx, 0);
  const bool one_row = x.rank() == 2 && x.shape()[0] == 1;
  if (x.rank() != 1 && !one_row) ctx.invalid("text of shape [C] or [1,C] expected");
  const std::string action = ctx.attr_string("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER") ctx.invalid("case_change_action is " + action);
  const bool sensitive = ctx.attr_int("is_case_sensitive", 0) != 0;
  std::set<std::string> stopwords;
  for (const std::string& word : ctx.attr_strings("stopwords")) {
    stopwords.insert(sensitive ? word : fold_case(word, false));
  }
  std::vector<std::string> kept;
  for (const std::string& word : x.strings()) {
    if (stopwords.contains(sensitive ? word : fold_case(word, false))) continue;
    kept.push_back(action == "NONE" ? word : fold_case(word, action == "UPPER"));
  }
  if (kept.empty()) kept.emplace_back();
  const auto count = static_cast<int64_t>(kept.size());
  ctx.set(0, Value::strings(Tensor::of_strings(one_row ? Shape{1, count} : Shape{count}, std::move(kept))));
}

void lower_regex(NodeContext& ctx) {
  constexpr size_t kLongest = 4096;  // the matcher recurses over its text
  const Tensor& x = text_input(ctx, 0);
  const std::string pattern = ctx.attr_string("pattern");
  std::vector<uint8_t> matches;
  try {
    const std::regex regex(pattern, std::regex::ECMAScript);
    for (const std::string& text : x.strings()) {
      if (text.size() > kLongest) ctx.unsupported(fmt::format("text of more than {} bytes", kLongest));
      matches.push_back(std::regex_match(text, regex));
    }
  } catch (const std::regex_error& error) {
    ctx.unsupported(fmt::format("the pattern \"{}\" is not understood: {}", pattern, error.what()));
  }
  ctx.set(0, ctx.b.constant(Tensor::of<uint8_t>(DType::kBool, x.shape(), std::span<const uint8_t>(matches))));
}

// The n-grams of a TfIdfVectorizer by length: sequence of items -> position in the pool.
template <typename T>
using GramPool = std::vector<std::map<std::vector<T>, size_t>>;

template <typename T>
GramPool<T> read_pool(const NodeContext& ctx, const std::vector<T>& items, size_t grams) {
  const Ints starts = ctx.attr_ints("ngram_counts");
  GramPool<T> pool(starts.size() + 1);
  size_t position = 0;
  for (size_t n = 1; n <= starts.size(); ++n) {
    const int64_t end = n < starts.size() ? starts[n] : static_cast<int64_t>(items.size());
    if (starts[n - 1] < 0 || end < starts[n - 1] || end > static_cast<int64_t>(items.size()) ||
        (end - starts[n - 1]) % static_cast<int64_t>(n) != 0) {
      ctx.invalid("ngram_counts does not divide the pool");
    }
    for (auto at = items.begin() + starts[n - 1]; at != items.begin() + end; at += static_cast<int64_t>(n)) {
      pool[n].emplace(std::vector<T>(at, at + static_cast<int64_t>(n)), position++);
    }
  }
  if (position != grams) ctx.invalid(fmt::format("the pool holds {} n-grams, ngram_indexes {}", position, grams));
  return pool;
}

template <typename T>
std::vector<double> count_grams(const NodeContext& ctx, const GramPool<T>& pool, std::span<const T> row, size_t width,
                                const Ints& columns, std::vector<double> weights) {
  const int64_t least = ctx.attr_int("min_gram_length"), most = ctx.attr_int("max_gram_length");
  const int64_t skips = ctx.attr_int("max_skip_count");
  const std::string mode = ctx.attr_string("mode");
  const auto size = static_cast<int64_t>(row.size());
  std::vector<double> counts(columns.size());
  for (int64_t n = std::max<int64_t>(1, least); n <= std::min(most, static_cast<int64_t>(pool.size()) - 1); ++n) {
    for (int64_t distance = 1; distance <= (n == 1 ? 1 : std::min(skips, size) + 1); ++distance) {
      for (int64_t start = 0; start + (n - 1) * distance < size; ++start) {
        std::vector<T> gram;
        for (int64_t i = 0; i < n; ++i) gram.push_back(row[static_cast<size_t>(start + i * distance)]);
        const auto at = pool[static_cast<size_t>(n)].find(gram);
        if (at != pool[static_cast<size_t>(n)].end()) ++counts[at->second];
      }
    }
  }
  std::vector<double> result(width);
  for (size_t i = 0; i < counts.size(); ++i) {
    double value = mode == "IDF" ? std::min(counts[i], 1.0) : counts[i];
    if (mode != "TF" && !weights.empty()) value *= weights[i];
    result[static_cast<size_t>(columns[i])] += value;
  }
  return result;
}

template <typename T>
void vectorize(NodeContext& ctx, const std::vector<T>& items, std::span<const T> values, const Shape& shape) {
  const Ints columns = ctx.attr_ints("ngram_indexes");
  const std::vector<double> weights = ctx.attr_floats("weights");
  const std::string mode = ctx.attr_string("mode");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") ctx.invalid("mode is " + mode);
  if (columns.empty() || (!weights.empty() && weights.size() != columns.size())) {
    ctx.invalid("ngram_indexes is empty or differs from weights in length");
  }
  if (shape.size() != 1 && shape.size() != 2) ctx.invalid("an input of rank 1 or 2 expected");
  constexpr int64_t kWidest = 1 << 24;
  if (*std::min_element(columns.begin(), columns.end()) < 0 ||
      *std::max_element(columns.begin(), columns.end()) >= kWidest) {
    ctx.invalid("an index of ngram_indexes is out of range");
  }
  const auto width = static_cast<size_t>(*std::max_element(columns.begin(), columns.end()) + 1);
  const GramPool<T> pool = read_pool<T>(ctx, items, columns.size());
  const int64_t rows = shape.size() == 2 ? shape[0] : 1;
  const auto length = static_cast<size_t>(shape.back());
  std::vector<double> out;
  for (int64_t r = 0; r < rows; ++r) {
    const auto row = values.subspan(static_cast<size_t>(r) * length, length);
    const auto counts = count_grams<T>(ctx, pool, row, width, columns, weights);
    out.insert(out.end(), counts.begin(), counts.end());
  }
  Shape to = {static_cast<int64_t>(width)};
  if (shape.size() == 2) to.insert(to.begin(), rows);
  ctx.set(0, real_constant(ctx.b, DType::kF32, std::move(to), std::move(out)));
}

void lower_tf_idf(NodeContext& ctx) {
  if (ctx.has_attr("pool_strings")) {
    const Tensor& x = text_input(ctx, 0);
    vectorize<std::string>(ctx, ctx.attr_strings("pool_strings"), x.strings(), x.shape());
    return;
  }
  const Ints values = ctx.constant_ints(0);
  vectorize<int64_t>(ctx, ctx.attr_ints("pool_int64s"), values, ctx.shape(0));
}

}  // namespace

std::span<const OpHandler> text_ops() {
  static constexpr std::array kTable = {
      OpHandler{"", "RegexFullMatch", 20, kAnyVersion, lower_regex},
      OpHandler{"", "StringConcat", 20, kAnyVersion, lower_string_concat},
      OpHandler{"", "StringNormalizer", 10, kAnyVersion, lower_normalize},
      OpHandler{"", "StringSplit", 20, kAnyVersion, lower_string_split},
      OpHandler{"", "TfIdfVectorizer", 9, kAnyVersion, lower_tf_idf},
  };
  return kTable;
}

}  // namespace heddle::onnx
