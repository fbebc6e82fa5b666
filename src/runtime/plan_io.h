#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/file/file.h"
#include "runtime/plan.h"

namespace heddle::runtime {

// Plan files. Layout: a header of fixed size, the description (everything but tensor data), then the tensors, each
// 64-byte aligned so that kernels use them where the file is mapped. Checksums cover the header with the plan's key,
// the description and every tensor.

// Constants of a plan that have no content yet, by what stands for their data: each is made where the function is given
// memory of its size. So gigabytes of weights need not be in memory, nor fresh pages, beside the file that they go to.
using ConstantMakers = std::map<const void*, std::function<void(void* to)>>;
void make_constants(Plan& plan, const ConstantMakers& makers);

// Written aside and renamed; without the flush to disk a stop of the machine may leave a damaged file, which
// read_plan() refuses. Throws kFile.
void write_plan(const Plan& plan, const std::string& path, Sync sync = Sync::kYes, const ConstantMakers& makers = {});

// The plan in `bytes`, from whose 64-byte aligned memory its constants borrow; `owner` keeps it. `key`: what the plan
// has to be made from. `threads` check the checksums of the tensors; 0: they are known to be right. Throws
// kDamagedArtefact for whatever is no plan of this version, is incomplete, was changed or was made from something else.
std::shared_ptr<const Plan> parse_plan(std::span<const std::byte> bytes, std::shared_ptr<const void> owner, int threads,
                                       const std::optional<Hash128>& key = std::nullopt);

// A plan file that a user names, read into memory: what happens to the file afterwards is not seen. Throws
// kDamagedArtefact, and kFile, also where others than this user and root may have written it: a plan is code that runs.
std::shared_ptr<const Plan> read_plan(const std::string& path, int threads);

// Whether the file begins as a plan does.
bool is_plan_file(const std::string& path);

}  // namespace heddle::runtime
