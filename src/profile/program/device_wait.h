#pragma once

namespace heddle::profile {

// Waits until every GPU that this process uses is idle; does nothing if it uses none. Operations that still run when a
// collection ends are not recorded.
void wait_for_devices();

}  // namespace heddle::profile
