#pragma once

namespace heddle::profile {

// Waits until every GPU that this process uses is idle; does nothing if the process uses no GPU. Call this before a
// collection ends: operations that still run at its end are not recorded.
void wait_for_devices();

}  // namespace heddle::profile
