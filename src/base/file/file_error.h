#pragma once

#include <string>
#include <utility>

#include "heddle/error.h"

namespace heddle {

// A kFile error that the system reported. `number` is the errno value. fail_errno() throws it.
class FileError : public Error {
 public:
  FileError(std::string path, std::string why, int number, std::string remedy = {})
      : Error(ErrorCode::kFile, std::move(path), std::move(why), std::move(remedy)), number_(number) {}

  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace heddle
