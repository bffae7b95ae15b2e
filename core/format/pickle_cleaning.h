// SPDX-License-Identifier: Apache-2.0
//
// PickleCleaning: files with pickles once more, without what is not known (pickle_survey.h), so
// that nobody who unpickles them runs anything that they choose. The originals are only read; what
// is written is new. Pure functions but for the files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/format/opened_checkpoint.h"

namespace shardwright::format {

struct CleanedFile {
  std::string file;                   // below source and target, or the file itself
  uint64_t replaced = 0;              // values that are None in it now
  std::vector<std::string> left_out;  // entries of an index whose items are not clean
};

struct PickleCleaning {
  std::string path;
  std::string target;
  std::vector<CleanedFile> files;
  std::vector<std::string> notes;

  // One object with "schema": 1.
  std::string to_json() const;
};

// Of a directory its indexes of torch DCP and other files with pickles, written below target, which
// may not have files of these names; data files stay where they are, and an index leaves out
// entries whose items hold something that is not known, or cannot be read. Of a file of torch.save,
// or a pickle, a whole clean file. NOT_FOUND when nothing is there, ALREADY_EXISTS, DATA_LOSS for a
// pickle that is damaged; UNIMPLEMENTED where nothing has pickles that could be cleaned, and for
// compressed ones.
Result<PickleCleaning> clean_pickles(const Location& source, const Location& target);

}  // namespace shardwright::format
