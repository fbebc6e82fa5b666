#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/file.h"
#include "runtime/plan.h"

namespace heddle::runtime {

// Plan files. Layout: a header of fixed size, the description (everything but tensor data), then the tensors, each
// 64-byte aligned so that kernels use them where the file is mapped. Checksums cover the description and every tensor.

// Constants of a plan that have no content yet, by what stands for their data: each is made where the function is given
// memory of its size. So gigabytes of weights need not be in memory, nor fresh pages, beside the file that they go to.
using ConstantMakers = std::map<const void*, std::function<void(void* to)>>;
void make_constants(Plan& plan, const ConstantMakers& makers);

// Written aside and renamed; without the flush to disk a stop of the machine may leave a damaged file, which
// read_plan() refuses. Throws kFile.
void write_plan(const Plan& plan, const std::string& path, Sync sync = Sync::kYes, const ConstantMakers& makers = {});

// Maps the file; constants borrow from the mapping. `threads` check the checksums. Throws kFile, and kDamagedArtefact
// for whatever is no plan of this version, is incomplete or was changed.
std::shared_ptr<const Plan> read_plan(const std::string& path, int threads);

// The same without the checksums of the tensors, for a file that is known to be as it was written.
std::shared_ptr<const Plan> map_plan(const std::string& path);

// Whether the file begins as a plan does.
bool is_plan_file(const std::string& path);

}  // namespace heddle::runtime
