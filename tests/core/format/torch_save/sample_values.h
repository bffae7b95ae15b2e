// SPDX-License-Identifier: Apache-2.0
//
// Files of torch.save made by hand, sound or not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/format/archive/pickle_writer.h"
#include "tests/core/format/archive/sample_archives.h"

namespace shardwright::format::torch_save::test {

// A tensor of float32 as torch.save pickles it.
struct SampleTensor {
  std::string storage = "0";
  int64_t storage_elements = 4;
  int64_t offset = 0;
  std::vector<int64_t> shape = {4};
  std::vector<int64_t> strides = {1};
};
void add_tensor(const SampleTensor& tensor, archive::PickleWriter* pickle);

// The pickle of {name: tensor}.
std::string pickle_of(std::string_view name, const SampleTensor& tensor);

// The archive of a pickle and storages "0", "1", ... of these bytes.
std::vector<archive::test::SampleEntry> entries_of(std::string pickle,
                                                   const std::vector<std::string>& storages);
std::string file_of(std::string pickle, const std::vector<std::string>& storages);
// The same in the format of before torch 1.6; each storage has float32 elements.
std::string old_file_of(const std::string& pickle, const std::vector<std::string>& storages);

}  // namespace shardwright::format::torch_save::test
