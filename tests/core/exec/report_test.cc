// SPDX-License-Identifier: Apache-2.0
#include "core/exec/report.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace shardwright::exec {
namespace {

TEST(Report, EveryFieldIsInTheJson) {
  Report report;
  report.operation = "load";
  report.format = "native";
  report.path = "a\"b";
  report.generation = "00ff";
  report.rank = 3;
  report.world_size = 4;
  report.collective = "threads";
  report.durability = "full";
  report.digests = false;
  report.verify = "on_read";
  report.dir_fsync = "unsupported";
  report.io_engine = "threads";
  report.tensors = 1;
  report.objects = 2;
  report.chunks = 3;
  report.files = 15;
  report.bytes_state = 4;
  report.bytes_written = 5;
  report.bytes_read = 6;
  report.bytes_over_read = 7;
  report.bytes_cached = 18;
  report.bytes_total = UINT64_MAX;
  report.bytes_files = 16;
  report.memory_budget = 8;
  report.bytes_received = 17;
  report.staging_peak_bytes = 9;
  report.loaded = {"w"};
  report.missing = {"m"};
  report.unexpected = {"u"};
  report.casts = {{"c", "float32", "bfloat16"}};
  report.shapes = {{"s", {3, 2}, {4, 2}}};
  report.damage = {{"bad", "w", "[0:1]", "file", 10, 11}};
  report.removed = {{"old", 12}};
  report.notes = {"note"};
  report.times = {{"write", 13}};
  report.elapsed_ns = 14;
  const auto json = nlohmann::json::parse(report.to_json());
  const auto expected = nlohmann::json::parse(R"({
    "schema": 1, "operation": "load", "format": "native", "path": "a\"b", "generation": "00ff",
    "rank": 3, "world_size": 4, "collective": "threads", "durability": "full", "digests": false, "verify": "on_read",
    "dir_fsync": "unsupported", "io_engine": "threads", "tensors": 1, "objects": 2, "chunks": 3, "files": 15, "bytes_state": 4,
    "bytes_written": 5, "bytes_read": 6, "bytes_over_read": 7, "bytes_cached": 18, "bytes_total": 18446744073709551615,
    "bytes_files": 16, "bytes_received": 17, "memory_budget": 8, "staging_peak_bytes": 9, "loaded": ["w"], "missing": ["m"],
    "unexpected": ["u"], "casts": [{"name": "c", "stored": "float32", "wanted": "bfloat16"}],
    "shapes": [{"name": "s", "stored": [3, 2], "wanted": [4, 2]}],
    "damage": [{"message": "bad", "tensor": "w", "box": "[0:1]", "file": "file", "offset": 10,
                "length": 11}],
    "removed": [{"name": "old", "bytes": 12}], "notes": ["note"],
    "times": [{"stage": "write", "duration_ns": 13}], "elapsed_ns": 14})");
  EXPECT_EQ(json, expected);
}

}  // namespace
}  // namespace shardwright::exec
