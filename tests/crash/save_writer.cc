// SPDX-License-Identifier: Apache-2.0
//
// The process that kill tests stop: save_writer DIRECTORY RANKS FIRST COUNT saves worlds FIRST,
// FIRST + 1, ... to DIRECTORY/ckpt, each with its number as metadata, ranks as threads. It says
// "ready" when it begins and "done N" when world N is saved. It is killed or ends after COUNT saves.
#include <unistd.h>

#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "tests/crash/numbered_world.h"

namespace shardwright::exec::test {
namespace {

void say(const std::string& text) {
  const std::string line = text + "\n";
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) _exit(3);
}

int write_worlds(const std::string& directory, int32_t ranks, uint64_t first, uint64_t count) {
  const std::unique_ptr<Runtime> runtime = make_runtime(2);
  const format::Location location{storage::make_posix_storage(directory), "ckpt"};
  say("ready");
  for (uint64_t number = first; number < first + count; ++number) {
    SaveOptions options;
    options.metadata["number"] = fmt::to_string(number);
    const auto results = save_world(*runtime, numbered_world(ranks, number), location, options);
    for (const Result<Report>& result : results) {
      if (result.ok()) continue;
      say("failed " + result.status().to_string());
      return 2;
    }
    say(fmt::format("done {}", number));
  }
  return 0;
}

}  // namespace
}  // namespace shardwright::exec::test

int main(int argc, char** argv) {
  if (argc != 5) return 1;
  return shardwright::exec::test::write_worlds(argv[1], std::atoi(argv[2]),
                                               std::strtoull(argv[3], nullptr, 10),
                                               std::strtoull(argv[4], nullptr, 10));
}
