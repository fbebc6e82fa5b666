#pragma once

#include <memory>
#include <string>

#include "base/file.h"
#include "runtime/plan.h"

namespace heddle::runtime {

// Plan files. Layout: a header of fixed size, the description (everything but tensor data), then the tensors, each
// 64-byte aligned so that kernels use them where the file is mapped. Checksums cover the description and every tensor.

// Written aside and renamed; without the flush to disk a stop of the machine may leave a damaged file, which
// read_plan() refuses. Throws kFile.
void write_plan(const Plan& plan, const std::string& path, Sync sync = Sync::kYes);

// Maps the file; constants borrow from the mapping. `threads` check the checksums. Throws kFile, and kDamagedArtefact
// for whatever is no plan of this version, is incomplete or was changed.
std::shared_ptr<const Plan> read_plan(const std::string& path, int threads);

// The same without the checksums of the tensors, for a file that is known to be as it was written.
std::shared_ptr<const Plan> map_plan(const std::string& path);

// Whether the file begins as a plan does.
bool is_plan_file(const std::string& path);

}  // namespace heddle::runtime
