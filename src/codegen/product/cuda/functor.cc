#include "codegen/product/cuda/functor.h"

#include <algorithm>
#include <cstring>

namespace heddle::codegen {

void pack(const FunctorMembers& members, CudaFunctor& functor) {
  const size_t words = std::max<size_t>(members.used_operands().size() + members.numbers().size(), 1);
  functor.block.assign(words * sizeof(int64_t), 0);
  functor.pointers.clear();
  size_t at = 0;
  for (uint32_t id : members.used_operands()) {
    functor.pointers.push_back({0, static_cast<int>(at), static_cast<int>(id)});
    at += sizeof(int64_t);
  }
  for (int64_t value : members.numbers()) {
    std::memcpy(functor.block.data() + at, &value, sizeof(value));
    at += sizeof(value);
  }
}

}  // namespace heddle::codegen
