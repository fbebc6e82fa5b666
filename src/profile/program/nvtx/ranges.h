#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace heddle::profile {

// A range that a thread has pushed and not popped, by NVTX.
struct Range {
  uint32_t name = 0;
  bool is_operator = false;  // of PyTorch, as emit_nvtx() names them
  bool is_engine = false;    // of autograd's engine
  // Of an operator with a gradient: the same in its backward function, and from then on in the range of autograd's
  // engine around that, which sums gradients behind it. -1: none.
  int64_t sequence = -1;
  const void* domain = nullptr;
  uint64_t path = 0;  // a hash of the names from the outermost range to this one
};

// Ranges of the calling thread. `text` of an operator: "aten::mm, seq = 7, op_id = 3". Returns how many ranges the
// thread was in.
int push_range(std::string_view text, const void* domain = nullptr);
// Leaves the innermost range of the domain. Returns how many are left, -1 where there was none.
int pop_range(const void* domain = nullptr);
// The outermost first. Valid until the thread's next push or pop.
std::span<const Range> ranges_of_thread();
// "aten::mm". Names that differ by numbers alone ("step 1", "step 2", ...) are one after some: "step #".
std::string range_name(uint32_t name);
// Ranges pushed by this process so far.
uint64_t ranges_pushed();

}  // namespace heddle::profile
