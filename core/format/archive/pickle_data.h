// SPDX-License-Identifier: Apache-2.0
//
// PickleData: what a pickle holds, as data. Values are small references into an arena; calls,
// instances and globals are nodes that say what a Python interpreter would have made, and nothing
// of them is ever carried out. Values may be shared and may contain themselves, so whoever walks
// them bounds its steps and its depth. Immutable, any thread; views live as long as the data and
// the bytes that it was read from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardwright::format::archive {

namespace internal {
class PickleArena;
struct PickleSegment;
}  // namespace internal

// A value of one PickleData. Equal references are one Python object; the reverse need not hold.
struct PickleRef {
  uint32_t bits = 0;  // 0 = absent: a field that was not set
  bool is_absent() const { return bits == 0; }
  friend bool operator==(PickleRef, PickleRef) = default;
};

enum class PickleKind : uint8_t {
  kAbsent,
  kNone,
  kBool,
  kInteger,      // fits int64_t
  kLongInteger,  // wider: bytes() is two's complement, little-endian
  kReal,
  kText,   // str, or an ASCII str of Python 2; UTF-8 in which lone surrogates may stand
  kBytes,  // bytes, or another str of Python 2
  kByteArray,
  kTuple,
  kList,
  kDict,
  kSet,
  kFrozenSet,
  kGlobal,      // something that is looked up by module and name
  kRecord,      // an instance or a call of a known global: its fields or arguments
  kObject,      // any other call or instance
  kPersistent,  // what a persistent id stands for; target() is the id
};

// How an object is made.
enum class PickleMaking : uint8_t {
  kCall,      // REDUCE, INST, OBJ: the callable is called
  kInstance,  // NEWOBJ, NEWOBJ_EX: __new__ of the class is called
};

// A global that the pickle names, in the order of appearance.
struct PickleGlobal {
  std::string_view module;
  std::string_view name;
  uint64_t offset = 0;     // of the opcode that looks it up first
  int32_t known = -1;      // position in the vocabulary, -1 = not in it
  uint64_t imports = 0;    // times that it is looked up
  uint64_t calls = 0;      // times that it is called
  uint64_t odd_calls = 0;  // those that the vocabulary does not allow
  uint64_t instances = 0;  // times that an object of it is made without a call
};

// The parts of a list, set or dict in order; of a dict key and value in turns.
class PickleCursor {
 public:
  bool next(PickleRef* value) {
    if (at_ == end_ && !advance()) return false;
    *value = *at_++;
    return true;
  }

 private:
  friend class PickleData;
  explicit PickleCursor(const internal::PickleSegment* last);
  bool advance();
  const internal::PickleSegment* segment_ = nullptr;  // the one that is walked
  const internal::PickleSegment* last_ = nullptr;
  const PickleRef* at_ = nullptr;
  const PickleRef* end_ = nullptr;
};

class PickleData {
 public:
  explicit PickleData(std::unique_ptr<internal::PickleArena> arena, PickleRef root);
  PickleData(PickleData&&) noexcept;
  PickleData& operator=(PickleData&&) noexcept;
  ~PickleData();

  PickleRef root() const { return root_; }
  PickleKind kind(PickleRef value) const;
  bool boolean(PickleRef value) const;                      // kBool
  int64_t integer(PickleRef value) const;                   // kInteger
  double real(PickleRef value) const;                       // kReal
  std::string_view text(PickleRef value) const;             // kText
  std::span<const std::byte> bytes(PickleRef value) const;  // kBytes, kByteArray, kLongInteger
  std::span<const PickleRef> tuple(PickleRef value) const;  // kTuple, kFrozenSet
  PickleCursor parts(PickleRef value) const;   // kList, kSet, kDict; of kObject: appended values
  PickleCursor pairs(PickleRef value) const;   // kDict; of kObject: key and value in turns
  uint64_t part_count(PickleRef value) const;  // kList, kSet: values; kDict: pairs

  // kGlobal.
  const PickleGlobal& global(PickleRef value) const;
  // kRecord, and kObject whose callable is a global: position in the vocabulary, or -1.
  int32_t known(PickleRef value) const;
  // kRecord: of an instance the fields of its class in their order, absent ones included; of a call
  // its arguments.
  std::span<const PickleRef> fields(PickleRef value) const;
  // kRecord, kObject: what BUILD sets; absent when there is none, and for a record whose fields
  // hold all of it.
  PickleRef state(PickleRef value) const;
  // kObject.
  PickleMaking making(PickleRef value) const;
  PickleRef callable(PickleRef value) const;   // a global, or a value that would be computed
  PickleRef arguments(PickleRef value) const;  // a tuple
  PickleRef keywords(PickleRef value) const;   // of NEWOBJ_EX, else absent
  // kPersistent.
  PickleRef target(PickleRef value) const;

  // All globals that the pickle names.
  std::span<const PickleGlobal> globals() const;
  // Bytes of the arena, for limits and tests.
  uint64_t arena_bytes() const;

 private:
  std::unique_ptr<internal::PickleArena> arena_;
  PickleRef root_;
};

}  // namespace shardwright::format::archive
