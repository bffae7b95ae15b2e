// SPDX-License-Identifier: Apache-2.0
//
// A test program that is its own victim: one of its tests runs in another process, in which
// something kills it.
#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <string>
#include <vector>

extern char** environ;

namespace shardwright::crash {

// Runs a test of this program in another process, with one variable more ("NAME=VALUE") in its
// environment. Whether it was killed.
inline bool is_killed_in(const std::string& test, const std::string& variable) {
  std::vector<char*> environment;
  for (char** each = environ; *each != nullptr; ++each) environment.push_back(*each);
  environment.push_back(const_cast<char*>(variable.c_str()));
  environment.push_back(nullptr);
  char program[] = "/proc/self/exe";
  std::string filter = "--gtest_filter=" + test;
  char output[] = "--gtest_output=";
  char* arguments[] = {program, filter.data(), output, nullptr};
  pid_t child = 0;
  if (posix_spawn(&child, program, nullptr, nullptr, arguments, environment.data()) != 0)
    return false;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

}  // namespace shardwright::crash
