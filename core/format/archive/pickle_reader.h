// SPDX-License-Identifier: Apache-2.0
//
// Reading of pickles of protocols 0 to 5 as data. The reader is a stack machine that builds values
// and nothing else: no module is imported, no callable called, no attribute set, whatever the bytes
// say. Globals that the caller knows (its vocabulary) become records with named fields, all others
// stay objects that can be listed. Every count, depth and size is bounded. Pure functions, any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/limits.h"
#include "core/base/result.h"
#include "core/format/archive/pickle_data.h"

namespace shardwright::format::archive {

// What may be done with a global of the vocabulary.
inline constexpr uint8_t kPickleCall = 1;      // called: a record of its arguments
inline constexpr uint8_t kPickleInstance = 2;  // made without arguments, filled by BUILD
inline constexpr uint8_t kPickleEnum = 4;      // its members are taken by kPickleGetattr
inline constexpr uint8_t kPickleGetattr = 8;   // called with a kPickleEnum and a name only
inline constexpr uint8_t kPickleDict = 16;     // called without arguments: a dict

// A global that the caller knows, by module and name as a whole. What fields names outlives the
// data.
struct PickleClass {
  std::string_view module;
  std::string_view name;
  uint8_t uses = 0;                               // 0 = it is a value by itself
  std::span<const std::string_view> fields = {};  // of the state dict of an instance
};

struct PickleLimits {
  uint64_t input_bytes = uint64_t{1} << 30;
  uint64_t nodes = uint64_t{64} << 20;  // values that need memory of their own
  uint32_t depth = 256;                 // levels of values
  // Of one text, which is never longer than the input. Up to protocol 2 bytes are texts, of which a
  // byte may take two.
  uint64_t text_bytes = 2 * kMaxObjectBytes;
  uint64_t object_bytes = kMaxObjectBytes;  // of one bytes or bytearray
  uint64_t integer_bytes = 256;
  uint64_t marks = uint64_t{1} << 20;        // that are open at a time
  uint64_t arena_bytes = uint64_t{4} << 30;  // memory of all values
};

enum class PickleCalls : uint8_t {
  kAsData,     // any call, persistent id or extension becomes an object
  kKnownOnly,  // a call of what the vocabulary does not allow is refused, wherever its result goes;
               // and so are persistent ids, extensions, INST, OBJ and NEWOBJ_EX
};

struct PickleOptions {
  std::string_view file;  // what messages call the input
  std::span<const PickleClass> vocabulary = {};
  PickleCalls calls = PickleCalls::kAsData;
  PickleLimits limits = {};
};

// Reads one pickle from the beginning of input, which outlives the data, and the vocabulary too.
// end: receives the offset behind STOP, or null; the caller says whether bytes may follow.
// DATA_LOSS naming file, opcode and offset for what is no sound pickle or exceeds a limit;
// PERMISSION_DENIED with detail unsafe, the callable, for a call that is not allowed; UNIMPLEMENTED
// for a newer protocol and for buffers that lie outside of the pickle.
Result<PickleData> read_pickle(std::span<const std::byte> input, const PickleOptions& options,
                               uint64_t* end = nullptr);

}  // namespace shardwright::format::archive
