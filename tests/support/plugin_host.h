// SPDX-License-Identifier: Apache-2.0
//
// The host of tables that are made as plugins make theirs, in a program that has the library's
// objects: errors are those of the C interface.
#pragma once

#include <gtest/gtest.h>

#include "plugins/tables/host_errors.h"
#include "shardwright/api.h"
#include "shardwright/plugin.h"

namespace shardwright::test {

// Before the first table is made; again does nothing.
inline void be_the_host_of_plugins() {
  static const shw_host_api kHost = [] {
    shw_host_api host{};
    host.struct_size = sizeof host;
    host.abi_major = SHW_ABI_MAJOR;
    host.abi_minor = SHW_ABI_MINOR;
    host.error_create = &shw_error_create;
    host.error_release = &shw_error_release;
    EXPECT_EQ(shw_get_api(SHW_ABI_MAJOR, SHW_ABI_MINOR, &host.api, nullptr), SHW_OK);
    return host;
  }();
  plugin_tables::set_host(&kHost);
}

}  // namespace shardwright::test
