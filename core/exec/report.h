// SPDX-License-Identifier: Apache-2.0
//
// Report: what a save, load, verify or gc did, for people (JSON) and for code (fields). Never says
// less than happened: durability, digests and verification that were switched off are in it. Value
// type.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace shardwright::exec {

struct NamedBytes {
  std::string name;
  uint64_t bytes = 0;
};
struct CastReport {
  std::string name;
  std::string stored;  // dtype names
  std::string wanted;
};
// An entry that was cropped or padded with zeros.
struct ShapeReport {
  std::string name;
  std::vector<int64_t> stored;
  std::vector<int64_t> wanted;
};
// Damage found by verify.
struct DamageReport {
  std::string message;
  std::string tensor;
  std::string box;
  std::string file;
  uint64_t offset = 0;
  uint64_t length = 0;
};
struct StageTime {
  std::string stage;
  int64_t duration_ns = 0;
};

struct Report {
  std::string operation;  // "save", "load", "verify", "gc"
  std::string format;
  std::string path;
  std::string generation;
  int32_t rank = 0;
  int32_t world_size = 1;
  std::string collective;  // name of the transport between the ranks; empty where there was none
  std::string durability;  // "full", "none", "volatile" (of a storage that is not durable)
  bool digests = true;
  bool checksums = false;        // those of the format were compared, where items came whole
  std::string verify;            // "on_read", "off", "structure", "deep"
  std::string dir_fsync = "ok";  // "ok", "unsupported", "skipped"
  std::string io_engine;  // of batched reads and writes: "io_uring", "threads"; empty without any
  uint64_t tensors = 0;
  uint64_t objects = 0;
  uint64_t chunks = 0;
  uint64_t files = 0;            // data files of the checkpoint, the manifest left out
  uint64_t bytes_state = 0;      // of this rank's entries that took part
  uint64_t bytes_written = 0;    // payload, by this rank
  uint64_t bytes_read = 0;       // from storage by this rank
  uint64_t bytes_over_read = 0;  // bytes_read - bytes that were wanted
  uint64_t bytes_cached = 0;     // of bytes_read, known to have come from the page cache
  uint64_t bytes_unverified =
      0;                        // wanted by a read or load, and compared with no digest or checksum
  uint64_t bytes_total = 0;     // payload of the whole checkpoint
  uint64_t bytes_files = 0;     // size of the data files: payload, headers, padding and indexes
  uint64_t bytes_received = 0;  // by this rank from others, through the collective or a host
  uint64_t memory_budget = 0;
  uint64_t staging_peak_bytes = 0;
  std::vector<std::string> loaded;
  std::vector<std::string> missing;
  std::vector<std::string> unexpected;
  std::vector<CastReport> casts;
  std::vector<ShapeReport> shapes;
  std::vector<DamageReport> damage;
  std::vector<NamedBytes> removed;  // gc and clean-up: generations
  std::vector<std::string> notes;   // what was skipped or unsupported
  std::vector<StageTime> times;
  int64_t elapsed_ns = 0;

  // After the outcome is certain: a name for which there is no memory is left out.
  void note_exchange(uint64_t received_bytes, std::string_view transport) noexcept;
  // One object with "schema": 1; keys as above, lists in order.
  std::string to_json() const;
};

}  // namespace shardwright::exec
