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

// Plan files. A file consists of a header of fixed size, the description (everything but tensor data), and the tensors.
// Each tensor is 64-byte aligned, so that kernels can use it in the mapped file. Checksums cover the header with the
// plan's key, the description and every tensor.

// A constant of a plan may have a placeholder address instead of content. For each placeholder address, this map has a
// function that fills memory of the constant's size with the content. write_plan() calls these functions. Each of its
// threads fills one buffer again and again, so all weights are never in memory at once.
using ConstantMakers = std::map<const void*, std::function<void(void* to)>>;
void make_constants(Plan& plan, const ConstantMakers& makers);

// Writes a plan to a temporary file and renames the file to `path`. If `sync` is kNo, the file is not flushed to disk;
// a crash of the machine may then leave a damaged file, which read_plan() rejects. Throws kFile.
void write_plan(const Plan& plan, const std::string& path, Sync sync = Sync::kYes, const ConstantMakers& makers = {});

// Parses the plan in `bytes`, which must be 64-byte aligned. The plan's constants point into `bytes`; `owner` keeps
// `bytes` alive. `key` is the key that the plan must have. `threads` threads verify the checksums of the tensors; 0
// skips this check. Throws kDamagedArtefact if the plan is of another version, incomplete or modified, or has another
// key.
std::shared_ptr<const Plan> parse_plan(std::span<const std::byte> bytes, std::shared_ptr<const void> owner, int threads,
                                       const std::optional<Hash128>& key = std::nullopt);

// Reads a plan file that a user names. The file is copied into memory, so later changes to it have no effect. Throws
// kDamagedArtefact and kFile. Since a plan contains executable code, kFile is also thrown if anyone but the current
// user and root may have written the file.
std::shared_ptr<const Plan> read_plan(const std::string& path, int threads);

// True if the file begins with the signature of a plan file.
bool is_plan_file(const std::string& path);

}  // namespace heddle::runtime
