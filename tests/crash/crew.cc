// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/crew.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include <shardwright/shardwright.h>

namespace shardwright::crash {
namespace {

constexpr int kSilenceMs = 100'000;  // nothing that a victim does takes this long
constexpr int kRefusals = 3;         // of a lock: whoever waits for it asks again, others go on

// In the child: becomes the victim.
[[noreturn]] void become(const VictimSettings& settings, int socket, pid_t group, int32_t rank,
                         size_t ranks) {
  setpgid(0, group);
  std::vector<std::string> words = {std::getenv("SHW_CRASH_VICTIM"),
                                    settings.path,
                                    settings.script,
                                    fmt::format("socket={}", socket),
                                    fmt::format("rank={}", rank),
                                    fmt::format("ranks={}", ranks)};
  if (!settings.log.empty()) {
    const int log = ::open(settings.log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
    words.push_back(fmt::format("log={}", log));
  }
  for (const std::string& each : settings.settings) words.push_back(each);
  std::vector<char*> arguments;
  for (std::string& each : words) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

Crew::~Crew() {
  for (Victim& victim : victims_) {
    if (victim.socket < 0) continue;
    kill(victim.process, SIGKILL);
    end(&victim);
  }
}

size_t Crew::start(const std::vector<VictimSettings>& ranks) {
  const size_t first = victims_.size();
  jobs_.push_back({first, ranks.size(), "", 0, 0});
  pid_t group = 0;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) std::abort();
    const pid_t process = fork();
    if (process == 0) {
      fcntl(sockets[1], F_SETFD, 0);
      become(ranks[rank], sockets[1], group, static_cast<int32_t>(rank), ranks.size());
    }
    close(sockets[1]);
    if (group == 0) group = process;
    setpgid(process, group);
    Victim victim;
    victim.process = process;
    victim.socket = sockets[0];
    victim.job = jobs_.size() - 1;
    victim.rank = static_cast<int32_t>(rank);
    victims_.push_back(std::move(victim));
  }
  return first;
}

void Crew::fail(const std::string& why) {
  if (trouble_.empty()) trouble_ = why;
  for (const Victim& victim : victims_) {
    if (victim.socket >= 0) kill(victim.process, SIGKILL);
  }
}

bool Crew::anyone_left() const {
  for (const Victim& victim : victims_) {
    if (victim.socket >= 0) return true;
  }
  return false;
}

void Crew::run() {
  while (anyone_left()) serve_once();
}

bool Crew::run_until_stopped(size_t victim) {
  while (victims_[victim].socket >= 0 && !victims_[victim].is_stopped) serve_once();
  return victims_[victim].is_stopped;
}

void Crew::run_until_halted(size_t victim) {
  const Victim& watched = victims_[victim];
  while (watched.socket >= 0 && !watched.is_stopped && watched.refusals < kRefusals) serve_once();
}

void Crew::run_in_turns(size_t first, size_t second) {
  size_t running = second;
  size_t other = first;
  while (victims_[first].socket >= 0 || victims_[second].socket >= 0) {
    run_until_halted(running);
    // Whoever waits for a lock goes on trying; nobody waits for it.
    if (victims_[running].is_stopped && !victims_[other].is_stopped) go_on(running);
    if (victims_[other].is_stopped) go_on(other);
    victims_[other].refusals = 0;
    std::swap(running, other);
  }
}

void Crew::go_on(size_t victim) {
  victims_[victim].is_stopped = false;
  victims_[victim].refusals = 0;
  const message go{MESSAGE_GO, 0, 0, 0, 0};
  (void)channel_send(victims_[victim].socket, go, "");
}

// Waits for messages and takes one of each victim that has some.
void Crew::serve_once() {
  std::vector<pollfd> ready;
  std::vector<Victim*> owners;
  for (Victim& victim : victims_) {
    if (victim.socket < 0) continue;
    ready.push_back({victim.socket, POLLIN, 0});
    owners.push_back(&victim);
  }
  const int found = poll(ready.data(), ready.size(), kSilenceMs);
  if (found == 0) return fail("nothing happens any more: a victim hangs");
  for (size_t i = 0; found > 0 && i < ready.size(); ++i) {
    if (ready[i].revents != 0) take_message(owners[i]);
  }
}

void Crew::take_message(Victim* victim) {
  message head{};
  std::string bytes;
  bool is_whole = channel_receive(victim->socket, &head, sizeof(head)) != 0;
  if (is_whole) {
    bytes.resize(head.size);
    is_whole = channel_receive(victim->socket, bytes.data(), bytes.size()) != 0;
  }
  if (!is_whole) return end(victim);
  Job& job = jobs_[victim->job];
  switch (head.kind) {
    case MESSAGE_MEET:
      victim->is_waiting = true;
      victim->meeting = head;
      victim->bytes = std::move(bytes);
      return answer(&job);
    case MESSAGE_ABORT:
      return call_off(&job, victim->rank, head.value, bytes);
    case MESSAGE_REPORT:
      victim->outcome.reports.push_back({head.tag, head.value, head.number, std::move(bytes)});
      return;
    case MESSAGE_STEPS:
      victim->outcome.steps = head.number;
      return;
    case MESSAGE_STOPPED:
      victim->is_stopped = true;
      return;
    case MESSAGE_REFUSED:
      ++victim->refusals;
      return;
    default:
      fail(fmt::format("message {} from a victim", head.kind));
  }
}

void Crew::end(Victim* victim) {
  close(victim->socket);
  victim->socket = -1;
  victim->is_waiting = false;
  int status = 0;
  if (waitpid(victim->process, &status, 0) != victim->process) fail("a victim is lost");
  victim->outcome.was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  if (WIFSIGNALED(status) && !victim->outcome.was_killed) {
    victim->outcome.trouble = fmt::format("rank {} was ended by signal {} ({})", victim->rank,
                                          WTERMSIG(status), strsignal(WTERMSIG(status)));
  } else if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
    victim->outcome.trouble =
        fmt::format("rank {} ended with status {}", victim->rank, WEXITSTATUS(status));
  }
  if (trouble_.empty()) trouble_ = victim->outcome.trouble;
  call_off(&jobs_[victim->job], victim->rank, SHW_ABORTED,
           fmt::format("rank {} is gone", victim->rank));
}

// The first reason counts; those who wait hear it, and those who come later.
void Crew::call_off(Job* job, int32_t rank, int32_t status, const std::string& why) {
  if (job->why_over.empty()) {
    job->why_over = why;
    job->over_status = status;
    job->over_rank = rank;
  }
  answer(job);
}

// Answers a meeting that all have come to, or that somebody will never come to.
void Crew::answer(Job* job) {
  std::string all;
  bool is_complete = job->why_over.empty();
  for (size_t i = job->first; i < job->first + job->ranks; ++i) {
    const Victim& victim = victims_[i];
    const message& first = victims_[job->first].meeting;
    is_complete = is_complete && victim.is_waiting;
    if (is_complete && (victim.meeting.tag != first.tag || victim.meeting.number != first.number))
      fail("ranks are in different operations");
    all += victim.bytes;
  }
  if (!is_complete && job->why_over.empty()) return;
  for (size_t i = job->first; i < job->first + job->ranks; ++i) {
    Victim& victim = victims_[i];
    if (!victim.is_waiting) continue;
    victim.is_waiting = false;
    victim.bytes.clear();
    if (is_complete) {
      const message gathered{MESSAGE_GATHERED, 0, 0, 0, all.size()};
      (void)channel_send(victim.socket, gathered, all.data());
    } else {
      const message gone{MESSAGE_GONE, job->over_status, 0, static_cast<uint64_t>(job->over_rank),
                         job->why_over.size()};
      (void)channel_send(victim.socket, gone, job->why_over.data());
    }
  }
}

}  // namespace shardwright::crash
