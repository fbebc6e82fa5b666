#include "frontend/onnx/reader/proto.h"

#include <algorithm>
#include <concepts>
#include <protozero/pbf_reader.hpp>
#include <protozero/varint.hpp>

#include "base/check.h"
#include "frontend/onnx/reader/budget.h"
#include "frontend/onnx/reader/file_kind.h"

namespace heddle::onnx {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

// What a message takes when it is decoded, whatever its bytes: an empty one has two.
constexpr uint64_t kMessageBytes = std::max({sizeof(NodeProto), sizeof(AttributeProto), sizeof(TensorProto),
                                             sizeof(SparseTensorProto), sizeof(ValueInfoProto), sizeof(FunctionProto)});

// Writers put these for an extent that is not known and has no name; two of them need not be equal.
Dimension normalised(Dimension dim) {
  if (dim.value && *dim.value < 0) dim.value.reset();
  if (dim.param == "?" || dim.param == "-1" || dim.param == "None") dim.param = {};
  return dim;
}

// A field of a message and where it is kept.
template <uint32_t Number, typename T>
struct Field {
  static constexpr uint32_t kNumber = Number;
  T& out;
};
template <uint32_t Number, typename T>
Field<Number, T> at(T& out) {
  return {out};
}

// read() decodes one occurrence of a field by the type that keeps it, body() the fields of a message.
struct Decoder {
  std::string where;
  Budget& budget;

  [[noreturn]] void malformed(std::string why) const {
    fail(ErrorCode::kMalformedModel, where, std::move(why), "Check that the file is a complete ONNX model");
  }

  void expect(const pbf_reader& r, pbf_wire_type type) const {
    if (r.wire_type() != type) {
      malformed(fmt::format("protobuf field {} has wire type {}, {} expected", r.tag(), static_cast<int>(r.wire_type()),
                            static_cast<int>(type)));
    }
  }
  pbf_reader message(pbf_reader& r) const {
    expect(r, pbf_wire_type::length_delimited);
    budget.take_bytes(kMessageBytes, where);
    budget.check_time(where);
    return r.get_message();
  }
  int deeper(int depth) const {
    budget.check_depth(depth + 1, where);
    return depth + 1;
  }

  template <typename... Fields>
  bool read_field(pbf_reader& r, int depth, const Fields&... fields) const {
    return ((r.tag() == Fields::kNumber && (read(r, fields.out, depth), true)) || ...);
  }
  template <typename... Fields>
  void read_fields(pbf_reader r, int depth, const Fields&... fields) const {
    while (r.next()) {
      if (!read_field(r, depth, fields...)) r.skip();
    }
  }

  void read(pbf_reader& r, std::string_view& out, int) const {
    expect(r, pbf_wire_type::length_delimited);
    const auto view = r.get_view();
    out = {view.data(), view.size()};
  }
  void read(pbf_reader& r, int64_t& out, int) const {
    expect(r, pbf_wire_type::varint);
    out = r.get_int64();
  }
  void read(pbf_reader& r, int32_t& out, int depth) const {
    int64_t value = 0;
    read(r, value, depth);
    out = static_cast<int32_t>(value);
  }
  void read(pbf_reader& r, float& out, int) const {
    expect(r, pbf_wire_type::fixed32);
    out = r.get_float();
  }

  // Repeated numbers come packed or one by one.
  template <typename T>
  requires std::integral<T>
  void read(pbf_reader& r, std::vector<T>& out, int depth) const {
    if (r.wire_type() == pbf_wire_type::length_delimited) {
      const auto view = r.get_view();
      const char *from = view.data(), *const end = from + view.size();
      const auto count = std::count_if(from, end, [](char c) { return (c & 0x80) == 0; });
      budget.take_bytes(static_cast<uint64_t>(count) * sizeof(T), where);
      out.reserve(out.size() + static_cast<size_t>(count));
      while (from != end) out.push_back(static_cast<T>(protozero::decode_varint(&from, end)));
    } else {
      int64_t value = 0;
      read(r, value, depth);
      out.push_back(static_cast<T>(value));
    }
  }
  void read(pbf_reader& r, std::vector<float>& out, int depth) const {
    if (r.wire_type() == pbf_wire_type::length_delimited) {
      const auto range = r.get_packed_float();
      out.insert(out.end(), range.begin(), range.end());
    } else {
      read(r, out.emplace_back(), depth);
    }
  }
  void read(pbf_reader& r, std::vector<double>& out, int) const {
    if (r.wire_type() == pbf_wire_type::length_delimited) {
      const auto range = r.get_packed_double();
      out.insert(out.end(), range.begin(), range.end());
    } else {
      expect(r, pbf_wire_type::fixed64);
      out.push_back(r.get_double());
    }
  }

  template <typename T>
  void read(pbf_reader& r, std::vector<T>& out, int depth) const {
    read(r, out.emplace_back(), depth);
  }
  template <typename T>
  void read(pbf_reader& r, std::optional<T>& out, int depth) const {
    read(r, out.emplace(), depth);
  }
  template <typename T>
  void read(pbf_reader& r, std::shared_ptr<T>& out, int depth) const {
    out = std::make_shared<T>();
    read(r, *out, depth);
  }
  // TensorShapeProto is a message of dimensions.
  void read(pbf_reader& r, std::optional<std::vector<Dimension>>& out, int depth) const {
    read_fields(message(r), depth, at<1>(out.emplace()));
  }
  template <typename Message>
  void read(pbf_reader& r, Message& out, int depth) const {
    body(message(r), out, depth);
  }

  void body(pbf_reader r, std::pair<std::string_view, std::string_view>& out, int depth) const {
    read_fields(r, depth, at<1>(out.first), at<2>(out.second));
  }

  void body(pbf_reader r, TensorProto& out, int depth) const {
    std::string_view segment;
    int64_t location = 0;
    read_fields(r, depth, at<1>(out.dims), at<2>(out.data_type), at<3>(segment), at<4>(out.float_data),
                at<5>(out.int32_data), at<6>(out.string_data), at<7>(out.int64_data), at<8>(out.name),
                at<9>(out.raw_data), at<10>(out.double_data), at<11>(out.uint64_data), at<13>(out.external_data),
                at<14>(location));
    if (segment.data() != nullptr) malformed("a tensor is split into segments, which no ONNX writer does");
    out.external = location == 1;
  }

  void body(pbf_reader r, SparseTensorProto& out, int depth) const {
    read_fields(r, depth, at<1>(out.values), at<2>(out.indices), at<3>(out.dims));
  }

  void body(pbf_reader r, Dimension& out, int depth) const {
    read_fields(r, depth, at<1>(out.value), at<2>(out.param));
    out = normalised(out);
  }

  void body(pbf_reader r, TypeProto& out, int depth) const {
    using Kind = TypeProto::Kind;
    while (r.next()) {
      if (r.tag() == 1 || r.tag() == 8) {
        out.kind = r.tag() == 1 ? Kind::kTensor : Kind::kSparse;
        read_fields(message(r), depth, at<1>(out.elem_type), at<2>(out.shape));
      } else if (r.tag() == 4 || r.tag() == 9) {
        out.kind = r.tag() == 4 ? Kind::kSequence : Kind::kOptional;
        read_fields(message(r), deeper(depth), at<1>(out.element));
      } else {
        if (r.tag() == 5) out.kind = Kind::kMap;
        r.skip();
      }
    }
  }

  void body(pbf_reader r, ValueInfoProto& out, int depth) const {
    read_fields(r, depth, at<1>(out.name), at<2>(out.type));
  }

  void body(pbf_reader r, AttributeProto& out, int depth) const {
    using Type = AttributeProto::Type;
    int64_t type = 0;
    uint32_t last = 1;
    while (r.next()) {
      if (r.tag() >= 2 && r.tag() <= 9) last = r.tag();
      if (r.tag() == 6) {
        out.g = std::make_shared<GraphProto>();
        body(message(r), *out.g, deeper(depth));
      } else if (!read_field(r, depth, at<1>(out.name), at<2>(out.f), at<3>(out.i), at<4>(out.s), at<5>(out.t),
                             at<7>(out.floats), at<8>(out.ints), at<9>(out.strings), at<14>(out.tp), at<20>(type),
                             at<21>(out.ref_attr_name), at<22>(out.sparse))) {
        r.skip();
      }
    }
    if (type < 0 || type > 14) malformed(fmt::format("attribute {} has the unknown type {}", out.name, type));
    // Files older than the type field, and some writers, leave it out; the field that is present then tells. Fields 2
    // to 9 are in the order of the types.
    out.type = static_cast<Type>(type != 0 ? type : last - 1);
  }

  void body(pbf_reader r, NodeProto& out, int depth) const {
    read_fields(r, depth, at<1>(out.inputs), at<2>(out.outputs), at<3>(out.name), at<4>(out.op_type),
                at<5>(out.attributes), at<7>(out.domain), at<8>(out.overload));
    out.domain = canonical_domain(out.domain);
  }

  void body(pbf_reader r, GraphProto& out, int depth) const {
    read_fields(r, depth, at<1>(out.nodes), at<2>(out.name), at<5>(out.initializers), at<11>(out.inputs),
                at<12>(out.outputs), at<13>(out.value_infos), at<15>(out.sparse_initializers));
  }

  void body(pbf_reader r, OperatorSet& out, int depth) const {
    read_fields(r, depth, at<1>(out.domain), at<2>(out.version));
    out.domain = canonical_domain(out.domain);
  }

  void body(pbf_reader r, FunctionProto& out, int depth) const {
    read_fields(r, depth, at<1>(out.name), at<4>(out.inputs), at<5>(out.outputs), at<6>(out.attributes),
                at<7>(out.nodes), at<9>(out.opset_imports), at<10>(out.domain), at<11>(out.attribute_defaults),
                at<13>(out.overload));
    out.domain = canonical_domain(out.domain);
  }

  void body(pbf_reader r, ModelProto& out, int depth) const {
    std::optional<GraphProto> graph;
    read_fields(r, depth, at<1>(out.ir_version), at<7>(graph), at<8>(out.opset_imports), at<25>(out.functions));
    if (!graph) malformed("the file holds no graph");
    out.graph = std::move(*graph);
  }
};

// What protozero throws becomes our error.
template <typename Message>
Message decode(std::string_view bytes, const Decoder& decoder) {
  try {
    Message message;
    decoder.body(pbf_reader(bytes.data(), bytes.size()), message, 0);
    return message;
  } catch (const protozero::exception&) {
    decoder.malformed("the bytes are not a protobuf message: not ONNX, or truncated");
  }
}

}  // namespace

std::string_view canonical_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

const AttributeProto* NodeProto::attribute(std::string_view attribute_name) const {
  for (const AttributeProto& a : attributes) {
    if (a.name == attribute_name) return &a;
  }
  return nullptr;
}

ModelProto parse_model(std::string_view bytes, std::shared_ptr<const void> owner, std::string path, Budget& budget) {
  const Decoder decoder{path.empty() ? "model" : path, budget};
  if (bytes.empty()) decoder.malformed("the file is empty");
  if (const auto kind = foreign_kind(bytes)) {
    fail(ErrorCode::kMalformedModel, decoder.where, fmt::format("the file is {}, not an ONNX model", kind->what),
         std::string(kind->remedy));
  }
  if (bytes.size() > UINT32_MAX) {
    decoder.malformed("the file is larger than 4 GB; protobuf stores at most 2 GB, the rest belongs in external data");
  }
  ModelProto model = decode<ModelProto>(bytes, decoder);
  model.owner = std::move(owner);
  model.path = std::move(path);
  return model;
}

ModelProto parse_model(std::string_view bytes, std::shared_ptr<const void> owner, std::string path) {
  Budget budget((ImportLimits()));
  return parse_model(bytes, std::move(owner), std::move(path), budget);
}

TensorProto parse_tensor(std::string_view bytes) {
  Budget budget((ImportLimits()));
  return decode<TensorProto>(bytes, Decoder{"tensor", budget});
}

}  // namespace heddle::onnx
