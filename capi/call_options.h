// SPDX-License-Identifier: Apache-2.0
//
// Options of save and load calls: the C structs as options of the core. Pure, any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "capi/boundary/handles.h"
#include "core/base/result.h"
#include "core/exec/options.h"
#include "core/exec/save.h"
#include "shardwright/load.h"
#include "shardwright/save.h"

namespace shardwright::capi {

// The structs have our size (they went through the struct reader). Failures name the option.
Result<exec::SaveOptions> read_save_options(const shw_save_options& options);
// Key and value of each metadata pair of the options, in their order, and one pair more; a key that
// is there gets the new value.
Result<shw_buffer*> with_metadata(const shw_save_options& options, std::string_view key,
                                  std::string_view value);
Result<exec::LoadOptions> read_load_options(const shw_load_options& options);

// Name of the format that was asked for, "" = any.
Result<std::string> wanted_format(int32_t wanted);
// INVALID_ARGUMENT when a format was asked for and another one is there.
Status check_format(int32_t wanted, std::string_view found);
// UNIMPLEMENTED for flags outside `known`.
Status known_flags(uint64_t flags, uint64_t known);

// Of a call that waits; null when the options have none.
Result<std::shared_ptr<CancellationImpl>> read_cancellation(const shw_cancellation* cancellation);
// INVALID_ARGUMENT when a job is given one: it would not know which of two to obey.
Status no_cancellation(const shw_cancellation* cancellation);

// Control of a call on an open checkpoint.
exec::CallContext call_on(const CheckpointImpl& checkpoint);
// Control of a call that has this span (0 or negative = no limit) and perhaps a cancellation, which
// it borrows.
exec::CallContext call_context(int64_t deadline_ns, const CancellationImpl* cancellation = nullptr);

}  // namespace shardwright::capi
