// SPDX-License-Identifier: Apache-2.0
//
// Status: codes, details, causes, text, and the errno table.
#include "core/base/status.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "core/base/without_exceptions.h"
#include "tests/support/no_memory.h"

namespace shardwright {
namespace {

TEST(Status, DefaultIsSuccessWithNothingInIt) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kOk);
  EXPECT_EQ(status.message(), "");
  EXPECT_TRUE(status.details().empty());
  EXPECT_EQ(status.cause(), nullptr);
  EXPECT_FALSE(status.retryable());
  EXPECT_EQ(status.to_string(), "OK");
}

TEST(Status, SuccessCodeMakesASuccessWhateverTheMessage) {
  EXPECT_TRUE(Status(StatusCode::kOk, "ignored").ok());
}

TEST(Status, ChangesOfASuccessDoNothing) {
  EXPECT_TRUE(Status().with_detail("rank", "3").ok());
  EXPECT_TRUE(Status().with_retryable(true).ok());
  EXPECT_TRUE(Status().annotated("reading").ok());
}

TEST(Status, AFailureIsThereWithoutMemory) {
  SHW_SKIP_WITHOUT_OWN_OPERATORS();
  Status made;
  Status changed;
  Status unknown;
  Status thrown;
  {
    const test::NoMemory none;
    made = Status(StatusCode::kNotFound, {});
    changed = Status(made).with_detail("rank", "3").annotated("looking").with_retryable(true);
    unknown = unknown_commit(out_of_memory());
    thrown = without_exceptions("a step", []() -> Status { throw std::bad_alloc(); });
  }
  for (const Status& status : {made, changed, thrown}) {
    EXPECT_EQ(status.to_string(), "RESOURCE_EXHAUSTED: memory ran out");
    EXPECT_EQ(status.detail("resource"), "memory");
    EXPECT_FALSE(status.retryable());
  }
  EXPECT_EQ(unknown.code(), StatusCode::kUnavailable);
  EXPECT_EQ(unknown.detail("commit"), "unknown");
  EXPECT_FALSE(unknown.retryable());
}

TEST(Status, AFailureThatCannotBeChangedStaysAsItIs) {
  SHW_SKIP_WITHOUT_OWN_OPERATORS();
  Status status = not_found("there is no tensor 'w'").with_detail("tensor", "w");
  {
    const test::NoMemory none;
    status = std::move(status).with_detail("rank", "3").annotated("loading");
  }
  EXPECT_EQ(status.to_string(), "NOT_FOUND: there is no tensor 'w'");
  EXPECT_EQ(status.detail("tensor"), "w");
  EXPECT_EQ(status.detail("rank"), "");
}

TEST(Status, CopiesShareTheFailureAndChangesMakeANewOne) {
  const Status first = data_loss("block 3 differs");
  Status second = first;
  const Status changed = std::move(second).with_detail("offset", "4096");
  EXPECT_TRUE(first.details().empty());
  ASSERT_EQ(changed.details().size(), 1U);
  EXPECT_EQ(changed.detail("offset"), "4096");
  EXPECT_EQ(changed.code(), StatusCode::kDataLoss);
  EXPECT_EQ(changed.message(), "block 3 differs");
}

TEST(Status, AnnotationKeepsCodeDetailsAndRetryabilityAndLinksTheCause) {
  const Status outer = data_loss("digest differs")
                           .with_detail("file", "rank-00003.shw")
                           .with_retryable(true)
                           .annotated("loading tensor w");
  EXPECT_EQ(outer.code(), StatusCode::kDataLoss);
  EXPECT_EQ(outer.message(), "loading tensor w");
  EXPECT_EQ(outer.detail("file"), "rank-00003.shw");
  EXPECT_TRUE(outer.retryable());
  ASSERT_NE(outer.cause(), nullptr);
  EXPECT_EQ(outer.cause()->message(), "digest differs");
  EXPECT_EQ(outer.cause()->cause(), nullptr);
  EXPECT_EQ(outer.to_string(), "DATA_LOSS: loading tensor w: digest differs");
}

TEST(Status, AnnotationLeavesCopiesOfTheCauseAlone) {
  const Status inner = not_found("no manifest");
  const Status outer = Status(inner).annotated("opening");
  EXPECT_EQ(inner.to_string(), "NOT_FOUND: no manifest");
  EXPECT_EQ(outer.to_string(), "NOT_FOUND: opening: no manifest");
}

TEST(Status, DetailFindsTheFirstValueAndIsEmptyWhenAbsent) {
  const Status status = aborted("x").with_detail("rank", "1").with_detail("rank", "2");
  EXPECT_EQ(status.detail("rank"), "1");
  EXPECT_EQ(status.detail("file"), "");
}

TEST(Status, OnlyUnavailableAndAbortedAreRetryableByDefault) {
  for (int32_t number = 1; number <= 16; ++number) {
    const auto code = static_cast<StatusCode>(number);
    const bool expected = code == StatusCode::kUnavailable || code == StatusCode::kAborted;
    EXPECT_EQ(Status(code, "x").retryable(), expected) << status_code_name(code);
  }
  EXPECT_FALSE(unavailable("x").with_retryable(false).retryable());
}

TEST(Status, TextEscapesControlCharacters) {
  EXPECT_EQ(not_found("a\x1b[31m\nb").to_string(), "NOT_FOUND: a\\x1b[31m\\x0ab");
}

TEST(Status, NamesCoverTheClosedSetAndSayUnrecognisedOutside) {
  EXPECT_EQ(status_code_name(StatusCode::kUnauthenticated), "UNAUTHENTICATED");
  EXPECT_EQ(status_code_name(StatusCode::kHostException), "HOST_EXCEPTION");
  EXPECT_EQ(status_code_name(static_cast<StatusCode>(17)), "UNRECOGNISED");
  EXPECT_EQ(Status(static_cast<StatusCode>(17), "x").to_string(), "UNRECOGNISED 17: x");
}

TEST(Status, MakersUseTheirCode) {
  EXPECT_EQ(invalid_argument("").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(not_found("").code(), StatusCode::kNotFound);
  EXPECT_EQ(already_exists("").code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(permission_denied("").code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(failed_precondition("").code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(aborted("").code(), StatusCode::kAborted);
  EXPECT_EQ(out_of_range("").code(), StatusCode::kOutOfRange);
  EXPECT_EQ(unimplemented("").code(), StatusCode::kUnimplemented);
  EXPECT_EQ(internal_error("").code(), StatusCode::kInternal);
  EXPECT_EQ(unavailable("").code(), StatusCode::kUnavailable);
  EXPECT_EQ(data_loss("").code(), StatusCode::kDataLoss);
  EXPECT_EQ(cancelled("").code(), StatusCode::kCancelled);
  EXPECT_EQ(deadline_exceeded("").code(), StatusCode::kDeadlineExceeded);
  const Status exhausted = resource_exhausted("disk", "full");
  EXPECT_EQ(exhausted.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(exhausted.detail("resource"), "disk");
}

struct ErrnoCase {
  int error_number;
  StatusCode code;
  std::string_view resource;
};

class StatusFromErrno : public testing::TestWithParam<ErrnoCase> {};

TEST_P(StatusFromErrno, MapsToTheCodeAndCarriesTheNumber) {
  const ErrnoCase& expected = GetParam();
  const Status status = status_from_errno(expected.error_number, "write to", "/a/b");
  EXPECT_EQ(status.code(), expected.code);
  EXPECT_EQ(status.detail("errno"), std::to_string(expected.error_number));
  EXPECT_EQ(status.detail("resource"), expected.resource);
  EXPECT_NE(status.message().find("cannot write to '/a/b': "), std::string_view::npos)
      << status.to_string();
}

INSTANTIATE_TEST_SUITE_P(
    Taxonomy, StatusFromErrno,
    testing::Values(ErrnoCase{ENOSPC, StatusCode::kResourceExhausted, "disk"},
                    ErrnoCase{EDQUOT, StatusCode::kResourceExhausted, "quota"},
                    ErrnoCase{EFBIG, StatusCode::kResourceExhausted, "file_size"},
                    ErrnoCase{EMFILE, StatusCode::kResourceExhausted, "file_descriptors"},
                    ErrnoCase{ENOMEM, StatusCode::kResourceExhausted, "memory"},
                    ErrnoCase{EACCES, StatusCode::kPermissionDenied, ""},
                    ErrnoCase{EPERM, StatusCode::kPermissionDenied, ""},
                    ErrnoCase{EROFS, StatusCode::kPermissionDenied, ""},
                    ErrnoCase{ENOENT, StatusCode::kNotFound, ""},
                    ErrnoCase{EEXIST, StatusCode::kAlreadyExists, ""},
                    ErrnoCase{ENAMETOOLONG, StatusCode::kInvalidArgument, ""},
                    ErrnoCase{EIO, StatusCode::kDataLoss, ""},
                    ErrnoCase{ESTALE, StatusCode::kUnavailable, ""},
                    ErrnoCase{ETIMEDOUT, StatusCode::kUnavailable, ""},
                    ErrnoCase{EAGAIN, StatusCode::kUnavailable, ""},
                    ErrnoCase{ENOTTY, StatusCode::kUnknown, ""}));

}  // namespace
}  // namespace shardwright
