// SPDX-License-Identifier: Apache-2.0
//
// Safetensors files made by hand: any header in front of any buffer, sound or not.
#pragma once

#include <string>
#include <string_view>

#include "core/storage/storage.h"

namespace shardwright::format::safetensors::test {

// Length, header and a buffer of so many bytes: 0, 1, 2, ...
std::string file_of(std::string_view header, uint64_t buffer_bytes);
// {"name":{"dtype":...,"shape":...,"data_offsets":[begin,end]}} without its braces.
std::string entry_of(std::string_view name, std::string_view dtype, std::string_view shape,
                     uint64_t begin, uint64_t end);
// Fails the running test when the storage does.
void store(storage::Storage* storage, const std::string& key, std::string_view bytes);

}  // namespace shardwright::format::safetensors::test
