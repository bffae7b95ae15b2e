// SPDX-License-Identifier: Apache-2.0
//
// EXPECT_FAILURE: what a failure must say.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "core/base/status.h"

namespace shardwright::test {

inline bool mentions(const Status& status, std::string_view text) {
  return status.to_string().find(text) != std::string::npos;
}

}  // namespace shardwright::test

// Fails unless the status has this code and its text holds every following text.
#define EXPECT_FAILURE(status_expression, expected_code, ...)                                   \
  do {                                                                                          \
    const ::shardwright::Status failure_ = (status_expression);                                 \
    EXPECT_EQ(failure_.code(), expected_code) << failure_.to_string();                          \
    for (const std::string_view text_ : std::initializer_list<std::string_view>{__VA_ARGS__}) { \
      EXPECT_TRUE(::shardwright::test::mentions(failure_, text_))                               \
          << "no '" << text_ << "' in: " << failure_.to_string();                               \
    }                                                                                           \
  } while (false)
