#include "frontend/onnx/reader/proto.h"

#include <algorithm>
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
  std::string_view text(pbf_reader& r) const {
    expect(r, pbf_wire_type::length_delimited);
    const auto view = r.get_view();
    return {view.data(), view.size()};
  }
  pbf_reader message(pbf_reader& r) const {
    expect(r, pbf_wire_type::length_delimited);
    budget.take_bytes(kMessageBytes, where);
    budget.check_time(where);
    return r.get_message();
  }
  int64_t varint(pbf_reader& r) const {
    expect(r, pbf_wire_type::varint);
    return r.get_int64();
  }
  float real(pbf_reader& r) const {
    expect(r, pbf_wire_type::fixed32);
    return r.get_float();
  }

  // Repeated numbers come packed or one by one.
  template <typename T>
  void varints(pbf_reader& r, std::vector<T>& out) const {
    if (r.wire_type() == pbf_wire_type::length_delimited) {
      const auto view = r.get_view();
      const char *at = view.data(), *const end = at + view.size();
      const auto count = std::count_if(at, end, [](char c) { return (c & 0x80) == 0; });
      budget.take_bytes(static_cast<uint64_t>(count) * sizeof(T), where);
      out.reserve(out.size() + static_cast<size_t>(count));
      while (at != end) out.push_back(static_cast<T>(protozero::decode_varint(&at, end)));
    } else {
      out.push_back(static_cast<T>(varint(r)));
    }
  }
  void reals(pbf_reader& r, std::vector<float>& out) const {
    if (r.wire_type() == pbf_wire_type::length_delimited) {
      const auto range = r.get_packed_float();
      out.insert(out.end(), range.begin(), range.end());
    } else {
      out.push_back(real(r));
    }
  }
  void doubles(pbf_reader& r, std::vector<double>& out) const {
    if (r.wire_type() == pbf_wire_type::length_delimited) {
      const auto range = r.get_packed_double();
      out.insert(out.end(), range.begin(), range.end());
    } else {
      expect(r, pbf_wire_type::fixed64);
      out.push_back(r.get_double());
    }
  }

  int deeper(int depth) const {
    budget.check_depth(depth + 1, where);
    return depth + 1;
  }

  std::pair<std::string_view, std::string_view> entry(pbf_reader r) const;
  TensorProto tensor(pbf_reader r) const;
  SparseTensorProto sparse(pbf_reader r) const;
  std::vector<Dimension> shape(pbf_reader r) const;
  TypeProto type(pbf_reader r, int depth) const;
  void tensor_type(pbf_reader r, TypeProto& out) const;
  ValueInfoProto value_info(pbf_reader r) const;
  AttributeProto attribute(pbf_reader r, int depth) const;
  NodeProto node(pbf_reader r, int depth) const;
  GraphProto graph(pbf_reader r, int depth) const;
  OperatorSet opset(pbf_reader r) const;
  FunctionProto function(pbf_reader r) const;
  ModelProto model(pbf_reader r) const;
};

std::pair<std::string_view, std::string_view> Decoder::entry(pbf_reader r) const {
  std::pair<std::string_view, std::string_view> out;
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        out.first = text(r);
        break;
      case 2:
        out.second = text(r);
        break;
      default:
        r.skip();
    }
  }
  return out;
}

TensorProto Decoder::tensor(pbf_reader r) const {
  TensorProto out;
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        varints(r, out.dims);
        break;
      case 2:
        out.data_type = static_cast<int32_t>(varint(r));
        break;
      case 3:
        malformed("a tensor is split into segments, which no ONNX writer does");
      case 4:
        reals(r, out.float_data);
        break;
      case 5:
        varints(r, out.int32_data);
        break;
      case 6:
        out.string_data.push_back(text(r));
        break;
      case 7:
        varints(r, out.int64_data);
        break;
      case 8:
        out.name = text(r);
        break;
      case 9:
        out.raw_data = text(r);
        break;
      case 10:
        doubles(r, out.double_data);
        break;
      case 11:
        varints(r, out.uint64_data);
        break;
      case 13:
        out.external_data.push_back(entry(message(r)));
        break;
      case 14:
        out.external = varint(r) == 1;
        break;
      default:
        r.skip();
    }
  }
  return out;
}

SparseTensorProto Decoder::sparse(pbf_reader r) const {
  SparseTensorProto out;
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        out.values = tensor(message(r));
        break;
      case 2:
        out.indices = tensor(message(r));
        break;
      case 3:
        varints(r, out.dims);
        break;
      default:
        r.skip();
    }
  }
  return out;
}

std::vector<Dimension> Decoder::shape(pbf_reader r) const {
  std::vector<Dimension> out;
  while (r.next()) {
    if (r.tag() != 1) {
      r.skip();
      continue;
    }
    Dimension dim;
    pbf_reader d = message(r);
    while (d.next()) {
      if (d.tag() == 1) {
        dim.value = varint(d);
      } else if (d.tag() == 2) {
        dim.param = text(d);
      } else {
        d.skip();
      }
    }
    out.push_back(normalised(dim));
  }
  return out;
}

void Decoder::tensor_type(pbf_reader r, TypeProto& out) const {
  while (r.next()) {
    if (r.tag() == 1) {
      out.elem_type = static_cast<int32_t>(varint(r));
    } else if (r.tag() == 2) {
      out.shape = shape(message(r));
    } else {
      r.skip();
    }
  }
}

TypeProto Decoder::type(pbf_reader r, int depth) const {
  using Kind = TypeProto::Kind;
  TypeProto out;
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        out.kind = Kind::kTensor;
        tensor_type(message(r), out);
        break;
      case 8:
        out.kind = Kind::kSparse;
        tensor_type(message(r), out);
        break;
      case 5:
        out.kind = Kind::kMap;
        r.skip();
        break;
      case 4:
      case 9: {
        out.kind = r.tag() == 4 ? Kind::kSequence : Kind::kOptional;
        pbf_reader inner = message(r);
        while (inner.next()) {
          if (inner.tag() == 1) {
            out.element = std::make_shared<TypeProto>(type(message(inner), deeper(depth)));
          } else {
            inner.skip();
          }
        }
        break;
      }
      default:
        r.skip();
    }
  }
  return out;
}

ValueInfoProto Decoder::value_info(pbf_reader r) const {
  ValueInfoProto out;
  while (r.next()) {
    if (r.tag() == 1) {
      out.name = text(r);
    } else if (r.tag() == 2) {
      out.type = type(message(r), 0);
    } else {
      r.skip();
    }
  }
  return out;
}

// Files older than the type field, and some writers, leave it out; the field that is present then tells.
AttributeProto::Type guess_type(const AttributeProto& a, int last_tag) {
  using Type = AttributeProto::Type;
  if (a.type != Type::kUndefined) return a.type;
  switch (last_tag) {
    case 2:
      return Type::kFloat;
    case 3:
      return Type::kInt;
    case 4:
      return Type::kString;
    case 5:
      return Type::kTensor;
    case 6:
      return Type::kGraph;
    case 7:
      return Type::kFloats;
    case 8:
      return Type::kInts;
    case 9:
      return Type::kStrings;
    default:
      return Type::kUndefined;
  }
}

AttributeProto Decoder::attribute(pbf_reader r, int depth) const {
  AttributeProto out;
  int last_tag = 0;
  while (r.next()) {
    const int tag = static_cast<int>(r.tag());
    if (tag >= 2 && tag <= 9) last_tag = tag;
    switch (tag) {
      case 1:
        out.name = text(r);
        break;
      case 2:
        out.f = real(r);
        break;
      case 3:
        out.i = varint(r);
        break;
      case 4:
        out.s = text(r);
        break;
      case 5:
        out.t = std::make_shared<TensorProto>(tensor(message(r)));
        break;
      case 6:
        out.g = std::make_shared<GraphProto>(graph(message(r), deeper(depth)));
        break;
      case 7:
        reals(r, out.floats);
        break;
      case 8:
        varints(r, out.ints);
        break;
      case 9:
        out.strings.push_back(text(r));
        break;
      case 14:
        out.tp = std::make_shared<TypeProto>(type(message(r), 0));
        break;
      case 20: {
        const int64_t type = varint(r);
        if (type < 0 || type > 14) malformed(fmt::format("attribute {} has the unknown type {}", out.name, type));
        out.type = static_cast<AttributeProto::Type>(type);
        break;
      }
      case 21:
        out.ref_attr_name = text(r);
        break;
      case 22:
        out.sparse = std::make_shared<SparseTensorProto>(sparse(message(r)));
        break;
      default:
        r.skip();
    }
  }
  out.type = guess_type(out, last_tag);
  return out;
}

NodeProto Decoder::node(pbf_reader r, int depth) const {
  NodeProto out;
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        out.inputs.push_back(text(r));
        break;
      case 2:
        out.outputs.push_back(text(r));
        break;
      case 3:
        out.name = text(r);
        break;
      case 4:
        out.op_type = text(r);
        break;
      case 5:
        out.attributes.push_back(attribute(message(r), depth));
        break;
      case 7:
        out.domain = canonical_domain(text(r));
        break;
      case 8:
        out.overload = text(r);
        break;
      default:
        r.skip();
    }
  }
  return out;
}

GraphProto Decoder::graph(pbf_reader r, int depth) const {
  GraphProto out;
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        out.nodes.push_back(node(message(r), depth));
        break;
      case 2:
        out.name = text(r);
        break;
      case 5:
        out.initializers.push_back(tensor(message(r)));
        break;
      case 11:
        out.inputs.push_back(value_info(message(r)));
        break;
      case 12:
        out.outputs.push_back(value_info(message(r)));
        break;
      case 13:
        out.value_infos.push_back(value_info(message(r)));
        break;
      case 15:
        out.sparse_initializers.push_back(sparse(message(r)));
        break;
      default:
        r.skip();
    }
  }
  return out;
}

OperatorSet Decoder::opset(pbf_reader r) const {
  OperatorSet out;
  while (r.next()) {
    if (r.tag() == 1) {
      out.domain = canonical_domain(text(r));
    } else if (r.tag() == 2) {
      out.version = varint(r);
    } else {
      r.skip();
    }
  }
  return out;
}

FunctionProto Decoder::function(pbf_reader r) const {
  FunctionProto out;
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        out.name = text(r);
        break;
      case 4:
        out.inputs.push_back(text(r));
        break;
      case 5:
        out.outputs.push_back(text(r));
        break;
      case 6:
        out.attributes.push_back(text(r));
        break;
      case 7:
        out.nodes.push_back(node(message(r), 0));
        break;
      case 9:
        out.opset_imports.push_back(opset(message(r)));
        break;
      case 10:
        out.domain = canonical_domain(text(r));
        break;
      case 11:
        out.attribute_defaults.push_back(attribute(message(r), 0));
        break;
      case 13:
        out.overload = text(r);
        break;
      default:
        r.skip();
    }
  }
  return out;
}

ModelProto Decoder::model(pbf_reader r) const {
  ModelProto out;
  bool has_graph = false;
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        out.ir_version = varint(r);
        break;
      case 7:
        out.graph = graph(message(r), 0);
        has_graph = true;
        break;
      case 8:
        out.opset_imports.push_back(opset(message(r)));
        break;
      case 25:
        out.functions.push_back(function(message(r)));
        break;
      default:
        r.skip();
    }
  }
  if (!has_graph) malformed("the file holds no graph");
  return out;
}

// Runs a decoding function; what protozero throws becomes our error.
template <typename Result>
Result decode(std::string_view bytes, const Decoder& decoder, Result (Decoder::*read)(pbf_reader) const) {
  try {
    return (decoder.*read)(pbf_reader(bytes.data(), bytes.size()));
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
  ModelProto model = decode(bytes, decoder, &Decoder::model);
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
  return decode(bytes, Decoder{"tensor", budget}, &Decoder::tensor);
}

}  // namespace heddle::onnx
