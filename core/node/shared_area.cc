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

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace shardwright::node {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr char kName[] = "shardwright";
constexpr uint64_t kPageBytes = 4096;
// So many bytes around one that is read the system maps with it.
constexpr uint64_t kMappedAroundBytes = uint64_t{64} << 10;

Status failed(int error, std::string_view doing) {
  return status_from_errno(error, doing, "memory for the processes of this machine");
}

// Neither a limit on the size of files nor pages that are not there yet may become a signal. Zeros
// are written, as pages that are only reserved are cleared one by one when they are first met.
Status fill_and_seal(int descriptor, uint64_t size_bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < size_bytes)
    return failed(EFBIG, "set the size of");
  if (::ftruncate(descriptor, static_cast<off_t>(size_bytes)) != 0)
    return failed(errno, "set the size of");
  static constexpr std::array<std::byte, kMappedAroundBytes> kZeros{};
  for (uint64_t filled = 0; filled < size_bytes;) {
    const uint64_t most = std::min<uint64_t>(kZeros.size(), size_bytes - filled);
    const ssize_t wrote = ::pwrite(descriptor, kZeros.data(), most, static_cast<off_t>(filled));
    if (wrote <= 0) return failed(wrote < 0 ? errno : ENOSPC, "reserve");
    filled += static_cast<uint64_t>(wrote);
  }
  if (::fcntl(descriptor, F_ADD_SEALS, kSeals) != 0) return failed(errno, "seal");
  return {};
}

// Maps what is there: with MAP_POPULATE the system looks at each page by itself, which takes ten
// times as long.
void touch(std::span<const std::byte> bytes) {
  const auto* const at = reinterpret_cast<const volatile std::byte*>(bytes.data());
  for (size_t offset = 0; offset < bytes.size(); offset += kMappedAroundBytes)
    static_cast<void>(at[offset]);
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
      ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) {
    const int error = errno;
    ::close(descriptor);
    return failed(error, "map");
  }
  SharedArea area(descriptor, {static_cast<std::byte*>(memory), size_bytes});
  touch(area.bytes());
  return area;
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
