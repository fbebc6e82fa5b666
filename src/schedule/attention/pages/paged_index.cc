#include "schedule/attention/pages/paged_index.h"

namespace heddle::schedule {
namespace {

// Terms of an index that are variables, of the keys too, and at most one that is none.
struct Terms {
  std::vector<int64_t> strides;
  const Atom* other = nullptr;
  int64_t times = 0;  // of the other one
};

std::optional<Terms> terms_of(const IndexPool& pool, const Index& index, Atom::Kind other) {
  Terms result{std::vector<int64_t>(pool.var_count(), 0)};
  for (const auto& [id, coefficient] : index.terms) {
    const Atom& atom = pool.atom(id);
    if (atom.kind == Atom::Kind::kVar) {
      result.strides[atom.id] = coefficient;
    } else if (atom.kind == other && result.other == nullptr) {
      result.other = &atom, result.times = coefficient;
    } else {
      return std::nullopt;
    }
  }
  return result;
}

// Whether an atom's argument is the number of the key and nothing else.
bool is_of_keys(const IndexPool& pool, const Atom& atom) {
  if (atom.arg.constant != 0 || atom.arg.terms.size() != 1 || atom.arg.terms[0].second != 1) return false;
  const Atom& var = pool.atom(atom.arg.terms[0].first);
  return var.kind == Atom::Kind::kVar && var.id == ChainAxes::kKey;
}

// What a gather reads its positions from.
const Expr* load_of(const ExprPool& pool, ExprId id) {
  const Expr& e = pool[id];
  const bool is_known = e.dtype == DType::kI32 || e.dtype == DType::kI64;
  return e.kind == Expr::Kind::kLoad && is_known ? &e : nullptr;
}

}  // namespace

std::optional<PagedIndex> paged_index(const ExprPool& pool, const Index& index, const ChainAxes& axes) {
  const IndexPool& indices = pool.indices;
  constexpr auto kKey = ChainAxes::kKey;
  PagedIndex result;
  // Of the dynamic term and, where a sequence has several pages, that of the key within its page.
  Index rest = index;
  const Atom* page = nullptr;
  std::erase_if(rest.terms, [&](const auto& term) {
    const Atom& atom = indices.atom(term.first);
    if (atom.kind != Atom::Kind::kDynamic || page != nullptr) return false;
    page = &atom, result.page = term.second;
    return true;
  });
  if (page == nullptr) return std::nullopt;
  const Expr* load = load_of(pool, page->id);
  const auto own = terms_of(indices, rest, Atom::Kind::kMod);
  if (load == nullptr || !own) return std::nullopt;
  const auto table = terms_of(indices, load->index, Atom::Kind::kDiv);
  if (!table || (own->other == nullptr) != (table->other == nullptr)) return std::nullopt;
  if (table->strides[kKey] != 0) return std::nullopt;
  result.strides = own->strides, result.offset = rest.constant;
  int64_t keys = axes.extent(kKey);
  if (own->other != nullptr) {
    keys = own->other->a;
    const bool are_keys = is_of_keys(indices, *own->other) && is_of_keys(indices, *table->other);
    if (!are_keys || table->other->a != keys || own->strides[kKey] != 0) return std::nullopt;
    result.strides[kKey] = own->times;
  }
  constexpr int64_t kStep = 16;
  if (keys % kStep != 0) return std::nullopt;
  result.table = {load->id, load->index.constant, table->times, table->strides, keys, page->a};
  for (size_t axis = 0; axis < table->strides.size(); ++axis) {
    const int64_t own_stride = result.strides[axis];
    // The table does not move along what one operand has alone, nor K and V along what it moves along.
    if (table->strides[axis] != 0 && (axis <= ChainAxes::kDepth || own_stride != 0)) return std::nullopt;
  }
  return result;
}

}  // namespace heddle::schedule
