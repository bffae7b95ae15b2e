// SPDX-License-Identifier: Apache-2.0
#include "core/format/archive/zstd_frames.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "core/base/text.h"

namespace shardwright::format::archive {
namespace {

constexpr uint64_t kReadBytes = uint64_t{256} << 10;  // of the frames at a time
constexpr uint64_t kFirstBytes = uint64_t{256} << 10;
// What every Zstandard reads without being asked for more, and the largest that one may have.
constexpr int kUsualWindowLog = 23;
constexpr int kLargestWindowLog = 31;

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

class Unpacker {
 public:
  Unpacker(const ArchiveBytes& stored, uint64_t most_bytes, uint64_t wanted_bytes)
      : stored_(stored), most_(most_bytes), wanted_(wanted_bytes), context_(ZSTD_createDCtx()) {
    const int bits = static_cast<int>(std::bit_width(most_bytes));
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax,
                           std::clamp(bits, kUsualWindowLog, kLargestWindowLog));
  }

  Result<std::vector<std::byte>> run() {
    if (context_ == nullptr) return out_of_memory();
    while (filled_ < wanted_ && !(is_between_frames_ && offset() == stored_.size_bytes)) {
      // Without room there may be more to come of what was read.
      if (input_.pos == input_.size && filled_ < output_.size()) SHW_RETURN_IF_ERROR(refill());
      SHW_RETURN_IF_ERROR(step());
    }
    output_.resize(static_cast<size_t>(std::min(filled_, wanted_)));
    return std::move(output_);
  }

 private:
  uint64_t offset() const { return position_ - (input_.size - input_.pos); }

  Status refill() {
    if (position_ == stored_.size_bytes)
      return stored_.damaged(position_, "a frame of zstd is cut short");
    read_.resize(static_cast<size_t>(std::min(kReadBytes, stored_.size_bytes - position_)));
    SHW_RETURN_IF_ERROR(stored_.read_range(position_, read_, "frames of zstd"));
    position_ += read_.size();
    input_ = {read_.data(), read_.size(), 0};
    return {};
  }

  // Room for more, one byte above what is allowed, by which more is seen.
  void make_room() {
    if (filled_ < output_.size()) return;
    const uint64_t limit = std::min(most_ + 1, wanted_);
    output_.resize(static_cast<size_t>(std::min(limit, std::max(kFirstBytes, 2 * filled_))));
  }

  Status step() {
    make_room();
    ZSTD_outBuffer room{output_.data() + filled_, output_.size() - static_cast<size_t>(filled_), 0};
    const uint64_t begin = offset();
    const size_t left = ZSTD_decompressStream(context_.get(), &room, &input_);
    if (ZSTD_isError(left) != 0) return failed(begin, left);
    filled_ += room.pos;
    is_between_frames_ = left == 0;
    if (filled_ <= most_) return {};
    return stored_.damaged(begin, fmt::format("its frames of zstd hold more than the {} bytes that "
                                              "can be expected of it",
                                              most_));
  }

  Status failed(uint64_t at, size_t code) const {
    const char* const what = ZSTD_getErrorName(code);
    if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation) return out_of_memory();
    if (ZSTD_getErrorCode(code) != ZSTD_error_frameParameter_windowTooLarge)
      return stored_.damaged(at, fmt::format("its frames of zstd are not sound: {}", what));
    return resource_exhausted(
               "memory", fmt::format("file '{}': a frame of zstd at {} has a larger window than "
                                     "what it may hold: {}",
                                     escape_text(stored_.file), stored_.file_offset + at, what))
        .with_detail("file", stored_.file)
        .with_detail("offset", fmt::to_string(stored_.file_offset + at));
  }

  const ArchiveBytes& stored_;
  const uint64_t most_;
  const uint64_t wanted_;
  const std::unique_ptr<ZSTD_DCtx, FreeContext> context_;
  std::vector<std::byte> read_;
  ZSTD_inBuffer input_{nullptr, 0, 0};
  uint64_t position_ = 0;  // behind what was read
  std::vector<std::byte> output_;
  uint64_t filled_ = 0;
  bool is_between_frames_ = false;
};

}  // namespace

Result<std::vector<std::byte>> unpack_zstd(const ArchiveBytes& stored, uint64_t most_bytes,
                                           uint64_t wanted_bytes) {
  return Unpacker(stored, most_bytes, wanted_bytes).run();
}

}  // namespace shardwright::format::archive
