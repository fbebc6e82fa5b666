#pragma once

#include <optional>
#include <vector>

#include "schedule/kernel_plan.h"
#include "schedule/product/cuda/family.h"

namespace heddle::schedule {

// Joins equal products into one kernel (ContractionDesc::copies), whose blockIdx.z is the number of the product. A
// product that is too small for the device then shares it with others. `products` must not depend on each other; their
// kernels differ only in their bindings. Returns nullopt if no family can join them. The configuration has the
// predicted time of all products.
std::optional<ScheduledKernel> side_by_side(const std::vector<ScheduledKernel>& products, const GpuTarget& target);

// The operands of the first product.
std::vector<Operand> operands_of_one(const ContractionDesc& desc, const std::vector<Operand>& operands);

// Turns the launches of one product, which has `operands` operands, into those of `copies` products. Argument blocks
// that contain pointers are not repeated.
void repeat_launches(KernelLaunches& one, int copies, size_t operands);

}  // namespace heddle::schedule
