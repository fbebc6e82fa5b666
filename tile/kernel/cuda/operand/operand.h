// Operands of a contraction as views [row][k]: matrices and, for convolutions, images. A generated unit may use these
// views or define its own. tile/kernel/cuda/gemm/sm80.h specifies the requirements.
#pragma once

#include "tile/core/cuda_operand.h"
#include "tile/core/view.h"

namespace heddle::tile::cuda {

// A matrix as lines of contiguous elements. If memory is contiguous along k, a line is a row. If memory is contiguous
// along the row index, a line contains the elements of all rows at one k.
template <typename T>
struct MatrixLines {
  const T* data;
  int64_t leading;  // distance between lines in elements, at least `length`
  int32_t lines, length;
};

// Returns a stride in the integer type in which a view computes offsets.
template <bool Wide, int Align>
__device__ inline auto stride_of(int64_t stride) {
  if constexpr (Wide) {
    return multiple_of<Align>(stride);
  } else {
    return multiple_of<Align>(static_cast<int32_t>(stride));
  }
}

namespace detail {

// Returns the length of a spatial dimension, or a compile-time 1 if the dimension is not used, which then costs
// nothing.
template <bool Used>
__device__ inline auto length_or_one(int32_t length) {
  if constexpr (Used) {
    return length;
  } else {
    return fixed<1>();
  }
}
template <bool Padded>
__device__ inline auto padding(int32_t before, int32_t after) {
  if constexpr (Padded) {
    return pad(before, after);
  } else {
    return pad(fixed<0>(), fixed<0>());
  }
}
// Returns the windows of spatial dimension i: the position in the image is tap * dilation + output * stride.
template <bool Used, bool Taps>
__device__ inline auto windows(const GemmImageArgs& a, int i) {
  constexpr bool kTaps = Used && Taps;
  return embed(make_tuple(length_or_one<kTaps>(a.window[i]), length_or_one<Used>(a.out[i])),
               make_tuple(length_or_one<kTaps>(a.dilation[i]), length_or_one<Used>(a.stride[i])));
}

}  // namespace detail

// The images of a convolution with Rank spatial dimensions (1 to 3). Align, in elements, divides the number of
// channels, the strides between pixels and between groups, and the address. Padded: some padding is not 0. Pointwise:
// the window has extent 1 in all dimensions.
template <typename T, int Rank, int Align, bool Padded, bool Pointwise, bool Wide = false>
struct Image {
  static_assert(Rank >= 1 && Rank <= 3);
  using Element = T;
  GemmImageArgs args;

  __device__ auto view(int group) const {
    using detail::length_or_one;
    using detail::padding;
    constexpr bool kD = Rank > 2, kH = Rank > 1;
    const GemmImageArgs& a = args;
    const auto d = length_or_one<kD>(a.size[0]);
    const auto h = length_or_one<kH>(a.size[1]);
    const auto pixel = stride_of<Wide, Align>(a.pixel);
    const auto row = times(pixel, a.size[2]);
    const auto slice = times(row, h);
    const auto image = times(slice, d);
    const auto images = make_naive(make_tuple(a.images, d, h, a.size[2], multiple_of<Align>(a.channels)),
                                   make_tuple(image, slice, row, pixel, fixed<1>()));
    constexpr auto same = make_tuple(dims<0>{}, dims<1>{}, dims<2>{}, dims<3>{}, dims<4>{});
    const auto padded = transform(images,
                                  make_tuple(pass_through(), padding < Padded && kD > (a.before[0], a.after[0]),
                                             padding < Padded && kH > (a.before[1], a.after[1]),
                                             padding<Padded>(a.before[2], a.after[2]), pass_through()),
                                  same, same);
    const auto windows = transform(
        padded,
        make_tuple(pass_through(), detail::windows<kD, !Pointwise>(a, 0), detail::windows<kH, !Pointwise>(a, 1),
                   detail::windows<true, !Pointwise>(a, 2), pass_through()),
        same, make_tuple(dims<0>{}, dims<4, 1>{}, dims<5, 2>{}, dims<6, 3>{}, dims<7>{}));
    return make_view(static_cast<const T*>(a.data) + group * a.group,
                     transform(windows, make_tuple(merge(), merge()),
                               make_tuple(dims<0, 1, 2, 3>{}, dims<4, 5, 6, 7>{}), make_tuple(dims<0>{}, dims<1>{})));
  }
};

}  // namespace heddle::tile::cuda
