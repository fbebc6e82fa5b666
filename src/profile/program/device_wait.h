#pragma once

namespace heddle::profile {

// Waits until every GPU that this process uses has done what it was asked to; nothing where it uses none. What runs
// when a collection ends is not recorded.
void wait_for_devices();

}  // namespace heddle::profile
