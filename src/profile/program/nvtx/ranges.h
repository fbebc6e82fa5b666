#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace heddle::profile {

// An NVTX range that a thread has pushed and not popped.
struct Range {
  uint32_t name = 0;
  bool is_operator = false;  // of PyTorch, as emit_nvtx() names them
  bool is_engine = false;    // of autograd's engine
  // The sequence number of an operator with a gradient; its backward function has the same one. The range of autograd's
  // engine around that function takes it over, for the gradients that it sums afterwards. -1: none.
  int64_t sequence = -1;
  const void* domain = nullptr;
  uint64_t path = 0;  // a hash of the names from the outermost range to this one
};

// Pushes a range of the calling thread. `text` of an operator: "aten::mm, seq = 7, op_id = 3". Returns how many ranges
// the thread was in before.
int push_range(std::string_view text, const void* domain = nullptr);
// Pops the innermost range of the domain. Returns how many are left, or -1 if there was none.
int pop_range(const void* domain = nullptr);
// The ranges of the calling thread, outermost first. Valid until its next push or pop.
std::span<const Range> ranges_of_thread();
// "aten::mm". After some names that differ only in numbers ("step 1", "step 2", ...), the others share one: "step #".
std::string range_name(uint32_t name);
// Ranges pushed by this process so far.
uint64_t ranges_pushed();

}  // namespace heddle::profile
