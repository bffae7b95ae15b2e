// SPDX-License-Identifier: Apache-2.0
//
// pidfd_open: a descriptor of a process, readable once it has ended.
#include "core/node/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>
#include <string>

#include "core/integrity/digest.h"

namespace shardwright::node {
namespace {

// Changes with each boot; "" where it cannot be read.
std::string boot_id() {
  std::array<char, 64> text{};
  const int file = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  const ssize_t size = ::read(file, text.data(), text.size());
  ::close(file);
  return {text.data(), static_cast<size_t>(size < 0 ? 0 : size)};
}

}  // namespace

Result<Digest128> neighbourhood(uint32_t rules) {
  std::string text = boot_id();
  struct stat processes{};
  if (text.empty() || ::stat("/proc/self/ns/pid", &processes) != 0)
    return unimplemented("the system does not say which boot and which processes these are");
  for (const uint64_t number :
       {static_cast<uint64_t>(processes.st_dev), static_cast<uint64_t>(processes.st_ino),
        static_cast<uint64_t>(::geteuid()), static_cast<uint64_t>(rules)}) {
    text += '\n';
    text += std::to_string(number);
  }
  return integrity::xxh3_128(std::as_bytes(std::span(text)));
}

Result<Digest128> random_mark() {
  Digest128 mark;
  if (::getrandom(&mark, sizeof(mark), 0) != static_cast<ssize_t>(sizeof(mark)))
    return unavailable("the system's generator gave no random bytes");
  return mark;
}

ProcessWatch::ProcessWatch(int32_t process) {
  descriptor_ = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  was_gone_ = descriptor_ < 0 && errno == ESRCH;
}

ProcessWatch::~ProcessWatch() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

ProcessWatch::ProcessWatch(ProcessWatch&& other) noexcept
    : descriptor_(other.descriptor_), was_gone_(other.was_gone_) {
  other.descriptor_ = -1;
}

bool ProcessWatch::has_ended() const {
  if (descriptor_ < 0) return was_gone_;
  pollfd watched{descriptor_, POLLIN, 0};
  return ::poll(&watched, 1, 0) > 0;
}

}  // namespace shardwright::node
