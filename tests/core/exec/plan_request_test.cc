// SPDX-License-Identifier: Apache-2.0
//
// PlanRequests and replies as bytes: what was written is read, what is cut or out of range is
// refused.
#include "core/exec/plan_request_internal.h"

#include <gtest/gtest.h>

namespace shardwright::exec::internal {
namespace {

PlanReply plan_reply() {
  PlanReply reply;
  reply.kind = PlanReply::Kind::kPlan;
  reply.generation = "abc";
  reply.plan_digest[1] = std::byte{8};
  reply.local_digest[2] = std::byte{9};
  reply.world[3] = std::byte{7};
  reply.sets = {{4, 1, 2, {0, 2}, {1}}, {5, 0, 3, {1}, {}}};
  reply.bit_count = 70;
  reply.kept = {5, 33};
  reply.order = {2, 0, 1};
  return reply;
}

TEST(PlanRequest, RepliesComeBackAsTheyWere) {
  const PlanReply reply = plan_reply();
  const auto read = decode_reply(encode_reply(reply), 3, 2);
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(read->world, reply.world);
  EXPECT_EQ(read->generation, "abc");
  EXPECT_EQ(read->plan_digest, reply.plan_digest);
  EXPECT_EQ(read->local_digest, reply.local_digest);
  EXPECT_EQ(read->bit_count, 70U);
  EXPECT_EQ(read->kept, reply.kept);
  EXPECT_EQ(read->order, reply.order);
  ASSERT_EQ(read->sets.size(), 2U);
  EXPECT_EQ(read->sets[0].tensors, reply.sets[0].tensors);
  EXPECT_EQ(read->sets[0].objects, reply.sets[0].objects);
  EXPECT_EQ(read->sets[1].size, 3U);
  PlanReply before;
  before.kind = PlanReply::Kind::kAsBefore;
  before.generation = "abc";
  EXPECT_EQ(decode_reply(encode_reply(before), 0, 0)->generation, "abc");
  EXPECT_FALSE(asks_again(encode_reply(before)));
  EXPECT_FALSE(asks_again(encode_reply(reply)));
  for (const PlanReply::Kind kind :
       {PlanReply::Kind::kSendRequest, PlanReply::Kind::kSendDescription, PlanReply::Kind::kWait}) {
    PlanReply asking;
    asking.kind = kind;
    const Bytes bytes = encode_reply(asking);
    EXPECT_TRUE(asks_again(bytes));
    EXPECT_EQ(decode_reply(bytes, 0, 0)->kind, kind);
    EXPECT_FALSE(asks_again(Bytes(2, bytes[0])));
    EXPECT_EQ(decode_reply(Bytes(2, bytes[0]), 0, 0).status().code(), StatusCode::kDataLoss);
  }
}

TEST(PlanRequest, DigestsPartsAndDescriptionsComeBack) {
  const Digest128 key{std::byte{1}};
  const Digest128 digest{std::byte{2}};
  const Bytes part(30, std::byte{4});
  const Bytes description(50, std::byte{5});
  const std::vector<Bytes> requests{
      encode_request(key, digest, {}), encode_request(key, digest, part),
      encode_description_request(description), encode_empty_request()};
  EXPECT_EQ(requests[0].size(), 33U);
  const auto read = read_requests(requests);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->keys, (std::vector<Digest128>{key, key}));
  EXPECT_EQ(read->digests, (std::vector<Digest128>{digest, digest}));
  ASSERT_EQ(read->parts.size(), 1U);
  EXPECT_EQ(read->parts[0].rank, 1U);
  EXPECT_TRUE(std::ranges::equal(read->parts[0].bytes, part));
  ASSERT_EQ(read->descriptions.size(), 1U);
  EXPECT_EQ(read->descriptions[0].rank, 2U);
  EXPECT_TRUE(std::ranges::equal(read->descriptions[0].bytes, description));
  for (const Bytes& bad : {Bytes(), Bytes(1, std::byte{0}), Bytes(20, std::byte{2}),
                           Bytes(2, std::byte{1}), Bytes(40, std::byte{9})}) {
    const auto refused = read_requests(std::vector<Bytes>{requests[0], bad});
    EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument) << bad.size();
    EXPECT_EQ(refused.status().detail("rank"), "1");
  }
}

TEST(PlanRequest, RepliesThatAreCutAreRefused) {
  const Bytes whole = encode_reply(plan_reply());
  const size_t before_generation = whole.size() - plan_reply().generation.size();
  for (size_t size = 0; size < before_generation; ++size) {
    EXPECT_EQ(decode_reply(std::span(whole).first(size), 3, 2).status().code(),
              StatusCode::kDataLoss)
        << size;
  }
}

TEST(PlanRequest, BitsAndOrdersThatCannotBeAreRefused) {
  const auto code_of = [](const PlanReply& reply) {
    return decode_reply(encode_reply(reply), 3, 2).status().code();
  };
  EXPECT_EQ(code_of(plan_reply()), StatusCode::kOk);
  PlanReply reply = plan_reply();
  reply.kept[1] = 64;
  EXPECT_EQ(code_of(reply), StatusCode::kDataLoss) << "bit 70 of 70";
  reply = plan_reply();
  reply.bit_count = ~uint64_t{0};
  EXPECT_EQ(code_of(reply), StatusCode::kDataLoss);
  reply = plan_reply();
  reply.order = {0, 0, 1};
  EXPECT_EQ(code_of(reply), StatusCode::kDataLoss);
  reply.order = {0, 3, 1};
  EXPECT_EQ(code_of(reply), StatusCode::kDataLoss);
}

TEST(PlanRequest, SetsThatDoNotFitTheStateAreRefused) {
  const Bytes bytes = encode_reply(plan_reply());
  EXPECT_EQ(decode_reply(bytes, 2, 2).status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(decode_reply(bytes, 3, 1).status().code(), StatusCode::kDataLoss);
  PlanReply outside = plan_reply();
  outside.sets[0].position = 2;
  EXPECT_EQ(decode_reply(encode_reply(outside), 3, 2).status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(decode_reply(Bytes(5, std::byte{0xFF}), 3, 2).status().code(), StatusCode::kDataLoss);
}

TEST(PlanRequest, ChecksumsAreAdded) {
  const std::vector<Bytes> requests{encode_request(plan::Checksum{~uint64_t{0}, 5}),
                                    encode_request(Digest128{std::byte{1}}, Digest128{}, {}),
                                    encode_request(plan::Checksum{2, 3})};
  const auto read = read_requests(requests);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->checksum_count, 2U);
  EXPECT_EQ(read->sum, (plan::Checksum{1, 8}));
  EXPECT_EQ(read->keys, std::vector<Digest128>{Digest128{std::byte{1}}});
  EXPECT_EQ(read_requests(std::vector<Bytes>{Bytes(15)}).status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace shardwright::exec::internal
