#include "base/build_id.h"

#include <gmock/gmock.h>
#include <unistd.h>

namespace heddle {
namespace {

using ::testing::MatchesRegex;

TEST(BuildId, IsTheLinkersHashWhateverTheFileIsCalled) {
  EXPECT_THAT(build_id(), MatchesRegex("[0-9a-f]{40}"));
}

}  // namespace
}  // namespace heddle
