// SPDX-License-Identifier: Apache-2.0
//
// log.h: the only function is the init twin; records are made by context/log_bridge.cc.
#include "shardwright/log.h"

#include "capi/boundary/struct_rules.h"

extern "C" void shw_log_record_init(shw_log_record* record, uint32_t struct_size) noexcept {
  shardwright::capi::init_struct(record, struct_size);
}
