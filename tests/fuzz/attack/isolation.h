#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace heddle::fuzz {

using SendLine = std::function<void(const std::string&)>;

// A child process that does some work and sends lines. It ends with its parent.
class Child {
 public:
  // The child's stderr goes to the file `log`, its stdout to `log`.out; "": where the parent's go.
  explicit Child(const std::function<void(const SendLine& send)>& work, const std::string& log = {});
  ~Child();  // kills
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // To poll; readable when lines came or the child ended.
  int descriptor() const { return descriptor_; }
  // Passes on what has come. False: there will be no more.
  bool receive(const std::function<void(const std::string&)>& line);
  // Of all its threads.
  double cpu_seconds() const;
  void kill();
  // What killed it ("" if nothing did): "crash: signal 11 (...)".
  std::string wait();

 private:
  pid_t pid_ = -1;
  int descriptor_ = -1;
  std::string pending_;
};

// Runs `work` in a child process and returns what killed it ("" if nothing did): "crash: signal 11 (...)",
// "hang: ..." after `seconds`. The child sends lines to the parent by calling its argument; `line` receives them.
std::string run_isolated(const std::function<void(const SendLine& send)>& work,
                         const std::function<void(const std::string&)>& line, int seconds);

}  // namespace heddle::fuzz
