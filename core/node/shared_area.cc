// SPDX-License-Identifier: Apache-2.0
//
// A memfd: sealed against changes of its size, so that no access can meet a page that is gone, and
// opened by others through /proc.
#include "core/node/shared_area.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace shardwright::node {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr char kName[] = "shardwright";
constexpr uint64_t kPageBytes = 4096;

Status failed(int error, std::string_view doing) {
  return status_from_errno(error, doing, "memory for the processes of this machine");
}

// Neither a limit on the size of files nor pages that are not there yet may become a signal.
Status fill_and_seal(int descriptor, uint64_t size_bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < size_bytes)
    return failed(EFBIG, "set the size of");
  const auto size = static_cast<off_t>(size_bytes);
  if (::ftruncate(descriptor, size) != 0) return failed(errno, "set the size of");
  int reserved = 0;
  do {
    reserved = ::fallocate(descriptor, 0, 0, size);
  } while (reserved != 0 && errno == EINTR);
  if (reserved != 0) return failed(errno, "reserve");
  if (::fcntl(descriptor, F_ADD_SEALS, kSeals) != 0) return failed(errno, "seal");
  return {};
}

}  // namespace

SharedArea::~SharedArea() {
  release();
}

SharedArea::SharedArea(SharedArea&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), bytes_(std::exchange(other.bytes_, {})) {}

SharedArea& SharedArea::operator=(SharedArea&& other) noexcept {
  if (this == &other) return *this;
  release();
  descriptor_ = std::exchange(other.descriptor_, -1);
  bytes_ = std::exchange(other.bytes_, {});
  return *this;
}

void SharedArea::release() noexcept {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  if (descriptor_ >= 0) ::close(descriptor_);
}

void SharedArea::close_handle() noexcept {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

Result<SharedArea> SharedArea::map(int descriptor, uint64_t size_bytes) {
  void* const memory =
      ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0);
  if (memory == MAP_FAILED) {
    const int error = errno;
    ::close(descriptor);
    return failed(error, "map");
  }
  return SharedArea(descriptor, {static_cast<std::byte*>(memory), size_bytes});
}

Result<SharedArea> SharedArea::create(uint64_t least_bytes) {
  // Whole pages: what is unmapped is all of them.
  const uint64_t size_bytes = (least_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  const int descriptor = ::memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) {
    if (errno == ENOSYS)
      return unimplemented("this system has no memory that processes share without a name");
    return failed(errno, "create");
  }
  Status filled = fill_and_seal(descriptor, size_bytes);
  if (!filled.ok()) {
    ::close(descriptor);
    return filled;
  }
  return map(descriptor, size_bytes);
}

Result<SharedArea> SharedArea::open(const AreaHandle& handle) {
  const std::string path = fmt::format("/proc/{}/fd/{}", handle.process, handle.descriptor);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return failed(errno, "open");
  struct stat found{};
  const int seals = ::fcntl(descriptor, F_GET_SEALS);  // -1 for what has none
  const bool is_area = ::fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode) &&
                       static_cast<uint64_t>(found.st_size) == handle.size_bytes && seals >= 0 &&
                       (seals & kSeals) == kSeals;
  if (!is_area || handle.size_bytes == 0) {
    ::close(descriptor);
    return data_loss(fmt::format("{} is no shared memory of {} bytes whose size is fixed", path,
                                 handle.size_bytes));
  }
  return map(descriptor, handle.size_bytes);
}

AreaHandle SharedArea::handle() const {
  return {::getpid(), descriptor_, bytes_.size()};
}

}  // namespace shardwright::node
