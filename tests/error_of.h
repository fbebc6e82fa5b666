#pragma once

#include <gtest/gtest.h>

#include "heddle/error.h"

namespace heddle::test {

// The error that an action ends with; a failure of the test where it ends without one.
template <typename Action>
Error error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorCode::kInternal, "test", "nothing was thrown");
}

}  // namespace heddle::test
