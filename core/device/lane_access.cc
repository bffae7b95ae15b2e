// SPDX-License-Identifier: Apache-2.0
//
// A window is a list of runs of bytes, as long as they lie back to back. Where it is one run, bytes
// travel between it and the pinned memory. Else runs are gathered, or spread, by the device, in
// memory of its own: so few and large pieces travel, and bytes between the runs are not touched.
#include "core/device/lane_access.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/base/copy_bytes.h"
#include "core/base/without_exceptions.h"
#include "core/concurrency/mutex.h"

namespace shardwright::device {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{4} << 20;
constexpr size_t kMostCallers = 4;

// The runs of a window: all are equally long, and `count` of them are `pitch` bytes apart before
// the next ones begin elsewhere.
class WindowRuns {
 public:
  explicit WindowRuns(const StridedWindow& window)
      : window_(window), dims_(window.shape.size()), run_bytes_(window.element_bytes) {
    while (dims_ > 0 && (window.shape[dims_ - 1] == 1 || lies_dense(dims_ - 1)))
      run_bytes_ *= static_cast<uint64_t>(window.shape[--dims_]);
  }

  // Calls step(ElementCopy of bytes) for all runs in [begin, begin + bytes.size()) of the window's
  // bytes: those of the window are its source, those of `bytes` its target.
  template <typename Step>
  Status each(uint64_t begin, std::span<std::byte> bytes, const Step& step) const {
    for (size_t done = 0; done < bytes.size();) {
      const uint64_t at = begin + done;
      const uint64_t inside = at % run_bytes_;
      ElementCopy runs;
      runs.source_dtype = DType::kUint8;
      runs.target_dtype = DType::kUint8;
      runs.source = address(at / run_bytes_) + inside;
      runs.target = bytes.data() + done;
      runs.columns = std::min<uint64_t>(run_bytes_ - inside, bytes.size() - done);
      if (runs.columns == run_bytes_)
        runs.rows = std::min((bytes.size() - done) / run_bytes_, runs_behind(at / run_bytes_));
      runs.source_pitch = pitch();
      runs.target_pitch = runs.columns;
      SHW_RETURN_IF_ERROR(step(runs));
      done += static_cast<size_t>(runs.rows * runs.columns);
    }
    return {};
  }
  bool is_one() const { return dims_ == 0; }

 private:
  bool lies_dense(size_t dim) const {
    return static_cast<uint64_t>(window_.strides[dim]) * window_.element_bytes == run_bytes_;
  }
  uint64_t pitch() const {
    if (is_one()) return run_bytes_;
    return static_cast<uint64_t>(window_.strides[dims_ - 1]) * window_.element_bytes;
  }
  // From this run to the end of the last dimension that is not part of it.
  uint64_t runs_behind(uint64_t run) const {
    if (is_one()) return 1;
    const auto extent = static_cast<uint64_t>(window_.shape[dims_ - 1]);
    return extent - run % extent;
  }
  std::byte* address(uint64_t run) const {
    int64_t elements = 0;
    for (size_t dim = dims_; dim-- > 0;) {
      const auto extent = static_cast<uint64_t>(window_.shape[dim]);
      elements += static_cast<int64_t>(run % extent) * window_.strides[dim];
      run /= extent;
    }
    return window_.data + elements * static_cast<int64_t>(window_.element_bytes);
  }

  const StridedWindow& window_;
  size_t dims_;  // that runs are told apart by
  uint64_t run_bytes_;
};

// A lane and memory on both sides of it. Used by one caller at a time.
class Passage {
 public:
  static Result<std::unique_ptr<Passage>> create(std::shared_ptr<LaneDevice> device) {
    auto passage = std::unique_ptr<Passage>(new Passage(std::move(device)));
    SHW_ASSIGN_OR_RETURN(passage->lane_, passage->device_->make_lane(0));
    SHW_ASSIGN_OR_RETURN(passage->pinned_, passage->device_->allocate_pinned(kPieceBytes));
    return passage;
  }
  ~Passage() {
    lane_.reset();  // waits for what uses the memory
    device_->release_pinned(pinned_);
    device_->release(packed_);
  }
  Passage(const Passage&) = delete;
  Passage& operator=(const Passage&) = delete;

  // At most kPieceBytes.
  Status gather(const StridedWindow& from, uint64_t begin, std::span<std::byte> to) {
    const std::span<std::byte> here = pinned_.first(to.size());
    SHW_RETURN_IF_ERROR(finish(start_gather(from, begin, here)));
    copy_bytes(here, to);
    return {};
  }
  Status scatter(std::span<const std::byte> from, const StridedWindow& to, uint64_t begin) {
    const std::span<std::byte> here = pinned_.first(from.size());
    copy_bytes(from, here);
    return finish(start_scatter(here, to, begin));
  }

 private:
  explicit Passage(std::shared_ptr<LaneDevice> device) : device_(std::move(device)) {}

  Status start_gather(const StridedWindow& from, uint64_t begin, std::span<std::byte> here) {
    const WindowRuns runs(from);
    if (runs.is_one())
      return device_->copy(*lane_, CopyKind::kDeviceToHost,
                           std::span(from.data + begin, here.size()), here);
    SHW_RETURN_IF_ERROR(need_packed());
    const std::span<std::byte> packed = packed_.first(here.size());
    SHW_RETURN_IF_ERROR(runs.each(begin, packed, [&](const ElementCopy& copy) {
      return device_->copy_elements(*lane_, copy);
    }));
    return device_->copy(*lane_, CopyKind::kDeviceToHost, packed, here);
  }
  Status start_scatter(std::span<std::byte> here, const StridedWindow& to, uint64_t begin) {
    const WindowRuns runs(to);
    if (runs.is_one())
      return device_->copy(*lane_, CopyKind::kHostToDevice, here,
                           std::span(to.data + begin, here.size()));
    SHW_RETURN_IF_ERROR(need_packed());
    const std::span<std::byte> packed = packed_.first(here.size());
    SHW_RETURN_IF_ERROR(device_->copy(*lane_, CopyKind::kHostToDevice, here, packed));
    return runs.each(begin, packed, [&](const ElementCopy& gathered) {
      ElementCopy spread = gathered;
      spread.source = gathered.target;
      spread.target = const_cast<std::byte*>(gathered.source);  // of the window, to be written
      std::swap(spread.source_pitch, spread.target_pitch);
      return device_->copy_elements(*lane_, spread);
    });
  }
  // Memory on both sides is in use until the lane has ended, also where not all was put on it.
  Status finish(Status started) {
    Status ended =
        without_exceptions("waiting for a lane", [this] { return lane_->synchronize(); });
    return started.ok() ? ended : started;
  }
  Status need_packed() {
    if (!packed_.empty()) return {};
    SHW_ASSIGN_OR_RETURN(packed_, device_->allocate(kPieceBytes));
    return {};
  }

  const std::shared_ptr<LaneDevice> device_;  // co-owned with the access
  LanePtr lane_;
  std::span<std::byte> pinned_;
  std::span<std::byte> packed_;  // of the device, once runs were gathered or spread
};

class LaneAccess final : public WindowAccess {
 public:
  explicit LaneAccess(std::shared_ptr<LaneDevice> device) : device_(std::move(device)) {}

  std::string_view name() const override { return device_->name(); }

  Status gather(const StridedWindow& from, uint64_t begin, std::span<std::byte> to) override {
    return in_pieces(to.size(), [&](Passage& passage, size_t at, size_t bytes) {
      return passage.gather(from, begin + at, to.subspan(at, bytes));
    });
  }
  Status scatter(std::span<const std::byte> from, const StridedWindow& to,
                 uint64_t begin) override {
    return in_pieces(from.size(), [&](Passage& passage, size_t at, size_t bytes) {
      return passage.scatter(from.subspan(at, bytes), to, begin + at);
    });
  }

 private:
  template <typename Step>
  Status in_pieces(size_t bytes, const Step& step) {
    if (bytes == 0) return {};
    Result<std::unique_ptr<Passage>> passage = take();
    Status outcome = passage.status();
    for (size_t at = 0; outcome.ok() && at < bytes; at += kPieceBytes)
      outcome = without_exceptions(
          "a copy", [&] { return step(**passage, at, std::min<size_t>(kPieceBytes, bytes - at)); });
    if (passage.ok()) give_back(*std::move(passage));
    if (outcome.ok()) return outcome;
    return std::move(outcome).annotated(fmt::format("device '{}'", device_->name()));
  }

  Result<std::unique_ptr<Passage>> take() SHW_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      while (idle_.empty() && made_ == kMostCallers) returned_.wait(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<Passage> passage = std::move(idle_.back());
        idle_.pop_back();
        return passage;
      }
      idle_.reserve(kMostCallers);
      ++made_;
    }
    Result<std::unique_ptr<Passage>> made =
        without_exceptions("making a lane", [this] { return Passage::create(device_); });
    if (made.ok()) return made;
    const MutexLock lock(mutex_);
    --made_;
    returned_.notify_one();
    return made;
  }
  void give_back(std::unique_ptr<Passage> passage) SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    idle_.push_back(std::move(passage));  // has room for all
    returned_.notify_one();
  }

  const std::shared_ptr<LaneDevice> device_;  // co-owned with whoever made it
  Mutex mutex_;
  Condition returned_;
  std::vector<std::unique_ptr<Passage>> idle_ SHW_GUARDED_BY(mutex_);
  size_t made_ SHW_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::shared_ptr<WindowAccess> make_lane_access(std::shared_ptr<LaneDevice> device) {
  return std::make_shared<LaneAccess>(std::move(device));
}

}  // namespace shardwright::device
