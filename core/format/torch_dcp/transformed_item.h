// SPDX-License-Identifier: Apache-2.0
//
// Items that went through torch's stream transforms on their way into a file: what is stored is no
// archive, but what a transform made of one. "stream.zstd/1" is undone, in memory; no other is. The
// functions are pure but for the reads; kept archives are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/concurrency/mutex.h"
#include "core/format/archive/archive_bytes.h"
#include "core/format/derived_items.h"
#include "core/tensor/dtype.h"

namespace shardwright::format::torch_dcp {

// UNIMPLEMENTED naming the descriptors, joined by blanks, when they cannot be undone. file and
// offset: of the item.
Status check_transforms(std::string_view descriptors, std::string_view file, uint64_t offset);

// Bytes that an archive of a tensor of so many bytes may have.
uint64_t most_archive_bytes(uint64_t tensor_bytes);

// What an item was before its transform. The failures of unpack_zstd; RESOURCE_EXHAUSTED for more
// than 4 GiB.
Result<std::vector<std::byte>> unpack_item(const archive::ArchiveBytes& stored,
                                           uint64_t most_bytes);
// The same as the archive that it must be, its checksums compared. The failures of reading an
// archive, too.
Result<std::vector<std::byte>> undo_transform(const archive::ArchiveBytes& stored,
                                              uint64_t most_bytes);

// find_elements of the archive that an item was. The source's offset counts in that archive. Only
// the beginning is unpacked where that shows it.
Result<StridedSource> find_transformed_elements(const archive::ArchiveBytes& stored,
                                                uint64_t most_bytes, DType dtype,
                                                std::span<const int64_t> sizes);

// Archives that were unpacked last, so that reading one in parts unpacks it once.
class UnpackedArchives {
 public:
  using Bytes = std::vector<std::byte>;
  using Unpack = std::function<Result<Bytes>()>;

  // The archive of that number, unpacked now unless it is kept. One thread unpacks it, those that
  // want the same one wait. A failure is not kept.
  Result<std::shared_ptr<const Bytes>> get(uint64_t number, const Unpack& unpack);

 private:
  struct Slot {
    explicit Slot(uint64_t of) : number(of) {}
    const uint64_t number;
    Mutex mutex;                                               // held while the archive is unpacked
    std::shared_ptr<const Bytes> bytes SHW_GUARDED_BY(mutex);  // co-owned by reads under way
    uint64_t kept_bytes = 0;                                   // guarded by the archives' mutex
  };
  std::shared_ptr<Slot> slot_of(uint64_t number);
  void count(Slot* slot, uint64_t bytes);

  Mutex mutex_;
  // The most recent first; co-owned by those who unpack.
  std::list<std::shared_ptr<Slot>> slots_ SHW_GUARDED_BY(mutex_);
};

// The archive that get gives, as a file to be read. name: for messages.
std::unique_ptr<storage::StorageObject> open_unpacked(
    std::function<Result<std::shared_ptr<const UnpackedArchives::Bytes>>()> get, std::string name);

}  // namespace shardwright::format::torch_dcp
