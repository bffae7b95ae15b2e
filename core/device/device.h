// SPDX-License-Identifier: Apache-2.0
//
// Device: the interface to where the bytes of tensors lie. Everything that reads or writes them
// goes through it (gather, scatter, copy, cast, fill), so that a kind of memory is one
// implementation in a folder of its own (host/). Addresses of a window are those of its device:
// nobody else looks behind them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/digest128.h"
#include "core/base/result.h"
#include "core/tensor/dtype.h"
#include "core/tensor/strided_window.h"
#include "core/tensor/window_access.h"

namespace shardwright::device {

class Device;

// Elements of a tensor where they lie.
struct DeviceWindow {
  Device* device = nullptr;  // not owned
  StridedWindow elements;
  int32_t device_id = 0;
  uint64_t stream = 0;             // where the host has put work on this memory; 0 = none
  WindowAccess* access = nullptr;  // not owned; of memory that only this one reaches
};

// All calls come from any thread, several at once, also for one tensor (for different bytes where
// they write), and return when the bytes are there. Windows are of this device; dense bytes and
// source windows are host memory and do not overlap them. A failure says what the device said; the
// caller adds the tensor. What was written by a call that failed is undefined.
class Device {
 public:
  virtual ~Device() = default;

  // "host", "cuda"; for messages.
  virtual std::string_view name() const = 0;

  // The bytes of the window where the host may read and write them itself: empty when they do not
  // lie in one run or the host cannot reach them. Storages read into it and digests are made of it
  // without a copy.
  virtual std::span<std::byte> host_bytes(const DeviceWindow& window) const = 0;

  // Copies bytes [begin, begin + to.size()) of the window's row-major byte run. begin may fall
  // inside an element.
  virtual Status gather(const DeviceWindow& from, uint64_t begin, std::span<std::byte> to) = 0;
  // The same, and XXH3-128 of what came.
  virtual Result<Digest128> gather_and_digest(const DeviceWindow& from, uint64_t begin,
                                              std::span<std::byte> to) = 0;
  // The reverse of gather.
  virtual Status scatter(std::span<const std::byte> from, const DeviceWindow& to,
                         uint64_t begin) = 0;
  // Copies elements of a host window to the same ones of a window of the same shape and element
  // size. Only those elements are touched: the rest of either window need not be there.
  virtual Status copy(const StridedWindow& from, const DeviceWindow& to, ElementRange range) = 0;

  // True when cast() converts these.
  virtual bool casts(DType from, DType to) const = 0;
  // copy() between dtypes by the rules of core/tensor/cast.h. UNIMPLEMENTED when casts() is false.
  virtual Status cast(const StridedWindow& from, DType stored, const DeviceWindow& to, DType wanted,
                      ElementRange range) = 0;

  // Zero in every element.
  virtual Status fill_zero(const DeviceWindow& to) = 0;
};

}  // namespace shardwright::device
