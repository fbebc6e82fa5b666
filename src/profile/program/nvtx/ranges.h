#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace heddle::profile {

// An NVTX range that a thread has pushed and not popped.
struct Range {
  uint32_t name = 0;
  bool is_operator = false;  // of a PyTorch operator, as emit_nvtx() names it
  bool is_engine = false;    // of autograd's engine
  // The sequence number of an operator with a gradient, or -1. The backward function of the operator has the same
  // number. The range of autograd's engine around that function adopts the number, for the gradients that the engine
  // sums afterwards.
  int64_t sequence = -1;
  const void* domain = nullptr;
  uint64_t path = 0;  // a hash of the names from the outermost range to this one
};

// Pushes a range of the calling thread. The `text` of an operator looks like "aten::mm, seq = 7, op_id = 3". Returns
// the number of ranges that the thread was in before.
int push_range(std::string_view text, const void* domain = nullptr);
// Pops the innermost range of the domain. Returns the number of remaining ranges, or -1 if there was none to pop.
int pop_range(const void* domain = nullptr);
// Returns the ranges of the calling thread, outermost first. Valid until the thread's next push or pop.
std::span<const Range> ranges_of_thread();
// Returns the name of a range: "aten::mm". After some names that differ only in numbers ("step 1", "step 2", ...),
// further such names are replaced by one common name: "step #".
std::string range_name(uint32_t name);
// Returns the number of ranges that this process has pushed so far.
uint64_t ranges_pushed();

}  // namespace heddle::profile
