#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "heddle/tensor.h"

namespace heddle::ir {

class Graph;
using Ints = std::vector<int64_t>;
using Attr = std::variant<int64_t, double, std::string, Ints, DType, Tensor, std::shared_ptr<const Graph>>;

// The named attributes of a node, in alphabetical order. Typed getters throw kInternal if the attribute is missing or
// of another kind. That is a bug in Heddle, since schemas are checked when a node is made. Copy-on-write: copies share
// their attributes until one copy is modified, because passes copy most nodes unchanged.
class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string, Attr>> items);

  void set(std::string name, Attr value);
  const Attr* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }

  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  const Ints& ints(std::string_view name) const;
  DType dtype(std::string_view name) const;
  const Tensor& tensor(std::string_view name) const;
  const Graph& graph(std::string_view name) const;
  bool flag(std::string_view name) const { return integer(name) != 0; }

  auto begin() const { return items().begin(); }
  auto end() const { return items().end(); }
  bool empty() const { return items().empty(); }

 private:
  using Items = std::vector<std::pair<std::string, Attr>>;
  const Items& items() const;

  std::shared_ptr<Items> items_;  // null if there are no attributes
};

}  // namespace heddle::ir
