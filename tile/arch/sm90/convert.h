// Makes the conversions between storage types and float available in the namespace sm90.
#pragma once

#include "tile/arch/sm80/convert.h"

namespace heddle::tile::sm90 {

using cuda::convert;
using cuda::e4m3;
using cuda::e5m2;
using cuda::from_float;
using cuda::pack;
using cuda::tf32;
using cuda::tf32x2;
using cuda::to_float;

}  // namespace heddle::tile::sm90
