// SPDX-License-Identifier: Apache-2.0
//
// Saving safetensors: whole tensors in files that ranks share. The coordinator makes each file with
// its header and its final size; the header tells every rank where its bytes go.
//
//   PATH.safetensors   one file, written as PATH.safetensors.<generation> until it is renamed
//   PATH/              model-<generation>-00001-of-00003.safetensors and on; the rename of
//                      model.safetensors.index.json, which names them, is the commit
#pragma once

#include <string>
#include <string_view>

#include "core/format/saving.h"

namespace shardwright::format::safetensors {

const FormatWriter& safetensors_writer();

// Generation of a file of a directory that this writer names, "" for other names. Without an index
// that names it such a file is one of a save that was not committed.
std::string_view generation_of(std::string_view file_name);

}  // namespace shardwright::format::safetensors
