// Views map an index to an address through a chain of coordinate transforms. Coordinate objects move along a view.
// tile/README.md shows how to write one.
//
// A chain begins with make_naive() (lengths and strides over a buffer). transform() adds a layer and returns a new
// chain; the dimensions of the new chain are the upper dimensions of that layer. Chains are values. Compile-time
// numbers in a chain take no memory and are folded; a chain that has only such numbers is an empty type.
#pragma once

#include "tile/core/transform.h"
#include "tile/core/transform_many.h"

namespace heddle::tile {

template <typename D>
class Coordinate;

namespace detail {

// The position of `id` in a list of dimensions; -1 if it is not in the list.
template <int... I>
TILE_HD constexpr int position(dims<I...>, int id) {
  int at = -1, i = 0;
  ((at = I == id ? i : at, ++i), ...);
  return at;
}

// True if the lists together contain each of 0 .. count - 1 once.
template <typename... Ids>
TILE_HD constexpr bool names_each_once(const tuple<Ids...>&, int count) {
  bool good = (Ids::kSize + ... + 0) == count;
  for (int i = 0; i < count; ++i) good = good && ((position(Ids{}, i) >= 0 ? 1 : 0) + ... + 0) == 1;
  return good;
}

// picked_ids(): the hidden indices of the dimensions `Picked` of a chain. new_ids(): the hidden indices of a new layer
// whose first hidden index is First.
template <typename Visible, int... Picked>
TILE_HD constexpr auto picked_ids(Visible, dims<Picked...>) {
  return dims<Visible::at(Picked)...>{};
}
template <int First, int... I>
TILE_HD constexpr auto new_ids(dims<I...>) {
  return dims<First + I...>{};
}
template <int First, int... I>
TILE_HD constexpr auto count_from(indices<I...>) {
  return dims<First + I...>{};
}

template <typename D, int T>
using transform_of = element_t<T, typename D::Transforms>;

template <int N, int... Id, typename Index>
TILE_HD constexpr void gather_ids(dims<Id...>, [[maybe_unused]] const Index* all, [[maybe_unused]] Index (&some)[N]) {
  [[maybe_unused]] int i = 0;
  ((some[i++] = all[Id]), ...);
}

template <int N, int... Id, typename Index>
TILE_HD constexpr void scatter_ids(dims<Id...>, [[maybe_unused]] const Index (&some)[N], [[maybe_unused]] Index* all) {
  [[maybe_unused]] int i = 0;
  ((all[Id] = some[i++]), ...);
}

}  // namespace detail

// A chain. Hidden index 0 is the offset in elements. The upper indices of each layer follow. Transform t maps the
// hidden indices Upper[t] to the hidden indices Lower[t]. Visible lists the hidden indices that the user passes.
template <typename Transforms, typename Lower, typename Upper, typename Visible, int Hidden>
struct Descriptor;
template <typename... T, typename Lower, typename Upper, typename Visible, int Hidden>
struct Descriptor<tuple<T...>, Lower, Upper, Visible, Hidden> : tuple<T...> {
  using Transforms = tuple<T...>;
  using LowerIds = Lower;
  using UpperIds = Upper;
  using VisibleIds = Visible;
  using Index = index_type<(T::kWide || ...)>;
  static constexpr int kDims = Visible::kSize, kTransforms = sizeof...(T), kHidden = Hidden;
  // kStatic: every number is a compile-time constant. kPredicated: an index within the lengths may be invalid.
  static constexpr bool kStatic = (T::kStatic && ...), kPredicated = (T::kPredicated || ...);

  TILE_HD constexpr const tuple<T...>& transforms() const { return *this; }

  // The length of a dimension, as a number whose type tells what is known at compile time.
  template <int Dim>
  TILE_HD constexpr auto length() const {
    static_assert(Dim >= 0 && Dim < kDims, "no such dimension");
    return length_of<Visible::at(Dim), 0>();
  }

  // The number of elements from the first element of the buffer to the last element that the lowest layer reaches, both
  // included.
  TILE_HD constexpr int64_t span() const {
    const detail::Range r = get<0>(*this).range();
    return r.empty ? 0 : r.high + 1;
  }

  // True if every valid index has an address within the buffer's span and no index overflows. For chains of constants
  // the compiler checks this. Call this function if numbers come from a user.
  TILE_HD constexpr bool consistent() const {
    const bool good = consistent(detail::make_indices<kTransforms>{});
    const detail::Range r = get<0>(*this).range();
    return good && (sizeof(Index) > 4 || r.empty || (detail::fits_int(r.low) && detail::fits_int(r.high)));
  }

  template <typename... I>
  TILE_HD constexpr Coordinate<Descriptor> at(I... index) const;

  // The offset of a valid index. is_valid() of at(index...) tells whether an index is valid.
  template <typename... I>
  TILE_HD constexpr Index offset(I... index) const {
    return at(index...).offset();
  }

 private:
  template <int... I>
  TILE_HD constexpr bool consistent(detail::indices<I...>) const {
    return (get<I>(*this).consistent() && ...);
  }
  template <int Id, int Transform>
  TILE_HD constexpr auto length_of() const {
    constexpr int place = detail::position(element_t<Transform, Upper>{}, Id);
    if constexpr (place >= 0) {
      return get<Transform>(*this).template upper_length<place>();
    } else {
      return length_of<Id, Transform + 1>();
    }
  }
};

// A chain with the buffer's own dimensions: offset = sum(index * stride).
template <typename... Length, typename... Stride>
TILE_HD constexpr auto make_naive(tuple<Length...> lengths, tuple<Stride...> strides) {
  using Base = Embed<Unbounded, tuple<Length...>, tuple<Stride...>>;
  using Ids = decltype(detail::count_from<1>(detail::make_indices<sizeof...(Length)>{}));
  return Descriptor<tuple<Base>, tuple<dims<0>>, tuple<Ids>, Ids, 1 + int(sizeof...(Length))>{
      make_tuple(Base{make_tuple(Unbounded{}, lengths, strides)})};
}

// A chain for a packed buffer: no gaps, and the last dimension is contiguous.
template <typename... Length>
TILE_HD constexpr auto make_packed(Length... lengths) {
  return make_naive(make_tuple(lengths...), detail::packed_strides(lengths...));
}

namespace detail {

template <typename D, typename Spec, int... Dim>
TILE_HD constexpr auto bind(const D& chain, const Spec& spec, dims<Dim...>) {
  const auto transform = spec(chain.template length<Dim>()...);
  using T = decltype(spec(chain.template length<Dim>()...));
  static_assert(T::kLower == sizeof...(Dim), "a transform gets as many lower dimensions as it has");
  if constexpr (T::kStatic) static_assert(T{}.consistent(), "valid indices would leave the lower dimension");
  return transform;
}

template <typename D, typename... Spec, typename... Low, typename... Up, int... I>
TILE_HD constexpr auto transform(const D& chain, const tuple<Spec...>& specs, const tuple<Low...>&, const tuple<Up...>&,
                                 indices<I...>) {
  auto layer = make_tuple(bind(chain, get<I>(specs), Low{})...);
  constexpr int dimensions = (Up::kSize + ... + 0);
  static_assert(((element_t<I, decltype(layer)>::kUpper == Up::kSize) && ...),
                "a transform gets as many upper dimensions as it has");
  static_assert(names_each_once(tuple<Low...>{}, D::kDims), "each lower dimension goes to one transform");
  static_assert(names_each_once(tuple<Up...>{}, dimensions), "upper dimensions are 0 .. n-1, each once");
  using Transforms = decltype(concat(chain.transforms(), layer));
  using Lower =
      decltype(concat(typename D::LowerIds{}, tuple<decltype(picked_ids(typename D::VisibleIds{}, Low{}))...>{}));
  using Upper = decltype(concat(typename D::UpperIds{}, tuple<decltype(new_ids<D::kHidden>(Up{}))...>{}));
  using Visible = decltype(count_from<D::kHidden>(make_indices<dimensions>{}));
  return Descriptor<Transforms, Lower, Upper, Visible, D::kHidden + dimensions>{concat(chain.transforms(), layer)};
}

}  // namespace detail

// Adds a layer to a chain. Transform i uses the chain's dimensions lower_dims[i] and defines the new dimensions
// upper_dims[i]. All three arguments are made by make_tuple(); the lists are dims<...>{}. The list of a transform
// without lower or upper dimensions is dims<>{}.
template <typename D, typename... Spec, typename... Low, typename... Up>
TILE_HD constexpr auto transform(const D& chain, const tuple<Spec...>& transforms, const tuple<Low...>& lower_dims,
                                 const tuple<Up...>& upper_dims) {
  static_assert(sizeof...(Spec) == sizeof...(Low) && sizeof...(Spec) == sizeof...(Up), "two lists for each transform");
  return detail::transform(chain, transforms, lower_dims, upper_dims, detail::make_indices<sizeof...(Spec)>{});
}

// Permutes the dimensions: new dimension i is old dimension Order[i]. Costs nothing at run time.
template <int... Order, typename Transforms, typename Lower, typename Upper, typename Visible, int Hidden>
TILE_HD constexpr auto permute(const Descriptor<Transforms, Lower, Upper, Visible, Hidden>& chain) {
  static_assert(detail::names_each_once(tuple<dims<Order...>>{}, Visible::kSize), "each dimension once");
  return Descriptor<Transforms, Lower, Upper, dims<Visible::at(Order)...>, Hidden>{chain.transforms()};
}

// A step along dimension Dim that is used many times. If a merge transform defines the dimension, the object stores the
// digits of the step, so that a move adds and carries instead of dividing.
template <int Dim, typename D>
class PreparedStep {
 public:
  using Index = typename D::Index;
  template <typename S>
  TILE_HD constexpr PreparedStep(const D& chain, S step) : step_(static_cast<Index>(step)) {
    prepare_all(chain, detail::make_indices<D::kTransforms>{});
  }
  TILE_HD constexpr Index step() const { return step_; }
  TILE_HD constexpr const Index* digits() const { return digits_; }
  // True if transform T is a merge that defines exactly this dimension.
  template <int T>
  TILE_HD static constexpr bool covers() {
    using Up = element_t<T, typename D::UpperIds>;
    if constexpr (requires(Index * p) { detail::transform_of<D, T>{}.update_by_digits(p, p, p); }) {
      return Up::at(0) == D::VisibleIds::at(Dim);
    } else {
      return false;
    }
  }

 private:
  template <int... I>
  TILE_HD constexpr void prepare_all(const D& chain, detail::indices<I...>) {
    (prepare<I>(chain), ...);
  }
  template <int T>
  TILE_HD constexpr void prepare(const D& chain) {
    if constexpr (covers<T>()) {
      Index low[detail::transform_of<D, T>::kLower + 1] = {};
      get<T>(chain.transforms()).lower(&step_, low);
      detail::scatter_ids(element_t<T, typename D::LowerIds>{}, low, digits_);
    }
  }
  Index step_;
  Index digits_[D::kHidden] = {};
};

// The change of every hidden index in a move.
template <typename D>
struct Steps {
  typename D::Index by[D::kHidden] = {};
};

namespace detail {

// For every hidden index of a chain, the visible dimensions that it depends on, as a bit mask.
template <typename D>
class Dependence {
 public:
  TILE_HD constexpr Dependence() {
    for (int i = 0; i < D::kDims; ++i) on_[D::VisibleIds::at(i)] = 1u << i;
    visit(make_indices<D::kTransforms>{});
  }
  // True if every layer that `dim` moves is linear, so that its moves do not depend on the position. With Alone, a
  // nonlinear layer is also allowed if no other dimension moves it.
  template <bool Alone>
  TILE_HD constexpr bool moves_alike(int dim) const {
    return check<Alone>(1u << dim, make_indices<D::kTransforms>{});
  }

 private:
  template <int T>
  using Up = element_t<T, typename D::UpperIds>;
  template <int... I>
  TILE_HD constexpr void visit(indices<I...>) {
    (visit_one<D::kTransforms - 1 - I>(), ...);
  }
  template <int T>
  TILE_HD constexpr void visit_one() {
    using Low = element_t<T, typename D::LowerIds>;
    const unsigned on = of<T>();
    for (int i = 0; i < Low::kSize; ++i) on_[Low::at(i)] = on;
  }
  template <int T>
  TILE_HD constexpr unsigned of() const {
    unsigned on = 0;
    for (int i = 0; i < Up<T>::kSize; ++i) on |= on_[Up<T>::at(i)];
    return on;
  }
  template <bool Alone, int... I>
  TILE_HD constexpr bool check(unsigned dim, indices<I...>) const {
    return ((transform_of<D, I>::kLinear || (of<I>() & dim) == 0 || (Alone && of<I>() == dim)) && ...);
  }
  unsigned on_[D::kHidden] = {};
};

}  // namespace detail

// True if a step along Dim changes each hidden index by the same amount for all coordinates that have the same index in
// Dim (see Coordinate::follow).
template <int Dim, typename D>
TILE_HD constexpr bool shares_steps() {
  return detail::Dependence<D>().template moves_alike<true>(Dim);
}
// True if a step along Dim changes each hidden index by the same amount for all coordinates, that is, if the chain is
// affine in Dim.
template <int Dim, typename D>
TILE_HD constexpr bool moves_linearly() {
  return detail::Dependence<D>().template moves_alike<false>(Dim);
}

// An index into a chain, stored with all intermediate indices down to the offset. A move updates these indices instead
// of computing them again.
template <typename D>
class Coordinate {
 public:
  using Index = typename D::Index;

  template <typename... I>
  TILE_HD constexpr explicit Coordinate(const D& chain, I... index) : chain_(make_tuple(chain)) {
    static_assert(sizeof...(I) == D::kDims, "an index for each dimension");
    const Index top[D::kDims + 1] = {static_cast<Index>(index)...};
    detail::scatter_ids(typename D::VisibleIds{}, top, hidden_);
    lower_all(Layers{});
  }

  TILE_HD constexpr Index offset() const { return hidden_[0]; }
  template <int Dim>
  TILE_HD constexpr Index index() const {
    return hidden_[D::VisibleIds::at(Dim)];
  }

  // Moves by one step along every dimension. Steps that are compile-time constants are folded where possible. `moved`
  // receives the move, for use in follow().
  template <typename... S>
  TILE_HD constexpr void move_and_note(Steps<D>& moved, S... steps) {
    static_assert(sizeof...(S) == D::kDims, "a step for each dimension");
    const Index top[D::kDims + 1] = {static_cast<Index>(steps)...};
    moved = {};
    detail::scatter_ids(typename D::VisibleIds{}, top, moved.by);
    move_visible(typename D::VisibleIds{}, top);
    update_all(moved.by, static_cast<const NotPrepared*>(nullptr), Layers{});
  }
  // Moves by a prepared step. `moved` receives the move.
  template <int Dim>
  TILE_HD constexpr void move_and_note(Steps<D>& moved, const PreparedStep<Dim, D>& step) {
    moved = {};
    moved.by[D::VisibleIds::at(Dim)] = step.step();
    hidden_[D::VisibleIds::at(Dim)] += step.step();
    update_all(moved.by, &step, Layers{});
  }
  template <typename... S>
  TILE_HD constexpr void move(S... steps) {
    Steps<D> moved;
    move_and_note(moved, steps...);
  }
  // Repeats a move that another coordinate of the same chain made along Dim. Requires shares_steps<Dim>(), so that all
  // coordinates make the same move. Costs one addition for each index that is used.
  TILE_HD constexpr void follow(const Steps<D>& moved) {
    for (int i = 0; i < D::kHidden; ++i) hidden_[i] += moved.by[i];
  }
  // Moves by `step` along dimension Dim.
  template <int Dim, typename S>
  TILE_HD constexpr void move_along(S step) {
    static_assert(Dim >= 0 && Dim < D::kDims, "no such dimension");
    move_one<Dim>(step, detail::make_indices<D::kDims>{});
  }

  // True if the index is within the lengths.
  TILE_HD constexpr bool inside() const { return inside(detail::make_indices<D::kDims>{}); }
  // True if an index within the lengths has an element; padding and gather bounds may exclude it. Costs nothing if
  // every index has an element.
  TILE_HD constexpr bool maps() const { return maps(Layers{}); }
  TILE_HD constexpr bool is_valid() const { return inside() && maps(); }

 private:
  using Layers = detail::make_indices<D::kTransforms>;
  template <int T>
  using Transform = detail::transform_of<D, T>;
  template <int T>
  using Up = element_t<T, typename D::UpperIds>;
  template <int T>
  using Low = element_t<T, typename D::LowerIds>;

  // Layers depend on the layers above them, so the last transform is applied first.
  template <int... I>
  TILE_HD constexpr void lower_all(detail::indices<I...>) {
    (lower_one<D::kTransforms - 1 - I>(), ...);
  }
  template <int T>
  TILE_HD constexpr void lower_one() {
    Index up[Transform<T>::kUpper + 1] = {}, low[Transform<T>::kLower + 1] = {};
    detail::gather_ids(Up<T>{}, hidden_, up);
    get<T>(chain().transforms()).lower(up, low);
    detail::scatter_ids(Low<T>{}, low, hidden_);
  }

  template <int... Id>
  TILE_HD constexpr void move_visible(dims<Id...>, const Index* step) {
    int i = 0;
    ((hidden_[Id] += step[i++]), ...);
  }
  struct NotPrepared {
    template <int>
    TILE_HD static constexpr bool covers() {
      return false;
    }
  };
  template <typename Prepared, int... I>
  TILE_HD constexpr void update_all(Index* step, const Prepared* prepared, detail::indices<I...>) {
    (update_one<D::kTransforms - 1 - I>(step, prepared), ...);
  }
  template <int T, typename Prepared>
  TILE_HD constexpr void update_one(Index* step, [[maybe_unused]] const Prepared* prepared) {
    Index up[Transform<T>::kUpper + 1] = {}, up_step[Transform<T>::kUpper + 1] = {};
    Index low[Transform<T>::kLower + 1] = {}, low_step[Transform<T>::kLower + 1] = {};
    detail::gather_ids(Up<T>{}, hidden_, up);
    detail::gather_ids(Up<T>{}, step, up_step);
    detail::gather_ids(Low<T>{}, hidden_, low);
    if constexpr (Prepared::template covers<T>()) {
      Index digits[Transform<T>::kLower + 1] = {};
      detail::gather_ids(Low<T>{}, prepared->digits(), digits);
      get<T>(chain().transforms()).update_by_digits(digits, low, low_step);
    } else {
      get<T>(chain().transforms()).update(up, up_step, low, low_step);
    }
    detail::scatter_ids(Low<T>{}, low, hidden_);
    detail::scatter_ids(Low<T>{}, low_step, step);
  }

  template <int... I>
  TILE_HD constexpr bool inside(detail::indices<I...>) const {
    return ((index<I>() >= 0 && index<I>() < static_cast<Index>(chain().template length<I>())) && ...);
  }
  template <int... I>
  TILE_HD constexpr bool maps(detail::indices<I...>) const {
    return (int(maps_one<I>()) & ... & 1) != 0;  // without branches
  }
  template <int T>
  TILE_HD constexpr bool maps_one() const {
    if constexpr (Transform<T>::kPredicated) {
      Index up[Transform<T>::kUpper + 1] = {}, low[Transform<T>::kLower + 1] = {};
      detail::gather_ids(Up<T>{}, hidden_, up);
      detail::gather_ids(Low<T>{}, hidden_, low);
      return get<T>(chain().transforms()).valid(up, low);
    }
    return true;
  }

  template <int Dim, typename S, int... I>
  TILE_HD constexpr void move_one(S step, detail::indices<I...>) {
    move((I == Dim ? static_cast<Index>(step) : Index(0))...);
  }

  TILE_HD constexpr decltype(auto) chain() const { return get<0>(chain_); }

  tuple<D> chain_;
  Index hidden_[D::kHidden] = {};
};

template <typename... T, typename Lower, typename Upper, typename Visible, int Hidden>
template <typename... I>
TILE_HD constexpr Coordinate<Descriptor<tuple<T...>, Lower, Upper, Visible, Hidden>>
Descriptor<tuple<T...>, Lower, Upper, Visible, Hidden>::at(I... index) const {
  return Coordinate<Descriptor>(*this, index...);
}

namespace detail {

// Groups of `width` consecutive indices along dimension Dim, propagated down through the layers of a chain.
template <int Dim, bool Values, typename D>
class GroupOf {
 public:
  TILE_HD constexpr GroupOf(const D& chain, int width) : width_(width) {
    begin(chain, make_indices<D::kDims>{});
    lower(chain, make_indices<D::kTransforms>{});
  }
  // True if every group is contiguous and aligned in memory, and is either entirely valid or entirely invalid.
  TILE_HD constexpr bool is_vector() const {
    return uniform_ && all_[0].affine && all_[0].step == 1 && all_[0].align % width_ == 0;
  }

 private:
  template <int... I>
  TILE_HD constexpr void begin(const D& chain, indices<I...>) {
    (begin_one<I>(fact<Values>(chain.template length<I>())), ...);
  }
  template <int I>
  TILE_HD constexpr void begin_one(const Fact& length) {
    const int64_t unit = I == Dim ? width_ : 1;
    all_[D::VisibleIds::at(I)] = {.align = length.known && length.value == unit ? 0 : unit, .step = I == Dim ? 1 : 0};
    if (I == Dim && length.divisor % width_ != 0) uniform_ = false;
  }
  template <int... I>
  TILE_HD constexpr void lower(const D& chain, indices<I...>) {
    (lower_one<D::kTransforms - 1 - I>(get<D::kTransforms - 1 - I>(chain.transforms())), ...);
  }
  template <int T, typename Transform>
  TILE_HD constexpr void lower_one(const Transform& transform) {
    Lanes up[Transform::kUpper + 1] = {}, low[Transform::kLower + 1] = {};
    gather_ids(element_t<T, typename D::UpperIds>{}, all_, up);
    uniform_ = transform.template lanes<Values>(up, low, width_, merged_[T]) && uniform_;
    scatter_ids(element_t<T, typename D::LowerIds>{}, low, all_);
  }

  int width_;
  bool uniform_ = true;
  Lanes all_[D::kHidden] = {};
  Merged merged_[D::kTransforms] = {};
};

template <int Dim, bool Values, typename D>
TILE_HD constexpr int widest_vector(const D& chain, int limit) {
  int width = 1;
  while (width <= limit / 2) width *= 2;
  while (width > 1 && !GroupOf<Dim, Values, D>(chain, width).is_vector()) width /= 2;
  return width;
}

}  // namespace detail

// The widest vector that can access the chain along dimension Dim: the largest power of two V up to `limit` for which
// each aligned group of V consecutive indices
//   - is contiguous in memory,
//   - starts at an offset that is a multiple of V, and
//   - is either entirely valid or entirely invalid.
// The caller must check the alignment of the buffer's address.
template <int Dim, typename D>
TILE_HD constexpr int vector_length(const D& chain, int limit) {
  return detail::widest_vector<Dim, true>(chain, limit);
}
// Like vector_length(), computed at compile time from the types only. The result holds for all run-time values.
template <int Dim, typename D>
TILE_HD constexpr int known_vector_length(int limit) {
  return detail::widest_vector<Dim, false>(D{}, limit);
}

// A buffer accessed through a chain.
template <typename T, typename D>
struct TensorView {
  T* data;
  D chain;

  template <typename... I>
  TILE_HD constexpr Coordinate<D> at(I... index) const {
    return chain.at(index...);
  }
  // The element of a valid coordinate.
  TILE_HD constexpr T& operator[](const Coordinate<D>& at) const { return data[at.offset()]; }
  // The element at the coordinate, or `otherwise` if the coordinate is invalid.
  template <typename V>
  TILE_HD constexpr V load(const Coordinate<D>& at, V otherwise) const {
    return at.is_valid() ? static_cast<V>(data[at.offset()]) : otherwise;
  }
  // Stores the value if the coordinate is valid.
  TILE_HD constexpr void store(const Coordinate<D>& at, T value) const {
    if (at.is_valid()) data[at.offset()] = value;
  }
};

template <typename T, typename D>
TILE_HD constexpr TensorView<T, D> make_view(T* data, const D& chain) {
  return {data, chain};
}

}  // namespace heddle::tile
