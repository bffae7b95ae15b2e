// SPDX-License-Identifier: Apache-2.0
//
// PickleSurvey: what the pickles of a place would import and call if somebody unpickled them, each
// with its file and offset, for people who decide whether they trust it. All files are looked at,
// whether a checkpoint can be opened there or not; nothing is imported. Value type, pure functions
// but for the reads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/format/archive/archive_bytes.h"
#include "core/format/archive/pickle_reader.h"
#include "core/format/archive/pickle_scan.h"
#include "core/format/opened_checkpoint.h"

namespace shardwright::format {

inline constexpr size_t kMaxSurveyed = 1000;  // globals, and failures, that are listed

// A place in a file of the location.
struct SurveyPlace {
  std::string file;
  std::string record;   // of an archive, or the entry that an item is of; "" = the file itself
  uint64_t offset = 0;  // in the file, but for what is stored compressed: then of what it is in
};

struct SurveyedGlobal {
  SurveyPlace place;  // where it is looked up first
  std::string module;
  std::string name;
  bool is_known = false;  // it makes plain values, and is called only in ways that do
  uint64_t imports = 0;
  uint64_t calls = 0;
  uint64_t instances = 0;
};

struct SurveyFailure {
  SurveyPlace place;
  std::string message;
};

struct PickleSurvey {
  std::string path;
  uint64_t files = 0;    // looked at
  uint64_t pickles = 0;  // found in them
  // Those that are not known by their places, up to kMaxSurveyed; each known one once.
  std::vector<SurveyedGlobal> globals;
  uint64_t unknown_count = 0;
  // What could not be looked at to its end; there may be more in it.
  std::vector<SurveyFailure> failures;
  uint64_t failure_count = 0;
  std::vector<std::string> notes;

  // One object with "schema": 1.
  std::string to_json() const;
};

// NOT_FOUND when nothing is there; failures of reading. What is damaged is part of the survey.
Result<PickleSurvey> survey_pickles(const Location& location);

// Of one item or archive, as torch.load takes it. entry: what it is of.
PickleSurvey survey_item(const archive::ArchiveBytes& item, std::string entry);

// All globals that are known, for scan_pickle.
std::span<const archive::PickleClass> known_globals();
bool is_known_import(const archive::PickleImport& import);

}  // namespace shardwright::format
