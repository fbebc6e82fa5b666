// Includes all operators on the tiles of a thread block.
#pragma once

#include "tile/block/atomic.h"
#include "tile/block/debug.h"
#include "tile/block/dot.h"
#include "tile/block/memory.h"
#include "tile/block/order.h"
#include "tile/block/reduce.h"
#include "tile/block/shape.h"
