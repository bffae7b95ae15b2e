// SPDX-License-Identifier: Apache-2.0
//
// Crew: victims (victim/victim.c) that run at once, and the test's side of their sockets. It brings
// ranks together, tells those that wait when one of them is gone, and keeps what they report. A
// victim that is silent for longer than any operation takes is a hang and fails the test. One
// thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "tests/crash/victim/channel.h"

namespace shardwright::crash {

// What a victim says at the end of one operation of its script.
struct OperationReport {
  uint64_t operation = 0;
  int32_t status = 0;
  uint64_t number = 0;
  std::string text;
};

struct VictimOutcome {
  std::vector<OperationReport> reports;
  std::optional<uint64_t> steps;  // nullopt = it did not come to its end
  bool was_killed = false;
  std::string trouble;  // "" or how it ended when it was neither
};

struct VictimSettings {
  std::string path;
  std::string script;
  std::vector<std::string> settings = {};  // KEY=VALUE of victim.c
  std::string log = {};                    // file that events are appended to, "" = none
};

class Crew {
 public:
  Crew() = default;
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Starts ranks of one job, or a job of one rank; returns the number of the first. They share a
  // process group, which kill_all ends.
  size_t start(const std::vector<VictimSettings>& ranks);
  // Serves all victims until all have ended.
  void run();
  // Serves all victims until this one has stopped (its setting stop_at) or ended; true = stopped.
  bool run_until_stopped(size_t victim);
  // The first has stopped: the second runs until it stops, waits for a lock that another holds, or
  // ends, then the first, and so on until both have ended.
  void run_in_turns(size_t first, size_t second);
  const VictimOutcome& outcome(size_t victim) const { return victims_[victim].outcome; }
  // "" or what went wrong with the crew itself: a hang, a message out of order, a signal.
  const std::string& trouble() const { return trouble_; }

 private:
  struct Victim {
    pid_t process = 0;
    int socket = -1;  // -1 = ended
    size_t job = 0;
    int32_t rank = 0;
    bool is_stopped = false;
    int refusals = 0;         // of locks, since the last turn
    bool is_waiting = false;  // in a meeting
    message meeting{};
    std::string bytes;
    VictimOutcome outcome;
  };
  struct Job {
    size_t first = 0;
    size_t ranks = 0;
    std::string why_over;  // "" = all are there
    int32_t over_status = 0;
    int32_t over_rank = 0;
  };

  void run_until_halted(size_t victim);
  void go_on(size_t victim);
  void serve_once();
  void take_message(Victim* victim);
  void end(Victim* victim);
  void call_off(Job* job, int32_t rank, int32_t status, const std::string& why);
  void answer(Job* job);
  void fail(const std::string& why);
  bool anyone_left() const;

  std::deque<Victim> victims_;
  std::deque<Job> jobs_;
  std::string trouble_;
};

}  // namespace shardwright::crash
