// SPDX-License-Identifier: Apache-2.0
//
// The storages that are built in, alone and behind the wrappers, before the conformance suite.
#include <cerrno>

#include "core/storage/backends.h"
#include "core/storage/posix/system_calls.h"
#include "tests/conformance/storage/storage_suite.h"
#include "tests/support/object_store.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::storage {
namespace {

// A kernel without openat2.
class OldKernel final : public KernelCalls {
 public:
  int open_beneath(int, const char*, int) override { return -ENOSYS; }
  int rename_new(const DirectoryName&, const DirectoryName&) override { return -EINVAL; }
  int preallocate(const OpenFile&, uint64_t) override { return -EOPNOTSUPP; }
};

// A kernel whose rings are forbidden, as in most containers.
class WithoutRing final : public KernelCalls {
 public:
  std::unique_ptr<Ring> open_ring(uint32_t, int* error) override {
    *error = -EPERM;
    return nullptr;
  }
};

StorageUnderTest make_posix(std::shared_ptr<SystemCalls> calls) {
  auto directory = std::make_shared<test::TemporaryDirectory>();
  StorageUnderTest made;
  made.storage = make_posix_storage(*directory / "root", std::move(calls));
  made.owned = {directory};
  return made;
}

StorageUnderTest make_memory() {
  return {{}, make_memory_storage()};
}

StorageUnderTest behind(StorageUnderTest inner, std::shared_ptr<Storage> outer) {
  inner.owned.push_back(inner.storage);
  inner.storage = std::move(outer);
  return inner;
}

StorageUnderTest without_faults(StorageUnderTest inner) {
  return behind(inner, make_fault_storage(*inner.storage,
                                          [](const StorageEvent&, uint64_t*) { return Status(); }));
}

StorageUnderTest recorded(StorageUnderTest inner) {
  return behind(inner, make_recording_storage(*inner.storage, [](const StorageEvent&) {}));
}

INSTANTIATE_TEST_SUITE_P(
    BuiltIn, StorageConformance,
    testing::Values(
        StorageMaker{"memory", make_memory},
        StorageMaker{
            "object_store",
            [] { return StorageUnderTest{{}, std::make_shared<test::ObjectStore>(5 << 20)}; }},
        StorageMaker{"posix", [] { return make_posix(std::make_shared<KernelCalls>()); }},
        StorageMaker{"posix_direct", [] { return make_posix(std::make_shared<KernelCalls>()); },
                     true},
        StorageMaker{"posix_direct_threads",
                     [] { return make_posix(std::make_shared<WithoutRing>()); }, true},
        StorageMaker{"posix_old_kernel", [] { return make_posix(std::make_shared<OldKernel>()); }},
        StorageMaker{"fault_memory", [] { return without_faults(make_memory()); }},
        StorageMaker{"fault_posix",
                     [] { return without_faults(make_posix(std::make_shared<KernelCalls>())); }},
        StorageMaker{"recording_memory", [] { return recorded(make_memory()); }},
        StorageMaker{"fault_posix_direct",
                     [] { return without_faults(make_posix(std::make_shared<KernelCalls>())); },
                     true},
        StorageMaker{"recording_posix_direct",
                     [] { return recorded(make_posix(std::make_shared<KernelCalls>())); }, true},
        StorageMaker{"recording_posix",
                     [] { return recorded(make_posix(std::make_shared<KernelCalls>())); }}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace shardwright::storage
