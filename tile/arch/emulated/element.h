// Maps the element types of tensor cores to the emulator's names for them.
#pragma once

#include "tile/arch/sm80/convert.h"

namespace heddle::tile {

template <typename T>
inline constexpr emulated::Element emulated_element = emulated::Element::kHalf;
template <>
inline constexpr emulated::Element emulated_element<bfloat> = emulated::Element::kBfloat;
template <>
inline constexpr emulated::Element emulated_element<cuda::tf32> = emulated::Element::kTf32;
template <>
inline constexpr emulated::Element emulated_element<cuda::e4m3> = emulated::Element::kE4M3;
template <>
inline constexpr emulated::Element emulated_element<cuda::e5m2> = emulated::Element::kE5M2;
template <>
inline constexpr emulated::Element emulated_element<int8_t> = emulated::Element::kInt8;
template <>
inline constexpr emulated::Element emulated_element<uint8_t> = emulated::Element::kUint8;

template <typename T>
struct emulated_sum_type {
  using type = float;
};
template <>
struct emulated_sum_type<int8_t> {
  using type = int32_t;
};
template <>
struct emulated_sum_type<uint8_t> {
  using type = int32_t;
};
template <typename T>
using emulated_sum = typename emulated_sum_type<T>::type;

}  // namespace heddle::tile
