// SPDX-License-Identifier: Apache-2.0
//
// Offers and answers as bytes: what was written is read, what is cut or out of range is refused.
#include "core/exec/plan_offer_internal.h"

#include <gtest/gtest.h>

namespace shardwright::exec::internal {
namespace {

Answer plan_answer() {
  Answer answer;
  answer.kind = Answer::Kind::kPlan;
  answer.generation = "abc";
  answer.plan_digest[1] = std::byte{8};
  answer.local_digest[2] = std::byte{9};
  answer.world[3] = std::byte{7};
  answer.sets = {{4, 1, 2, {0, 2}, {1}}, {5, 0, 3, {1}, {}}};
  answer.bit_count = 70;
  answer.kept = {5, 33};
  answer.order = {2, 0, 1};
  return answer;
}

TEST(PlanOffer, AnswersComeBackAsTheyWere) {
  const Answer answer = plan_answer();
  const auto read = decode_answer(encode_answer(answer), 3, 2);
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(read->world, answer.world);
  EXPECT_EQ(read->generation, "abc");
  EXPECT_EQ(read->plan_digest, answer.plan_digest);
  EXPECT_EQ(read->local_digest, answer.local_digest);
  EXPECT_EQ(read->bit_count, 70U);
  EXPECT_EQ(read->kept, answer.kept);
  EXPECT_EQ(read->order, answer.order);
  ASSERT_EQ(read->sets.size(), 2U);
  EXPECT_EQ(read->sets[0].tensors, answer.sets[0].tensors);
  EXPECT_EQ(read->sets[0].objects, answer.sets[0].objects);
  EXPECT_EQ(read->sets[1].size, 3U);
  Answer before;
  before.kind = Answer::Kind::kAsBefore;
  before.generation = "abc";
  EXPECT_EQ(decode_answer(encode_answer(before), 0, 0)->generation, "abc");
  EXPECT_FALSE(asks_for_offer(encode_answer(before)));
  EXPECT_FALSE(asks_for_offer(encode_answer(answer)));
  for (const Answer::Kind kind :
       {Answer::Kind::kSendOffer, Answer::Kind::kSendDescription, Answer::Kind::kWait}) {
    Answer asking;
    asking.kind = kind;
    const Bytes bytes = encode_answer(asking);
    EXPECT_TRUE(asks_for_offer(bytes));
    EXPECT_EQ(decode_answer(bytes, 0, 0)->kind, kind);
    EXPECT_FALSE(asks_for_offer(Bytes(2, bytes[0])));
    EXPECT_EQ(decode_answer(Bytes(2, bytes[0]), 0, 0).status().code(), StatusCode::kDataLoss);
  }
}

TEST(PlanOffer, DigestsPartsAndDescriptionsComeBack) {
  const Digest128 key{std::byte{1}};
  const Digest128 digest{std::byte{2}};
  const Bytes part(30, std::byte{4});
  const Bytes description(50, std::byte{5});
  const std::vector<Bytes> offers{encode_offer(key, digest, {}), encode_offer(key, digest, part),
                                  encode_description_offer(description), encode_empty_offer()};
  EXPECT_EQ(offers[0].size(), 33U);
  const auto read = read_offers(offers);
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
    const auto refused = read_offers(std::vector<Bytes>{offers[0], bad});
    EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument) << bad.size();
    EXPECT_EQ(refused.status().detail("rank"), "1");
  }
}

TEST(PlanOffer, AnswersThatAreCutAreRefused) {
  const Bytes whole = encode_answer(plan_answer());
  const size_t before_generation = whole.size() - plan_answer().generation.size();
  for (size_t size = 0; size < before_generation; ++size) {
    EXPECT_EQ(decode_answer(std::span(whole).first(size), 3, 2).status().code(),
              StatusCode::kDataLoss)
        << size;
  }
}

TEST(PlanOffer, BitsAndOrdersThatCannotBeAreRefused) {
  const auto code_of = [](const Answer& answer) {
    return decode_answer(encode_answer(answer), 3, 2).status().code();
  };
  EXPECT_EQ(code_of(plan_answer()), StatusCode::kOk);
  Answer answer = plan_answer();
  answer.kept[1] = 64;
  EXPECT_EQ(code_of(answer), StatusCode::kDataLoss) << "bit 70 of 70";
  answer = plan_answer();
  answer.bit_count = ~uint64_t{0};
  EXPECT_EQ(code_of(answer), StatusCode::kDataLoss);
  answer = plan_answer();
  answer.order = {0, 0, 1};
  EXPECT_EQ(code_of(answer), StatusCode::kDataLoss);
  answer.order = {0, 3, 1};
  EXPECT_EQ(code_of(answer), StatusCode::kDataLoss);
}

TEST(PlanOffer, SetsThatDoNotFitTheStateAreRefused) {
  const Bytes bytes = encode_answer(plan_answer());
  EXPECT_EQ(decode_answer(bytes, 2, 2).status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(decode_answer(bytes, 3, 1).status().code(), StatusCode::kDataLoss);
  Answer outside = plan_answer();
  outside.sets[0].position = 2;
  EXPECT_EQ(decode_answer(encode_answer(outside), 3, 2).status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(decode_answer(Bytes(5, std::byte{0xFF}), 3, 2).status().code(), StatusCode::kDataLoss);
}

TEST(PlanOffer, SharesAreAdded) {
  const std::vector<Bytes> offers{encode_offer(plan::Share{~uint64_t{0}, 5}),
                                  encode_offer(Digest128{std::byte{1}}, Digest128{}, {}),
                                  encode_offer(plan::Share{2, 3})};
  const auto read = read_offers(offers);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->share_count, 2U);
  EXPECT_EQ(read->sum, (plan::Share{1, 8}));
  EXPECT_EQ(read->keys, std::vector<Digest128>{Digest128{std::byte{1}}});
  EXPECT_EQ(read_offers(std::vector<Bytes>{Bytes(15)}).status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace shardwright::exec::internal
