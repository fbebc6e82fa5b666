#include "ir/attrs.h"

#include <algorithm>

#include "base/check.h"

namespace heddle::ir {
namespace {

template <typename T>
const T& get(const Attrs& attrs, std::string_view name) {
  const Attr* attr = attrs.find(name);
  HEDDLE_CHECK(attr != nullptr, "attribute {} is missing", name);
  const T* value = std::get_if<T>(attr);
  HEDDLE_CHECK(value != nullptr, "attribute {} is of another kind ({})", name, attr->index());
  return *value;
}

bool before(const std::pair<std::string, Attr>& item, std::string_view name) {
  return item.first < name;
}

}  // namespace

Attrs::Attrs(std::initializer_list<std::pair<std::string, Attr>> items) {
  if (items.size() == 0) return;
  items_ = std::make_shared<Items>();
  items_->reserve(items.size());
  for (const auto& [name, value] : items) set(name, value);
}

const Attrs::Items& Attrs::items() const {
  static const Items none;
  return items_ == nullptr ? none : *items_;
}

void Attrs::set(std::string name, Attr value) {
  if (items_.use_count() != 1) items_ = std::make_shared<Items>(items());
  auto at = std::lower_bound(items_->begin(), items_->end(), std::string_view(name), before);
  if (at != items_->end() && at->first == name) {
    at->second = std::move(value);
  } else {
    items_->insert(at, {std::move(name), std::move(value)});
  }
}

const Attr* Attrs::find(std::string_view name) const {
  const Items& all = items();
  const auto at = std::lower_bound(all.begin(), all.end(), name, before);
  return at != all.end() && at->first == name ? &at->second : nullptr;
}

int64_t Attrs::integer(std::string_view name) const {
  return get<int64_t>(*this, name);
}
double Attrs::real(std::string_view name) const {
  return get<double>(*this, name);
}
const std::string& Attrs::text(std::string_view name) const {
  return get<std::string>(*this, name);
}
const Ints& Attrs::ints(std::string_view name) const {
  return get<Ints>(*this, name);
}
DType Attrs::dtype(std::string_view name) const {
  return get<DType>(*this, name);
}
const Tensor& Attrs::tensor(std::string_view name) const {
  return get<Tensor>(*this, name);
}
const Graph& Attrs::graph(std::string_view name) const {
  return *get<std::shared_ptr<const Graph>>(*this, name);
}

}  // namespace heddle::ir
