// SPDX-License-Identifier: Apache-2.0
//
// Pause points of the writer that kill tests stop: at the place that SHW_TEST_PAUSE_AT names it says
// so on the descriptor SHW_TEST_PAUSE_FD and waits for its end.
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "core/exec/pause_points.h"

namespace shardwright::exec::internal {

void pause_point(std::string_view name) {
  const char* wanted = std::getenv("SHW_TEST_PAUSE_AT");
  const char* descriptor = std::getenv("SHW_TEST_PAUSE_FD");
  if (wanted == nullptr || descriptor == nullptr || name != wanted) return;
  const std::string line = std::string(name) + "\n";
  if (write(std::atoi(descriptor), line.data(), line.size()) < 0) _exit(3);
  while (true) pause();
}

}  // namespace shardwright::exec::internal
