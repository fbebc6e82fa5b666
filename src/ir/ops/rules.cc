#include "ir/ops/rules.h"

namespace heddle::ir {

void require_dim(const char* name, int64_t dim, const Shape& shape) {
  require(dim >= 0 && dim < static_cast<int64_t>(shape.size()), "{} = {} is not a dimension of {}", name, dim, shape);
}

void require_dims(const char* name, const Ints& dims, const Shape& shape) {
  for (size_t i = 0; i < dims.size(); ++i) {
    require_dim(name, dims[i], shape);
    require(i == 0 || dims[i - 1] < dims[i], "{} = {} is not strictly increasing", name, dims);
  }
}

void require_per_dim(const char* name, const Ints& values, const Shape& shape) {
  require(values.size() == shape.size(), "{} = {} needs one entry per dimension of {}", name, values, shape);
}

void require_type(const TensorType& type) {
  require(type.dtype != DType::kString, "strings are not tensors of the IR");
  for (int64_t extent : type.shape) require(extent >= 0, "an extent of {} is negative", type);
}

void bad_index(Op op, int64_t index, int64_t extent) {
  fail(ErrorCode::kValueOutOfRange, std::string(to_string(op)),
       fmt::format("index {} is outside [{}, {})", index, -extent, extent),
       "Check the data that feeds the indices of this operator");
}

}  // namespace heddle::ir
