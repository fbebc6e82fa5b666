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
// 64-byte aligned so that kernels use them in the mapped file. Checksums cover the header with the plan's key,
// the description and every tensor.

// Functions that make the constants of a plan which have no content yet, by the placeholder address of their data. Each
// fills memory of the constant's size. So write_plan() makes gigabytes of weights one by one in memory that each of its
// threads reuses, and never holds all of them.
using ConstantMakers = std::map<const void*, std::function<void(void* to)>>;
void make_constants(Plan& plan, const ConstantMakers& makers);

// Writes a temporary file and renames it. Without the flush to disk (`sync`), a crash of the machine may leave a
// damaged file, which read_plan() refuses. Throws kFile.
void write_plan(const Plan& plan, const std::string& path, Sync sync = Sync::kYes, const ConstantMakers& makers = {});

// Parses the plan in `bytes`, which are 64-byte aligned. Its constants point into them, so `owner` keeps them alive.
// `key`: the key that the plan must have. `threads`: how many threads verify the tensors' checksums; 0: they are known
// to be right. Throws kDamagedArtefact if the plan is of another version, incomplete, changed or of another key.
std::shared_ptr<const Plan> parse_plan(std::span<const std::byte> bytes, std::shared_ptr<const void> owner, int threads,
                                       const std::optional<Hash128>& key = std::nullopt);

// Reads a plan file that a user names. It is copied into memory, so later changes to the file have no effect. Throws
// kDamagedArtefact and kFile, also if anyone but this user and root may have written it, since a plan is executable.
std::shared_ptr<const Plan> read_plan(const std::string& path, int threads);

// True if the file begins like a plan file.
bool is_plan_file(const std::string& path);

}  // namespace heddle::runtime
