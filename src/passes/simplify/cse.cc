#include "passes/simplify/cse.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/hash.h"
#include "ir/rewrite.h"

namespace heddle::passes {
namespace {

using ir::Attr;

uint64_t combine(uint64_t hash, uint64_t value) {
  return (hash ^ value) * 0x9e3779b97f4a7c15u + (hash >> 29);
}
uint64_t hash_of(const void* data, size_t bytes) {
  return heddle::hash_bytes(data, bytes).low;
}

struct AttrHash {
  uint64_t operator()(int64_t v) const { return static_cast<uint64_t>(v); }
  uint64_t operator()(double v) const { return hash_of(&v, sizeof v); }
  uint64_t operator()(const std::string& v) const { return hash_of(v.data(), v.size()); }
  uint64_t operator()(const ir::Ints& v) const { return hash_of(v.data(), v.size() * sizeof(int64_t)); }
  uint64_t operator()(DType v) const { return static_cast<uint64_t>(v); }
  uint64_t operator()(const std::shared_ptr<const ir::Graph>& v) const { return reinterpret_cast<uintptr_t>(v.get()); }
  // The beginning decides nearly always; the rest is compared when hashes agree.
  uint64_t operator()(const Tensor& v) const {
    constexpr size_t kMost = 4096;
    const uint64_t shape = hash_of(v.shape().data(), v.shape().size() * sizeof(int64_t));
    if (v.dtype() == DType::kString) return shape;
    return combine(shape, v.size() == 0 ? 0 : hash_of(v.data(), std::min(kMost, v.bytes())));
  }
};

bool equal(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype() == DType::kString) return a.strings() == b.strings();
  return a.data() == b.data() || a.size() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

bool equal(const Attr& a, const Attr& b) {
  if (a.index() != b.index()) return false;
  if (const auto* x = std::get_if<int64_t>(&a)) return *x == std::get<int64_t>(b);
  // Bitwise: 0.0 and -0.0 differ, a NaN equals itself.
  if (const auto* x = std::get_if<double>(&a)) return std::memcmp(x, &std::get<double>(b), sizeof *x) == 0;
  if (const auto* x = std::get_if<std::string>(&a)) return *x == std::get<std::string>(b);
  if (const auto* x = std::get_if<ir::Ints>(&a)) return *x == std::get<ir::Ints>(b);
  if (const auto* x = std::get_if<DType>(&a)) return *x == std::get<DType>(b);
  if (const auto* x = std::get_if<Tensor>(&a)) return equal(*x, std::get<Tensor>(b));
  return std::get<std::shared_ptr<const ir::Graph>>(a) == std::get<std::shared_ptr<const ir::Graph>>(b);
}

bool equal(const Attrs& a, const Attrs& b) {
  auto i = a.begin();
  auto j = b.begin();
  for (; i != a.end() && j != b.end(); ++i, ++j) {
    if (i->first != j->first || !equal(i->second, j->second)) return false;
  }
  return i == a.end() && j == b.end();
}

uint64_t hash(const Node& node, const std::vector<ir::ValueId>& inputs) {
  uint64_t h = static_cast<uint64_t>(node.op);
  for (ir::ValueId v : inputs) h = combine(h, v);
  for (const auto& [name, value] : node.attrs) h = combine(h, std::visit(AttrHash(), value));
  return h;
}

}  // namespace

ir::Graph cse(const ir::Graph& graph, const PassContext&) {
  std::unordered_multimap<uint64_t, NodeId> known;  // nodes of the target
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ir::ValueId>> {
    const std::vector<ir::ValueId> inputs = r(node.inputs);
    const uint64_t h = hash(node, inputs);
    const auto [begin, end] = known.equal_range(h);
    for (auto it = begin; it != end; ++it) {
      const Node& other = r.target().node(it->second);
      if (other.op == node.op && other.inputs == inputs && equal(other.attrs, node.attrs)) return other.outputs;
    }
    const std::vector<ir::ValueId> results = r.copy(node);
    known.emplace(h, r.target().value(results[0]).producer);
    return results;
  });
}

}  // namespace heddle::passes
