// SPDX-License-Identifier: Apache-2.0
//
// Damaged plan buffers: every truncation, every bit, wrong frames, misaligned memory, newer
// versions, wrong meaning.
#include <cstring>
#include <functional>

#include "core/base/limits.h"
#include "core/integrity/digest.h"
#include "core/plan/options_text.h"
#include "core/plan/wire/catalog_wire.h"
#include "core/plan/wire/plan_generated.h"
#include "core/plan/wire/records.h"
#include "tests/core/plan/catalog_boxes.h"
#include "tests/core/plan/wire/plan_samples.h"
#include "tests/support/run_length.h"

namespace shardwright::plan::test {
namespace {

using Buffer = std::vector<std::byte>;

void set_prefix(Buffer* buffer) {
  const auto length = static_cast<uint32_t>(buffer->size() - 4);
  std::memcpy(buffer->data(), &length, sizeof(length));
}

wire::PlanBuffer* root_of(Buffer* buffer) {
  return flatbuffers::GetMutableSizePrefixedRoot<wire::PlanBuffer>(buffer->data());
}

// Sets a scalar field of a table whatever accessor the schema compiler gives.
template <typename T, typename Table>
bool set_field(Table* table, flatbuffers::voffset_t slot, T value) {
  return const_cast<flatbuffers::Table*>(reinterpret_cast<const flatbuffers::Table*>(table))
      ->SetField<T>(slot, value, static_cast<T>(value + 1));
}

TEST(PlanBufferDamage, TrailingBytesAndWrongPrefixesAreDataLoss) {
  for (const Sample& sample : all_samples()) {
    Buffer longer = sample.bytes;
    longer.push_back(std::byte{0});
    EXPECT_FAILURE(decode_status(sample.kind, longer), StatusCode::kDataLoss, "length prefix");
    Buffer prefix = sample.bytes;
    prefix[0] ^= std::byte{1};
    EXPECT_FAILURE(decode_status(sample.kind, prefix), StatusCode::kDataLoss, "length prefix");
  }
}

TEST(PlanBufferDamage, OtherBytesAreNoPlan) {
  EXPECT_FAILURE(plan_kind({}).status(), StatusCode::kInvalidArgument, "0 bytes");
  EXPECT_FAILURE(plan_kind(Buffer(11)).status(), StatusCode::kInvalidArgument, "11 bytes");
  EXPECT_FAILURE(plan_kind(Buffer(4096)).status(), StatusCode::kInvalidArgument, "SHWP");
  Buffer other = all_samples()[0].bytes;
  other[8] = std::byte{'X'};
  EXPECT_FAILURE(plan_kind(other).status(), StatusCode::kInvalidArgument, "XHWP", "SHWP");
}

// Rejected, or a plan that encodes and decodes again.
void expect_rejected_or_valid(const Sample& sample, const Buffer& changed) {
  const Status status = decode_status(sample.kind, changed);
  EXPECT_EQ(status.ok(), validate_plan(changed).empty() && *plan_kind(changed) == sample.kind)
      << status.to_string();
  if (!status.ok()) return;
  switch (sample.kind) {
    case PlanKind::kLocalSave:
      EXPECT_TRUE(decode<LocalPlan>(encoded(*decode<LocalPlan>(changed))).ok());
      return;
    case PlanKind::kWriteList:
      EXPECT_TRUE(decode<WriteList>(encoded(*decode<WriteList>(changed))).ok());
      return;
    case PlanKind::kLoad:
      EXPECT_TRUE(decode<LoadPlan>(encoded(*decode<LoadPlan>(changed))).ok());
      return;
    case PlanKind::kWriteResult:
      EXPECT_TRUE(decode<WriteResult>(encoded(*decode<WriteResult>(changed))).ok());
      return;
    case PlanKind::kMergedSave: {
      const Result<GlobalSavePlan> plan = decode<GlobalSavePlan>(changed);
      EXPECT_TRUE(plan->generation.empty() || prove_all_covers(plan->catalog).ok());
      EXPECT_TRUE(decode<GlobalSavePlan>(encoded(*plan)).ok());
      return;
    }
    case PlanKind::kDescription:
      EXPECT_TRUE(decode<Description>(encoded(*decode<Description>(changed))).ok());
      return;
    case PlanKind::kWantList:
      EXPECT_TRUE(decode<WantList>(encoded(*decode<WantList>(changed))).ok());
      return;
    case PlanKind::kExchange:
      EXPECT_TRUE(decode<ExchangePlan>(encoded(*decode<ExchangePlan>(changed))).ok());
      return;
    case PlanKind::kLocalPart:
      EXPECT_TRUE(decode<LocalPart>(encoded(*decode<LocalPart>(changed))).ok());
      return;
  }
}

TEST(PlanBufferDamage, EveryTruncationIsRejected) {
  for (const Sample& sample : all_samples()) {
    for (size_t length = 0; length < sample.bytes.size(); ++length) {
      Buffer cut(sample.bytes.begin(), sample.bytes.begin() + static_cast<std::ptrdiff_t>(length));
      EXPECT_FALSE(decode_status(sample.kind, cut).ok()) << sample.name << " of " << length;
      EXPECT_FALSE(validate_plan(cut).empty());
      if (length < 12) continue;
      // With a matching prefix only padding at the end may be gone.
      set_prefix(&cut);
      EXPECT_TRUE(!decode_status(sample.kind, cut).ok() || length + 8 > sample.bytes.size())
          << sample.name << " of " << length;
      expect_rejected_or_valid(sample, cut);
    }
  }
}

TEST(PlanBufferDamage, EveryFlippedBitIsRejectedOrGivesAValidPlan) {
  for (const Sample& sample : all_samples()) {
    size_t rejected = 0;
    Buffer changed = sample.bytes;
    for (size_t bit = 0; bit < changed.size() * 8; bit += shardwright::test::kEachBit) {
      const auto mask = static_cast<std::byte>(1U << bit % 8);
      changed[bit / 8] ^= mask;
      expect_rejected_or_valid(sample, changed);
      rejected += decode_status(sample.kind, changed).ok() ? 0 : 1;
      changed[bit / 8] ^= mask;
    }
    EXPECT_GT(rejected * shardwright::test::kEachBit, changed.size()) << sample.name;
    EXPECT_EQ(changed, sample.bytes);
  }
}

TEST(PlanBufferDamage, MisalignedBuffersAreCopied) {
  for (const Sample& sample : all_samples()) {
    for (size_t shift = 1; shift < 8; ++shift) {
      Buffer room(sample.bytes.size() + 8);
      std::memcpy(room.data() + shift, sample.bytes.data(), sample.bytes.size());
      const std::span<const std::byte> view(room.data() + shift, sample.bytes.size());
      EXPECT_TRUE(decode_status(sample.kind, view).ok()) << sample.name << " shifted by " << shift;
      EXPECT_TRUE(validate_plan(view).empty());
    }
  }
}

TEST(PlanBufferDamage, NewerSchemasAreUnimplementedWithTheNeededVersion) {
  for (const Sample& sample : all_samples()) {
    Buffer major = sample.bytes;
    ASSERT_TRUE(set_field<uint32_t>(root_of(&major), wire::PlanBuffer::VT_SCHEMA_MAJOR, 2));
    const Status status = decode_status(sample.kind, major);
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented) << status.to_string();
    EXPECT_EQ(status.detail("needed_version"), "2.0") << sample.name;
  }
}

// A buffer with these version fields and the given kind; body as in the write list sample.
Buffer hand_made(uint32_t major, uint32_t minor, uint32_t minimum, int kind, bool with_body) {
  flatbuffers::FlatBufferBuilder builder;
  const std::string generation = kGeneration;
  const auto text =
      builder.CreateVector(reinterpret_cast<const uint8_t*>(generation.data()), generation.size());
  const auto body = wire::CreateWriteList(builder, 0, 1, text);
  wire::PlanBufferBuilder root(builder);
  root.add_schema_major(major);
  root.add_schema_minor(minor);
  root.add_minimum_reader_minor(minimum);
  root.add_kind(static_cast<wire::PlanBufferKind>(kind));
  if (with_body) root.add_write_list(body);
  builder.FinishSizePrefixed(root.Finish(), "SHWP");
  const auto* begin = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return Buffer(begin, begin + builder.GetSize());
}

TEST(PlanBufferDamage, VersionAndKindAreDoors) {
  EXPECT_TRUE(decode<WriteList>(hand_made(1, 0, 0, 2, true)).ok());
  EXPECT_TRUE(decode<WriteList>(hand_made(1, 7, 0, 2, true)).ok());
  EXPECT_FAILURE(decode<WriteList>(hand_made(1, 7, 3, 2, true)).status(),
                 StatusCode::kUnimplemented, "1.3");
  EXPECT_FAILURE(decode<WriteList>(hand_made(0, 0, 0, 2, true)).status(), StatusCode::kDataLoss,
                 "no schema version");
  EXPECT_FAILURE(decode<WriteList>(hand_made(1, 0, 0, 2, false)).status(), StatusCode::kDataLoss,
                 "lacks the body");
  EXPECT_FAILURE(decode<WriteList>(hand_made(1, 0, 0, 1, true)).status(), StatusCode::kDataLoss,
                 "kind 1");
  EXPECT_FAILURE(plan_kind(hand_made(1, 0, 0, 77, false)).status(), StatusCode::kUnimplemented,
                 "kind 77");
  EXPECT_FAILURE(plan_kind(hand_made(1, 0, 0, 0, false)).status(), StatusCode::kUnimplemented,
                 "kind 0");
}

template <typename Plan>
struct MeaningCase {
  std::string_view text;
  std::function<void(Plan&)> change;
};

// Encodes changed plans, which the encoder does not judge, and expects the last check to name the
// finding.
template <typename Plan>
void expect_findings(const Plan& good, PlanKind kind, const std::vector<MeaningCase<Plan>>& cases) {
  for (const MeaningCase<Plan>& each : cases) {
    Plan plan = good;
    each.change(plan);
    const Buffer bytes = encoded(plan);
    EXPECT_FAILURE(decode_status(kind, bytes), StatusCode::kDataLoss, each.text);
    const std::vector<std::string> findings = validate_plan(bytes);
    EXPECT_FALSE(findings.empty()) << each.text;
  }
}

// The same of local plans, whose part names the description that there is now.
void expect_local_findings(const LocalPlan& good, PlanKind kind,
                           std::vector<MeaningCase<LocalPlan>> cases) {
  for (MeaningCase<LocalPlan>& each : cases) {
    each.change = [change = each.change](LocalPlan& plan) {
      change(plan);
      plan.part.description_digest = *description_digest(plan.description);
    };
  }
  expect_findings<LocalPlan>(good, kind, cases);
}

TEST(PlanBufferDamage, DescriptionsMeanSomething) {
  expect_local_findings(
      sample_local_save(), PlanKind::kLocalSave,
      {{"another digest", [](LocalPlan& plan) { plan.description.options_text += "x=y\n"; }},
       {"forms for 4", [](LocalPlan& plan) { plan.description.forms.pop_back(); }},
       {"layout 0 of 0", [](LocalPlan& plan) { plan.description.forms[0] = kFirstLayout; }},
       {"1 object digests", [](LocalPlan& plan) { plan.description.object_digests.pop_back(); }},
       {"has a place", [](LocalPlan& plan) { plan.description.catalog.objects[0].place = 1; }},
       {"both named", [](LocalPlan& plan) {
          plan.description.catalog.tensors[1].name = plan.description.catalog.tensors[0].name;
        }}});
}

TEST(PlanBufferDamage, PartsOfLocalPlansMeanSomething) {
  const auto marks = [](LocalPlan& plan) {
    plan.part.listing.secondary.assign(plan.part.boxes.size(), 2);
  };
  expect_local_findings(
      sample_local_save(), PlanKind::kLocalSave,
      {{"rank 2 of 2", [](LocalPlan& plan) { plan.part.rank = 2; }},
       {"rank 1 of -1", [](LocalPlan& plan) { plan.part.world_size = -1; }},
       {"2 digests of 1", [](LocalPlan& plan) { plan.part.tensor_digests.emplace_back(); }},
       {"leaves its shape", [](LocalPlan& plan) { plan.part.boxes[0].offset0 = 3; }},
       {"leaves its shape", [](LocalPlan& plan) { plan.part.boxes[0].size0 = -1; }},
       {"do not follow", [](LocalPlan& plan) { plan.part.lists[1].begin = 0; }},
       {"further pairs", [](LocalPlan& plan) { plan.part.more.emplace_back(); }},
       {"object sizes", [](LocalPlan& plan) { plan.part.object_sizes.clear(); }},
       {"2 attributes", [](LocalPlan& plan) { plan.part.listing.attribute_ends = {0, 0}; }},
       {"lists item 0", [](LocalPlan& plan) { plan.part.listing.order = {0, 0}; }},
       {"lists 1 of 8", [](LocalPlan& plan) { plan.part.listing.order = {7}; }},
       {"1 places", [](LocalPlan& plan) { plan.part.listing.object_begins = {0}; }},
       {"do not ascend", [](LocalPlan& plan) { plan.part.listing.object_begins = {0, 99}; }},
       {"1 marks", [](LocalPlan& plan) { plan.part.listing.secondary = {1}; }},
       {"neither 0 nor 1", marks},
       {"piece 0", [](LocalPlan& plan) { plan.part.boxes[2].place = plan.part.boxes[1].place; }},
       {"wrong piece", [](LocalPlan& plan) { plan.part.boxes[0].place = kObjectPiece; }}});
  const std::vector<MeaningCase<LocalPlan>> cases = {{"another description", [](LocalPlan& plan) {
                                                        plan.part.description_digest[0] ^=
                                                            std::byte{1};
                                                      }}};
  expect_findings<LocalPlan>(sample_local_save(), PlanKind::kLocalSave, cases);
}

TEST(PlanBufferDamage, WriteListsMeanSomething) {
  expect_findings<WriteList>(
      sample_write_list(), PlanKind::kWriteList,
      {{"rank 5 of 2", [](WriteList& list) { list.rank = 5; }},
       {"generation", [](WriteList& list) { list.generation = "x"; }},
       {"past 2^62", [](WriteList& list) { list.items.back().size_bytes = uint64_t{1} << 62; }},
       {"past 2^62", [](WriteList& list) { list.items[0].size_bytes = ~uint64_t{0}; }},
       {"behind an object",
        [](WriteList& list) { std::swap(list.items.front(), list.items.back()); }},
       {"twice", [](WriteList& list) {
          list.items[1].entry = list.items[0].entry, list.items[1].piece = list.items[0].piece;
        }}});
}

TEST(PlanBufferDamage, LoadPlansMeanSomething) {
  expect_findings<LoadPlan>(
      sample_load(), PlanKind::kLoad,
      {{"rank -1", [](LoadPlan& plan) { plan.rank = -1; }},
       {"generation", [](LoadPlan& plan) { plan.generation = "x"; }},
       {"0 elements", on_reads([](ReadList& reads) { reads[0].box.sizes[0] = 0; })},
       {"from -1", on_reads([](ReadList& reads) { reads[0].box.offsets[0] = -1; })},
       {"elements from", on_reads([](ReadList& reads) {
          reads[0].box.sizes[0] = std::numeric_limits<int64_t>::max();
        })},
       {"does not follow", on_reads([](ReadList& reads) { std::swap(reads[0], reads[1]); })},
       {"out of order", [](LoadPlan& plan) { plan.objects.push_back(plan.objects[0]); }},
       {"dtype number 0", [](LoadPlan& plan) { plan.casts[0].stored = DType::kInvalid; }},
       {"dtype number", [](LoadPlan& plan) { plan.casts[0].wanted = plan.casts[0].stored; }},
       {"cast 1 is out of order", [](LoadPlan& plan) { plan.casts.push_back(plan.casts[0]); }},
       {"among those loaded", [](LoadPlan& plan) { plan.loaded[0] = "\xFF"; }},
       {"among those missing", [](LoadPlan& plan) { plan.missing[0] = "\xFF"; }},
       {"among those unexpected",
        [](LoadPlan& plan) { plan.unexpected[0] = std::string(70000, 'x'); }}});
}

TEST(PlanBufferDamage, PlansOfAnExchangeMeanSomething) {
  expect_findings<WantList>(
      sample_want_list(), PlanKind::kWantList,
      {{"rank 4", [](WantList& list) { list.rank = 4; }},
       {"node -1", [](WantList& list) { list.node = -1; }},
       {"rank 2 of 0", [](WantList& list) { list.world_size = 0; }},
       {"generation", [](WantList& list) { list.generation = "x"; }},
       {"bytes at", [](WantList& list) { list.blocks[0].length = 0; }},
       {"bytes at", [](WantList& list) { list.blocks[2].length = ~uint64_t{0}; }},
       {"above", [](WantList& list) { list.blocks[1] = list.blocks[0]; }}});
  expect_findings<ExchangePlan>(
      sample_exchange(), PlanKind::kExchange,
      {{"rank 4", [](ExchangePlan& plan) { plan.rank = 4; }},
       {"rank 2 of -1", [](ExchangePlan& plan) { plan.world_size = -1; }},
       {"generation", [](ExchangePlan& plan) { plan.generation = "x"; }},
       {"targets", [](ExchangePlan& plan) { plan.targets.pop_back(); }},
       {"targets", [](ExchangePlan& plan) { plan.targets.push_back(1); }},
       {"to rank 4", [](ExchangePlan& plan) { plan.targets[0] = 4; }},
       {"to rank 2", [](ExchangePlan& plan) { plan.targets[0] = 2; }},
       {"cannot be", [](ExchangePlan& plan) { plan.routes[0].targets = 5; }},
       {"cannot be", [](ExchangePlan& plan) { plan.routes[0].taker = 4; }},
       {"cannot be", [](ExchangePlan& plan) { plan.routes[0].step = 1; }},
       {"cannot be", [](ExchangePlan& plan) { plan.routes[2].step = 0; }},
       {"cannot be", [](ExchangePlan& plan) { plan.routes[2].source = 2; }},
       {"cannot be", [](ExchangePlan& plan) { plan.routes[1].source = 1; }},
       {"ascend", [](ExchangePlan& plan) { plan.rounds[1] = 0; }},
       {"spans", [](ExchangePlan& plan) { plan.span_bytes = 0; }}});
}

TEST(PlanBufferDamage, WriteResultsMeanSomething) {
  expect_findings<WriteResult>(
      sample_write_result(), PlanKind::kWriteResult,
      {{"rank -1", [](WriteResult& result) { result.rank = -1; }},
       {"generation", [](WriteResult& result) { result.generation = ""; }},
       {"leaves a file", [](WriteResult& result) { result.index_bytes = 10000; }},
       {"leaves a file", [](WriteResult& result) { result.index_position = ~uint64_t{0}; }},
       {"without a file", [](WriteResult& result) { result.has_file = false; }},
       {"bytes of payload", [](WriteResult& result) { result.payload_bytes = ~uint64_t{0}; }}});
}

TEST(PlanBufferDamage, MergedPlansMeanSomething) {
  expect_findings<GlobalSavePlan>(
      sample_global_save(), PlanKind::kMergedSave,
      {{"generation", [](GlobalSavePlan& plan) { plan.generation[0] = 'g'; }},
       {"no rank holds",
        [](GlobalSavePlan& plan) {
          plan.catalog = with_boxes(plan.catalog);
          plan.catalog.boxes[0].size0 -= 1;
        }},
       {"of rank 1048576",
        [](GlobalSavePlan& plan) {
          plan.catalog = with_boxes(plan.catalog);
          plan.catalog.boxes[0].place = 1 << 20;
        }},
       {"of rank 1048576", [](GlobalSavePlan& plan) { plan.catalog.objects[0].place = 1 << 20; }},
       {"another digest", [](GlobalSavePlan& plan) { plan.plan_digest[0] ^= std::byte{1}; }}});
}

TEST(PlanBufferDamage, ValidateListsSeveralFindings) {
  WriteList list = sample_write_list();
  list.rank = 9;
  list.generation = "x";
  list.items.push_back(list.items.front());
  EXPECT_EQ(validate_plan(encoded(list)).size(), 4U) << "rank, generation, order, twice";
}

// A local plan of one entry whose attribute is the column of its description.
Buffer with_shared_columns(const Buffer& description) {
  flatbuffers::FlatBufferBuilder builder;
  const auto bytes = builder.CreateVector(reinterpret_cast<const uint8_t*>(description.data()),
                                          description.size());
  const auto ends = builder.CreateVector(std::vector<uint64_t>{description.size()});
  const auto attributes = wire::CreateNameList(builder, bytes, ends);
  const BoxList list{0, 0, 0, 1};
  const auto lists =
      builder.CreateVectorOfStructs(reinterpret_cast<const wire::BoxList*>(&list), 1);
  const ChunkRecord box;
  const auto boxes =
      builder.CreateVectorOfStructs(reinterpret_cast<const wire::ChunkRecord*>(&box), 1);
  const wire::Digest digest = wire::encode_digest(integrity::xxh3_128(description));
  const auto part =
      wire::CreateLocalPart(builder, 0, 1, &digest, lists, boxes, 0, 0, 0, 0, attributes);
  const auto body = wire::CreateLocalSave(builder, bytes, part);
  wire::PlanBufferBuilder root(builder);
  root.add_schema_major(1);
  root.add_kind(wire::PlanBufferKind::LocalSave);
  root.add_local_save(body);
  builder.FinishSizePrefixed(root.Finish(), "SHWP");
  const auto* begin = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return Buffer(begin, begin + builder.GetSize());
}

// Columns of a buffer may lie in the same bytes; those of the merged plan do not.
TEST(PlanBufferDamage, ColumnsThatShareBytesAreMergedIntoColumnsOfTheirOwn) {
  LocalPlan plan = sample_described(0);
  Description& description = plan.description;
  description = Description();
  description.options_text = std::string(1 << 20, 'o') + "\n";
  description.options_digest = options_text_digest(description.options_text);
  CatalogBuilder::Tensor tensor;
  tensor.name = "w";
  tensor.dtype = DType::kInt8;
  const Dims shape{1};
  tensor.shape = shape;
  ASSERT_TRUE(CatalogBuilder(&description.catalog).add_tensor(tensor, {}).ok());
  description.forms = {kBoxes};
  const Buffer shared = with_shared_columns(*encode(description));
  ASSERT_TRUE(decode<LocalPlan>(shared).ok()) << decode<LocalPlan>(shared).status().to_string();
  const Result<PlanParts> parts = merged({shared}, {});
  ASSERT_TRUE(parts.ok()) << parts.status().to_string();
  EXPECT_EQ(kept_texts(shared, parts->numbers(1)), std::vector<std::string>{"w[0:1]=0"});
}

TEST(PlanBufferDamage, BuffersThatWouldOutgrowTheLimitAreRefused) {
  EXPECT_TRUE(check_wire_size(kMaxFlatBufferBytes, "the plan").ok());
  EXPECT_FAILURE(check_wire_size(kMaxFlatBufferBytes + 1, "the plan"),
                 StatusCode::kResourceExhausted, "the plan", "2147483648");
}

}  // namespace
}  // namespace shardwright::plan::test
