// SPDX-License-Identifier: Apache-2.0
//
// A format without digests, generations and a manifest, through everything that reads: any number
// of files, any layout of the reading ranks, verification and damage.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/collective/collective.h"
#include "tests/core/exec/checkpoint_fixture.h"
#include "tests/support/run_length.h"

namespace shardwright::exec::test {
namespace {

using shardwright::test::RandomSource;

// Tensors one after the other behind their header.
class FileText {
 public:
  void add(std::string_view name, std::string_view dtype, const Dims& shape,
           std::span<const std::byte> bytes) {
    entries_ += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                            entries_.empty() ? "" : ",", name, dtype, fmt::join(shape, ","),
                            buffer_.size(), buffer_.size() + bytes.size());
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
  void add_offsets(std::string_view name, const Dims& offsets) {
    sharding_ += fmt::format(R"({}\"{}\":{{\"saved_offsets\":[{}]}})", sharding_.empty() ? "" : ",",
                             name, fmt::join(offsets, ","));
  }
  std::vector<std::byte> take() const {
    std::string header = "{";
    if (!sharding_.empty())
      header += R"("__metadata__":{"DCP_SHARDING_INFO":"{)" + sharding_ + R"(}"})";
    if (!sharding_.empty() && !entries_.empty()) header += ",";
    header += entries_ + "}";
    const uint64_t length = header.size();
    const auto front = std::as_bytes(std::span(&length, 1));
    std::vector<std::byte> file(front.begin(), front.end());
    const auto text = std::as_bytes(std::span(header));
    file.insert(file.end(), text.begin(), text.end());
    file.insert(file.end(), buffer_.begin(), buffer_.end());
    return file;
  }

 private:
  std::string entries_;
  std::string sharding_;
  std::vector<std::byte> buffer_;
};

const std::pair<DType, const char*> kDTypes[] = {{DType::kUint8, "U8"},
                                                 {DType::kBfloat16, "BF16"},
                                                 {DType::kFloat32, "F32"},
                                                 {DType::kInt64, "I64"},
                                                 {DType::kComplex64, "C64"}};

struct Model {
  std::vector<Dense> tensors;
  std::vector<const char*> dtypes;
};

Model random_model(RandomSource& random) {
  Model model;
  for (int64_t i = random.between(1, 8); i > 0; --i) {
    Dims shape(static_cast<size_t>(random.between(0, 4)), 1);
    for (int64_t& extent : shape) extent = random.chance(5) ? 0 : random.between(1, 24);
    if (random.chance(15) && !shape.empty()) shape[0] *= random.between(1, 200);
    const auto& [dtype, text] = kDTypes[static_cast<size_t>(random.between(0, 4))];
    model.tensors.push_back(random_dense(random, fmt::format("tensor.{}", i), dtype, shape));
    model.dtypes.push_back(text);
  }
  return model;
}

// Whole tensors in some files and their index.
void store_whole(RandomSource& random, const Model& model, CheckpointFixture* fixture) {
  std::vector<FileText> files(static_cast<size_t>(random.between(1, 4)));
  std::string map;
  for (size_t i = 0; i < model.tensors.size(); ++i) {
    const Dense& tensor = model.tensors[i];
    const auto file = static_cast<size_t>(random.next() % files.size());
    files[file].add(tensor.name, model.dtypes[i], tensor.shape, tensor.bytes);
    map +=
        fmt::format(R"({}"{}":"model-{}.safetensors")", map.empty() ? "" : ",", tensor.name, file);
  }
  for (size_t i = 0; i < files.size(); ++i)
    fixture->put(fmt::format("ckpt/model-{}.safetensors", i), files[i].take());
  const std::string index = R"({"weight_map":{)" + map + "}}";
  fixture->put("ckpt/model.safetensors.index.json", std::as_bytes(std::span(index)));
}

// Each tensor cut at random, its parts in random files.
void store_parts(RandomSource& random, const Model& model, CheckpointFixture* fixture) {
  std::vector<FileText> files(static_cast<size_t>(random.between(1, 4)));
  for (size_t i = 0; i < model.tensors.size(); ++i) {
    const Dense& tensor = model.tensors[i];
    std::vector<Box> boxes = random_cuts(random, tensor.shape, static_cast<int32_t>(files.size()));
    if (boxes.empty()) boxes.push_back(whole_box(tensor.shape));
    const auto first = static_cast<size_t>(random.next() % files.size());
    for (size_t part = 0; part < boxes.size(); ++part) {
      FileText& file = files[(first + part) % files.size()];
      file.add(tensor.name, model.dtypes[i], boxes[part].sizes, tensor.box_bytes(boxes[part]));
      file.add_offsets(tensor.name, boxes[part].offsets);
    }
  }
  for (size_t i = 0; i < files.size(); ++i)
    fixture->put(fmt::format("ckpt/{}.safetensors", i), files[i].take());
}

// Each rank wants some boxes of each tensor.
std::vector<Holding> random_targets(RandomSource& random, const Model& model) {
  std::vector<Holding> holdings(static_cast<size_t>(random.between(1, 5)));
  for (const Dense& tensor : model.tensors) {
    std::vector<std::vector<Box>> boxes(holdings.size());
    for (const Box& box : random_cuts(random, tensor.shape, 6))
      boxes[static_cast<size_t>(random.next() % boxes.size())].push_back(box);
    for (size_t rank = 0; rank < holdings.size(); ++rank)
      add_boxes(&holdings[rank], tensor, boxes[rank], false, EntryKind::kSharded);
  }
  return holdings;
}

std::vector<std::shared_ptr<State>> states_of(const std::vector<Holding>& holdings) {
  std::vector<std::shared_ptr<State>> states;
  for (const Holding& holding : holdings) states.push_back(holding.state);
  return states;
}

TEST(Safetensors, GivesEveryRankItsBytesUnderAnyLayout) {
  RandomSource random;
  for (int64_t round = 0; round < shardwright::test::rounds(40); ++round) {
    CheckpointFixture fixture;
    const Model model = random_model(random);
    random.chance(50) ? store_whole(random, model, &fixture) : store_parts(random, model, &fixture);
    const std::vector<Holding> targets = random_targets(random, model);
    for (const Result<Report>& report : fixture.load(states_of(targets))) {
      ASSERT_TRUE(report.ok()) << report.status().to_string();
      EXPECT_FALSE(report->digests);
      EXPECT_EQ(report->format, "hf-safetensors");
    }
    for (const Holding& target : targets) {
      for (size_t i = 0; i < model.tensors.size(); ++i)
        ASSERT_TRUE(holds(target, i, model.tensors[i])) << "round " << round;
    }
    const auto checkpoint = fixture.open();
    for (const Dense& tensor : model.tensors) {
      integrity::TensorDigester digester(integrity::TensorDigestAlgorithm::kXxh3);
      digester.update(tensor.bytes);
      const auto digest =
          checkpoint->tensor_digest(*checkpoint->find_tensor(tensor.name, -1),
                                    integrity::TensorDigestAlgorithm::kXxh3, CallContext());
      ASSERT_TRUE(digest.ok() && *digest == digester.finish()) << tensor.name;
    }
    ASSERT_TRUE(checkpoint->verify(true, CallContext()).ok());
  }
}

TEST(Safetensors, VerificationSaysThatThereAreNoDigests) {
  RandomSource random;
  CheckpointFixture fixture;
  FileText file;
  const Dense tensor = random_dense(random, "w", DType::kFloat32, {300, 1000});
  file.add("w", "F32", tensor.shape, tensor.bytes);
  fixture.put("m.safetensors", file.take());
  const auto checkpoint = fixture.open("m.safetensors");
  for (const bool deep : {false, true}) {
    const Result<Report> report = checkpoint->find_damage(deep, CallContext());
    ASSERT_TRUE(report.ok()) << report.status().to_string();
    EXPECT_TRUE(report->damage.empty());
    EXPECT_EQ(report->bytes_read, deep ? tensor.bytes.size() : 0U);
    ASSERT_EQ(report->notes.size(), 1U);
    EXPECT_NE(report->notes[0].find("no digests"), std::string::npos);
  }
  std::vector<std::byte> cut = fixture.get("m.safetensors");
  cut.resize(cut.size() - 1);
  fixture.put("m.safetensors", cut);
  const Result<Report> report = checkpoint->find_damage(true, CallContext());
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  ASSERT_EQ(report->damage.size(), 1U);
  EXPECT_EQ(report->damage[0].file, "m.safetensors");
  Holding target;
  add_whole(&target, tensor, false);
  const auto alone = collective::make_single_collective();
  const Result<Report> loaded =
      load(fixture.runtime(), *checkpoint, *target.state, *alone, LoadOptions(), CallContext());
  EXPECT_EQ(loaded.status().code(), StatusCode::kAborted) << loaded.status().to_string();
}

// Each rank opens the file by itself; one finds another file there.
TEST(Safetensors, RanksThatOpenedOtherFilesDoNotLoad) {
  RandomSource random;
  const Dense tensor = random_dense(random, "w", DType::kUint8, {4});
  std::vector<CheckpointFixture> fixtures(2);
  for (size_t rank = 0; rank < 2; ++rank) {
    FileText file;
    file.add("w", "U8", tensor.shape, tensor.bytes);
    if (rank == 1) file.add("new", "U8", {0}, {});
    fixtures[rank].put("m.safetensors", file.take());
  }
  on_ranks(2, [&](int32_t rank, collective::Collective& collective) {
    CheckpointFixture& fixture = fixtures[static_cast<size_t>(rank)];
    Holding target;
    add_whole(&target, tensor, false, EntryKind::kReplicated);
    const auto checkpoint = fixture.open("m.safetensors");
    const Result<Report> report = load(fixture.runtime(), *checkpoint, *target.state, collective,
                                       LoadOptions(), CallContext());
    EXPECT_EQ(report.status().code(), StatusCode::kAborted) << report.status().to_string();
  });
}

}  // namespace
}  // namespace shardwright::exec::test
