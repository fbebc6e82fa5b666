// Read by the sanitizers' runtime where there is one. An allocation beyond the limit is a defect: a small file asks for
// it. Children are killed at any point and leave what they hold.
extern "C" const char* __asan_default_options();

extern "C" const char* __asan_default_options() {
  return "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096:hard_rss_limit_mb=8192";
}
