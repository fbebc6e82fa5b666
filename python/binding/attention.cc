#include "attention.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/string.h>

#include <vector>

#include "base/check.h"
#include "gpu_operand.h"
#include "heddle/ops.h"
#include "interrupt.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

constexpr const char* kAttentionWhere = "heddle.ops.attention";

[[noreturn]] void refuse(const std::string& name, const std::string& why, const std::string& remedy = {}) {
  fail(ErrorCode::kInvalidInput, fmt::format("{}: {}", kAttentionWhere, name), why, remedy);
}

// A call: its operands, from which the problem is read, and what options say.
class AttentionCall {
 public:
  AttentionCall(nb::handle q, const nb::dict& options)
      : options_(options), family_(family_of(q, fmt::format("{}: q", kAttentionWhere))) {
    const nb::object given = option("stream");
    stream_ = stream_of(given);
    q_ = on_gpu(q, "q");
    if (!given.is_none()) return;
    stream_ = family_.current_stream(device_);
    q_ = on_gpu(q, "q");
  }

  nb::object run(nb::handle k, nb::handle v, nb::handle out) {
    const Array keys = on_gpu(k, "k"), values = on_gpu(v, "v");
    const size_t rank = q_.shape.size();
    if (rank != 3 && rank != 4) {
      refuse("q", fmt::format("its shape is {}", to_string(q_.shape)),
             "Give [batch, heads, queries, depth], or [heads, queries, depth]");
    }
    problem_.type = q_.dtype;
    problem_.q = strides(q_, "q"), problem_.k = strides(keys, "k"), problem_.v = strides(values, "v");
    problem_.batch = rank == 4 ? q_.shape[0] : 1;
    problem_.heads = q_.shape[rank - 3], problem_.queries = q_.shape[rank - 2], problem_.depth = q_.shape[rank - 1];
    problem_.kv_heads = keys.shape[rank - 3], problem_.keys = keys.shape[rank - 2];
    problem_.width = values.shape[rank - 1];
    const auto with = [&](int64_t heads, int64_t rows, int64_t row) {
      return rank == 4 ? Shape{problem_.batch, heads, rows, row} : Shape{heads, rows, row};
    };
    const auto of_keys = [&](int64_t elements) {
      Shape shape = with(problem_.kv_heads, keys.shape[rank - 2], elements);
      if (problem_.pages) shape[0] = problem_.pages->pages;
      return shape;
    };
    if (const nb::object table = option("page_table"); !table.is_none()) add_pages(on_gpu(table, "page_table"), keys);
    require_shape(keys, "k", of_keys(problem_.depth));
    require_shape(values, "v", of_keys(problem_.width));
    read_options();
    const Shape shape = with(problem_.heads, problem_.queries, problem_.width);
    const nb::object result = out.is_none() ? family_.empty(problem_.type, shape, device_, stream_) : nb::borrow(out);
    const Array o = on_gpu(result, "out", out.is_none() ? Use::kRead : Use::kWrite);
    require_shape(o, "out", shape);
    problem_.o = strides(o, "out");
    ops::PrepareOptions prepare;
    prepare.device = device_;
    operands_.q = q_.data, operands_.k = keys.data, operands_.v = values.data, operands_.o = o.data;
    interruptible([&] { ops::attention(problem_, operands_, stream_, prepare); });
    return result;
  }

 private:
  nb::object option(const char* name) const {
    return options_.contains(name) ? nb::object(options_[name]) : nb::object(nb::none());
  }
  template <typename T>
  void read(const char* name, T& to) const {
    const nb::object value = option(name);
    if (!value.is_none()) to = nb::cast<T>(value);
  }
  Array on_gpu(nb::handle object, const std::string& name, Use use = Use::kRead) {
    return gpu_operand(object, fmt::format("{}: {}", kAttentionWhere, name), stream_, device_, use);
  }
  ops::AttentionStrides strides(const Array& array, const std::string& name) const {
    if (array.shape.size() != q_.shape.size()) {
      refuse(name, fmt::format("it has {} dimensions, q has {}", array.shape.size(), q_.shape.size()));
    }
    const std::vector<int64_t> s = strides_of(array);
    const size_t rank = s.size();
    // A stride of no row would say that the tensor is dense; that of one row does not matter.
    return {rank == 4 ? s[0] : 0, s[rank - 3],
            array.shape[rank - 2] <= 1 ? std::max<int64_t>(s[rank - 2], 1) : s[rank - 2], s[rank - 1]};
  }
  void require_shape(const Array& array, const std::string& name, const Shape& shape) const {
    if (array.dtype != q_.dtype) {
      refuse(name, fmt::format("it is {}, q is {}", to_string(array.dtype), to_string(q_.dtype)),
             family_.how_to_convert(q_.dtype));
    }
    if (array.shape == shape) return;
    refuse(name, fmt::format("its shape is {}, it has to be {}", to_string(array.shape), to_string(shape)));
  }

  void read_options() {
    read("causal", problem_.causal), read("window", problem_.window), read("soft_cap", problem_.soft_cap);
    if (const nb::object scale = option("scale"); !scale.is_none()) problem_.scale = nb::cast<double>(scale);
    if (const nb::object bias = option("bias"); !bias.is_none()) add_bias(on_gpu(bias, "bias"));
    if (const nb::object sinks = option("sinks"); !sinks.is_none()) {
      problem_.sinks = vector(sinks, "sinks", problem_.heads, operands_.sinks).dtype;
    }
    if (const nb::object lengths = option("lengths"); !lengths.is_none()) {
      const Array array = vector(lengths, "lengths", problem_.batch, operands_.lengths);
      if (array.dtype != DType::kI32) {
        refuse("lengths", fmt::format("they are {}", to_string(array.dtype)), family_.how_to_convert(DType::kI32));
      }
      problem_.lengths = true;
    }
  }
  // The table of a pool of pages, which K is.
  void add_pages(const Array& table, const Array& keys) {
    if (keys.shape.size() != 4) {
      refuse("page_table", fmt::format("q has {} dimensions", q_.shape.size()),
             "Give q with its batch, [batch, heads, queries, depth]");
    }
    if (table.dtype != DType::kI32) {
      refuse("page_table", fmt::format("it is {}", to_string(table.dtype)), family_.how_to_convert(DType::kI32));
    }
    const bool fits = table.shape.size() == 2 && table.shape[0] == problem_.batch && table.shape[1] > 0;
    const std::vector<int64_t> s = strides_of(table);
    if (!fits || (table.shape[1] > 1 && s[1] != 1) || (table.shape[0] > 1 && s[0] < table.shape[1])) {
      refuse("page_table", fmt::format("its shape is {}", to_string(table.shape)),
             fmt::format("Give [{}, pages of a sequence], whose lines are dense", problem_.batch));
    }
    const int64_t page = keys.shape[2];
    problem_.pages = ops::AttentionPages{page, keys.shape[0], table.shape[0] > 1 ? s[0] : table.shape[1]};
    problem_.keys = table.shape[1] * page;
    operands_.page_table = table.data;
  }
  Array vector(nb::handle object, const std::string& name, int64_t count, const void*& address) {
    Array array = on_gpu(object, name);
    if (array.shape != Shape{count} || !array.is_dense()) {
      refuse(name, fmt::format("its shape is {}, it has to be [{}], dense", to_string(array.shape), count));
    }
    address = array.data;
    return array;
  }
  // Its last dimensions are queries and keys; one of 1, or one that is missing in front, is had in common.
  void add_bias(const Array& array) {
    const std::vector<int64_t> s = strides_of(array);
    const int64_t extents[] = {problem_.batch, problem_.heads, problem_.queries, problem_.keys};
    int64_t found[4] = {0, 0, 0, 0};
    const size_t rank = array.shape.size();
    bool fits = rank <= 4;
    for (size_t d = 0; fits && d < rank; ++d) {
      const size_t at = 4 - rank + d;
      fits = array.shape[d] == extents[at] || array.shape[d] == 1;
      if (array.shape[d] != 1) found[at] = s[d];
    }
    if (!fits) {
      refuse("bias", fmt::format("its shape is {}", to_string(array.shape)),
             fmt::format("Give what broadcasts to [{}]", fmt::join(extents, ",")));
    }
    problem_.bias = ops::AttentionBias{array.dtype, found[0], found[1], found[2], found[3]};
    operands_.bias = array.data;
  }

  const nb::dict& options_;
  const Family& family_;
  void* stream_ = nullptr;
  int device_ = kHost;
  Array q_;
  ops::AttentionProblem problem_;
  ops::AttentionOperands operands_;
};

nb::object attention(nb::handle q, nb::handle k, nb::handle v, nb::handle out, const nb::dict& options) {
  return AttentionCall(q, options).run(k, v, out);
}

}  // namespace

void register_attention(nb::module_& module) {
  module.def("attention", &attention, nb::arg("q"), nb::arg("k"), nb::arg("v"), nb::arg("out").none(),
             nb::arg("options"));
}

}  // namespace heddle::python
