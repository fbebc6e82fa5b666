#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/tensor.h"
#include "schedule/kernel_desc.h"

namespace heddle::driver {

// The constants of the plans of one model. Equal contents are stored in memory once, and constants packed for one plan
// are reused by the next plan. Plans own the constants that they use; the pool itself keeps the constants that the last
// two plans used.
class ConstantPool {
 public:
  // Call this once for each plan, before its constants are added.
  void next_plan();
  // Adds the constants of a plan that was not built with this pool. The pool never drops them, since that plan lives as
  // long as the model.
  void adopt(const std::vector<Tensor>& constants);
  Tensor shared(const Tensor& constant);
  Tensor packed(const Tensor& dense, const schedule::Packing& packing);

 private:
  struct Entry {
    Tensor source;  // kept alive, so that no other constant can have its address
    std::shared_ptr<const Tensor> result;
    uint64_t used = 0;
  };
  std::shared_ptr<const Tensor> by_content(const Tensor& constant);
  Tensor keep(const std::string& key, const Tensor& source, std::shared_ptr<const Tensor> result);
  Entry* find(const std::string& key);

  std::map<std::string, Entry> known_;
  std::map<std::pair<uint64_t, uint64_t>, std::weak_ptr<const Tensor>> contents_;
  uint64_t plan_ = 0;
};

// Replaces constants by equal constants of live plans, so that separately compiled models with the same weights share
// packed weights. The caller's own tensors (`borrowed`) are not replaced. Thread-safe.
void share_constants(std::vector<Tensor>& constants, const std::map<std::string, Tensor>& borrowed);

}  // namespace heddle::driver
