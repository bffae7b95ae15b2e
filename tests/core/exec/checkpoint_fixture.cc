// SPDX-License-Identifier: Apache-2.0
#include "tests/core/exec/checkpoint_fixture.h"

#include <algorithm>
#include <cstring>

namespace shardwright::exec::test {
namespace {

constexpr std::byte kUntouched{0xEE};

TensorView view_of(std::vector<std::byte>* memory, DType dtype, Dims shape) {
  TensorView view;
  view.data = memory->data();
  view.dtype = dtype;
  view.shape = std::move(shape);
  return view;
}

// Calls body with the byte offset of each row run of a box inside the whole tensor, in row-major
// order.
void for_each_run(const Dense& truth, const Box& box,
                  const std::function<void(uint64_t, uint64_t)>& body) {
  if (box_is_empty(box)) return;
  const size_t dims = box.sizes.size();
  if (dims == 0) return body(0, truth.element_bytes());
  Dims at = box.offsets;
  const auto run_bytes = static_cast<uint64_t>(box.sizes[dims - 1]) * truth.element_bytes();
  while (true) {
    int64_t element = 0;
    for (size_t d = 0; d < dims; ++d) element = element * truth.shape[d] + at[d];
    body(static_cast<uint64_t>(element) * truth.element_bytes(), run_bytes);
    size_t d = dims - 1;
    while (d > 0 && ++at[d - 1] == box.offsets[d - 1] + box.sizes[d - 1]) {
      at[d - 1] = box.offsets[d - 1];
      --d;
    }
    if (d == 0) return;
  }
}

}  // namespace

std::vector<std::byte> Dense::box_bytes(const Box& box) const {
  std::vector<std::byte> result;
  for_each_run(*this, box, [&](uint64_t offset, uint64_t size) {
    const auto first = bytes.begin() + static_cast<int64_t>(offset);
    result.insert(result.end(), first, first + static_cast<int64_t>(size));
  });
  return result;
}

Dense random_dense(shardwright::test::RandomSource& random, std::string name, DType dtype,
                   Dims shape) {
  Dense dense{std::move(name), dtype, std::move(shape), {}};
  dense.bytes.resize(static_cast<size_t>(dense.count()) * dense.element_bytes());
  for (size_t i = 0; i < dense.bytes.size(); i += 8) {
    const uint64_t value = random.next();
    std::memcpy(dense.bytes.data() + i, &value, std::min<size_t>(8, dense.bytes.size() - i));
  }
  return dense;
}

void add_boxes(Holding* holding, const Dense& truth, const std::vector<Box>& boxes, bool filled,
               EntryKind kind) {
  auto memory = std::make_unique<std::vector<std::byte>>();
  TensorEntry entry;
  int64_t count = 0;
  for (const Box& box : boxes) {
    const std::vector<std::byte> bytes = truth.box_bytes(box);
    if (filled) {
      memory->insert(memory->end(), bytes.begin(), bytes.end());
    } else {
      memory->resize(memory->size() + bytes.size(), kUntouched);
    }
    entry.pieces.push_back({box, count});
    count += box_element_count(box);
  }
  entry.name = truth.name;
  entry.kind = kind;
  entry.global_shape = truth.shape;
  entry.local = view_of(memory.get(), truth.dtype, Dims{count});
  std::vector<TensorEntry> entries;
  entries.push_back(std::move(entry));
  const Status added = holding->state->add_tensors(entries);
  ASSERT_TRUE(added.ok()) << added.to_string();
  holding->memory.push_back(std::move(memory));
}

void add_whole(Holding* holding, const Dense& truth, bool filled, EntryKind kind) {
  auto memory = std::make_unique<std::vector<std::byte>>(truth.bytes.size(), kUntouched);
  if (filled) *memory = truth.bytes;
  std::vector<TensorEntry> entries{
      plain_tensor_entry(truth.name, view_of(memory.get(), truth.dtype, truth.shape))};
  entries.front().kind = kind;
  const Status added = holding->state->add_tensors(entries);
  ASSERT_TRUE(added.ok()) << added.to_string();
  holding->memory.push_back(std::move(memory));
}

void add_object(Holding* holding, std::string name, std::string_view text, EntryKind kind) {
  ObjectEntry entry;
  entry.name = std::move(name);
  entry.kind = kind;
  entry.content_type = "application/octet-stream";
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  entry.bytes.assign(bytes.begin(), bytes.end());
  std::vector<ObjectEntry> entries;
  entries.push_back(std::move(entry));
  const Status added = holding->state->add_objects(std::move(entries));
  ASSERT_TRUE(added.ok()) << added.to_string();
}

testing::AssertionResult holds(const Holding& holding, size_t index, const Dense& truth) {
  std::vector<std::byte> expected;
  const PieceList pieces = holding.state->tensors()[index].pieces;
  for (size_t p = 0; p < pieces.size(); ++p) {
    const std::vector<std::byte> bytes = truth.box_bytes(pieces[p].box);
    expected.insert(expected.end(), bytes.begin(), bytes.end());
  }
  if (*holding.memory[index] == expected) return testing::AssertionSuccess();
  const auto [found, wanted] =
      std::mismatch(holding.memory[index]->begin(), holding.memory[index]->end(), expected.begin(),
                    expected.end());
  return testing::AssertionFailure()
         << truth.name << " differs at byte " << found - holding.memory[index]->begin() << " of "
         << expected.size();
}

std::vector<Box> random_cuts(shardwright::test::RandomSource& random, const Dims& shape,
                             int32_t parts) {
  std::vector<Box> boxes{whole_box(shape)};
  for (int32_t cut = 1; cut < parts; ++cut) {
    const auto chosen =
        static_cast<size_t>(random.between(0, static_cast<int64_t>(boxes.size()) - 1));
    Box& box = boxes[chosen];
    if (shape.empty()) break;
    const auto d = static_cast<size_t>(random.between(0, static_cast<int64_t>(shape.size()) - 1));
    if (box.sizes[d] < 2) continue;
    Box rest = box;
    const int64_t keep = random.between(1, box.sizes[d] - 1);
    box.sizes[d] = keep;
    rest.offsets[d] += keep;
    rest.sizes[d] -= keep;
    boxes.push_back(std::move(rest));
  }
  std::erase_if(boxes, [](const Box& box) { return box_is_empty(box); });
  return boxes;
}

CheckpointFixture::CheckpointFixture() : CheckpointFixture(storage::make_memory_storage()) {}

CheckpointFixture::CheckpointFixture(std::shared_ptr<storage::Storage> store,
                                     std::vector<std::shared_ptr<const format::Format>> formats)
    : store_(std::move(store)) {
  RuntimeOptions options;
  options.formats = std::move(formats);
  options.threads = 2;
  Result<std::unique_ptr<Runtime>> runtime = Runtime::create(options);
  EXPECT_TRUE(runtime.ok()) << runtime.status().to_string();
  runtime_ = std::move(*runtime);
}

void on_ranks(int32_t world_size,
              const std::function<void(int32_t, collective::Collective&)>& body) {
  std::vector<std::unique_ptr<collective::Collective>> members =
      collective::make_thread_collectives(world_size);
  std::vector<std::jthread> threads;
  for (int32_t rank = 1; rank < world_size; ++rank) {
    threads.emplace_back([&, rank] { body(rank, *members[static_cast<size_t>(rank)]); });
  }
  body(0, *members[0]);
}

Report CheckpointFixture::save(const std::vector<std::shared_ptr<State>>& states,
                               SaveOptions options, std::string prefix) {
  Report report;
  on_ranks(static_cast<int32_t>(states.size()), [&](int32_t rank,
                                                    collective::Collective& collective) {
    const Result<Report> saved = exec::save(*runtime_, states[static_cast<size_t>(rank)],
                                            location(prefix), collective, options, CallContext());
    EXPECT_TRUE(saved.ok()) << "rank " << rank << ": " << saved.status().to_string();
    if (rank == 0 && saved.ok()) report = *saved;
  });
  return report;
}

std::shared_ptr<const Checkpoint> CheckpointFixture::open(std::string prefix) {
  Result<std::shared_ptr<const Checkpoint>> opened =
      Checkpoint::open(*runtime_, location(std::move(prefix)));
  EXPECT_TRUE(opened.ok()) << opened.status().to_string();
  return opened.ok() ? *opened : nullptr;
}

std::vector<Result<Report>> CheckpointFixture::load(
    const std::vector<std::shared_ptr<State>>& states, LoadOptions options, std::string prefix) {
  std::vector<Result<Report>> reports(states.size(), Result<Report>(internal_error("not run")));
  on_ranks(static_cast<int32_t>(states.size()),
           [&](int32_t rank, collective::Collective& collective) {
             const auto index = static_cast<size_t>(rank);
             reports[index] = exec::load(*runtime_, location(prefix), *states[index], collective,
                                         options, CallContext());
           });
  return reports;
}

Result<Report> CheckpointFixture::load_one(const Holding& one, LoadOptions options) {
  return load(std::vector<std::shared_ptr<State>>{one.state}, std::move(options)).front();
}

std::vector<std::byte> CheckpointFixture::get(const std::string& key) {
  Result<std::vector<std::byte>> bytes = storage::read_all(*store_, key, UINT64_MAX / 2);
  EXPECT_TRUE(bytes.ok()) << bytes.status().to_string();
  return bytes.ok() ? *bytes : std::vector<std::byte>();
}

void CheckpointFixture::put(const std::string& key, std::span<const std::byte> bytes) {
  ASSERT_TRUE(store_->remove(key).ok());
  storage::OpenOptions options;
  options.mode = storage::OpenMode::kCreateVisible;
  auto object = store_->open(key, options);
  ASSERT_TRUE(object.ok()) << object.status().to_string();
  ASSERT_TRUE((*object)->write_at(0, bytes).ok());
  ASSERT_TRUE((*object)->sync().ok());
  ASSERT_TRUE((*object)->close().ok());
}

std::vector<std::string> CheckpointFixture::keys(const std::string& prefix) {
  std::vector<std::string> keys;
  EXPECT_TRUE(store_
                  ->list(prefix, storage::kNoDelimiter,
                         [&](const storage::ListEntry& entry) {
                           keys.push_back(entry.key);
                           return Status();
                         })
                  .ok());
  return keys;
}

}  // namespace shardwright::exec::test
