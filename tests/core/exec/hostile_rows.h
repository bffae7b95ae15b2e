// SPDX-License-Identifier: Apache-2.0
//
// Rows of hostile and broken checkpoints: what lies in a directory, and how reading it must end.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "tests/core/format/torch_dcp/sample_checkpoint.h"
#include "tests/core/format/torch_save/sample_values.h"

namespace shardwright::exec::test {

inline constexpr std::string_view kFirst = "aaaabbbbccccdddd";
inline constexpr std::string_view kSecond = "eeeeffffgggghhhh";
inline constexpr const char* kIndex = "ckpt/.metadata";
inline constexpr const char* kData = "ckpt/__0_0.distcp";
inline constexpr const char* kFile = "v.pt";

using format::torch_dcp::test::SampleDirectory;

// Files of one row, below a directory of its own.
class Place {
 public:
  explicit Place(std::string root) : root_(std::move(root)) {}
  void put(const std::string& name, std::string_view bytes) const;
  std::string get(const std::string& name) const;
  // The sample, changed: before its items get places, or after.
  void put(const std::function<void(SampleDirectory*)>& before,
           const std::function<void(SampleDirectory*)>& after = {}) const;
  // The bytes of a file, changed.
  void change(const std::string& name, const std::function<void(std::string*)>& change) const;
  const std::filesystem::path& root() const { return root_; }
  std::map<std::string, std::string> files() const;

 private:
  std::filesystem::path root_;
};

// w of 4 x 2 in two chunks, and an object.
SampleDirectory sample();
// A file of torch.save with w of 4.
std::string sound_file();

struct Row {
  const char* what;
  std::function<void(const Place&)> make;
  StatusCode code;
  const char* says;  // in the failure
};

// Another index; a changed file of the sample; the sample with other items, or other places of
// them; the sample with something done around it; a file of torch.save.
Row index(const char* what, std::string pickle, StatusCode code, const char* says);
Row changed(const char* what, std::string name, std::function<void(std::string*)> change,
            StatusCode code, const char* says);
Row items(const char* what, std::function<void(SampleDirectory*)> change, StatusCode code,
          const char* says);
Row places(const char* what, std::function<void(SampleDirectory*)> change, StatusCode code,
           const char* says);
Row around(const char* what, std::function<void(const Place&)> change, StatusCode code,
           const char* says);
Row file(const char* what, std::string bytes, StatusCode code, const char* says);

// The rows.
std::vector<Row> index_calls();
std::vector<Row> index_lengths();
std::vector<Row> index_boxes();
std::vector<Row> index_places();
std::vector<Row> data_items();
std::vector<Row> data_files();
std::vector<Row> archive_ends();
std::vector<Row> archive_entries();
std::vector<Row> archive_values();

}  // namespace shardwright::exec::test
