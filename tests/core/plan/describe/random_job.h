// SPDX-License-Identifier: Apache-2.0
//
// Random jobs: a few pipeline stages with their own meshes (row-major, shuffled, on sub-groups; one
// to three axes), tensors that are sharded over several axes and dimensions, replicated, plain, cut
// into irregular boxes or rank_local, and objects. Every tensor of a job is covered exactly once.
#pragma once

#include <algorithm>
#include <numeric>

#include "tests/core/plan/describe/layout_jobs.h"
#include "tests/core/plan/random_world.h"

namespace shardwright::plan::test {

using shardwright::test::RandomSource;

struct RandomJob {
  int32_t ranks = 1;
  std::vector<std::vector<JobEntry>> entries;  // per rank
  Job job() const {
    return [this](int32_t rank) { return entries[static_cast<size_t>(rank)]; };
  }
};

inline Dims random_shape(RandomSource& random) {
  std::vector<int64_t> extents;
  const int64_t dimensions = random.between(0, 4);
  for (int64_t d = 0; d < dimensions; ++d)
    extents.push_back(random.chance(5)    ? 0
                      : random.chance(30) ? random.between(1, 70)
                                          : random.between(1, 9));
  return Dims(extents);
}

// A factorisation of count into one to three axes.
inline Dims random_axes(RandomSource& random, int64_t count) {
  std::vector<int64_t> axes;
  while (axes.size() < 2 && count > 1 && random.chance(60)) {
    std::vector<int64_t> divisors;
    for (int64_t i = 1; i <= count; ++i) {
      if (count % i == 0) divisors.push_back(i);
    }
    axes.push_back(random.pick(divisors));
    count /= axes.back();
  }
  axes.push_back(count);
  return Dims(axes);
}

class RandomJobMaker {
 public:
  explicit RandomJobMaker(RandomSource& random) : random_(random) {}

  RandomJob make() {
    job_.ranks = static_cast<int32_t>(random_.between(1, random_.chance(10) ? 48 : 16));
    job_.entries.resize(static_cast<size_t>(job_.ranks));
    cut_into_stages();
    const int64_t names = random_.between(1, 8);
    for (int64_t i = 0; i < names; ++i) add_entry(i);
    for (std::vector<JobEntry>& each : job_.entries) {
      if (random_.chance(10)) std::reverse(each.begin(), each.end());
    }
    return std::move(job_);
  }

 private:
  using Ranks = std::vector<int32_t>;

  void cut_into_stages() {
    Ranks all(static_cast<size_t>(job_.ranks));
    std::iota(all.begin(), all.end(), 0);
    if (random_.chance(15)) std::shuffle(all.begin(), all.end(), std::mt19937_64(random_.next()));
    size_t begin = 0;
    while (begin < all.size()) {
      size_t count =
          static_cast<size_t>(random_.between(1, static_cast<int64_t>(all.size() - begin)));
      if (random_.chance(60)) count = all.size() - begin;
      stages_.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(begin),
                           all.begin() + static_cast<std::ptrdiff_t>(begin + count));
      begin += count;
    }
  }

  JobEntry& give(int32_t rank, const JobEntry& entry) {
    job_.entries[static_cast<size_t>(rank)].push_back(entry);
    return job_.entries[static_cast<size_t>(rank)].back();
  }

  void add_entry(int64_t number) {
    JobEntry entry;
    entry.name = "entry." + std::to_string(number);
    if (random_.chance(30)) entry.path = "[\"entry." + std::to_string(number) + "\"]";
    entry.dtype = random_.pick(std::vector<DType>{DType::kFloat32, DType::kBfloat16, DType::kBool});
    entry.shape = random_shape(random_);
    const int64_t what = random_.between(1, 100);
    if (what <= 12) return add_object(entry);
    if (what <= 22) return add_local(entry);
    if (what <= 35) return add_whole(entry);
    if (what <= 45) return add_irregular(entry);
    if (what <= 60) return add_groups(entry);
    add_sharded(entry, random_.pick(stages_));
  }

  Ranks some_ranks() {
    if (random_.chance(60)) return all_of_stages();
    return random_.pick(stages_);
  }
  Ranks all_of_stages() const {
    Ranks all(static_cast<size_t>(job_.ranks));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  void add_object(JobEntry entry) {
    entry.form = JobEntry::Form::kObject;
    const bool local = random_.chance(40);
    entry.kind = local ? EntryKind::kRankLocal : EntryKind::kAuto;
    entry.object_bytes = static_cast<uint64_t>(random_.between(0, 90));
    for (const int32_t rank : some_ranks()) {
      if (local) entry.object_bytes = static_cast<uint64_t>(random_.between(0, 90));
      give(rank, entry);
    }
  }

  void add_local(JobEntry entry) {
    entry.kind = EntryKind::kRankLocal;
    const bool boxes = random_.chance(40);
    for (const int32_t rank : some_ranks()) {
      JobEntry& given = give(rank, entry);
      if (!boxes) continue;
      given.form = JobEntry::Form::kBoxes;
      given.boxes = random_pieces(random_, whole_box(entry.shape), random_.between(1, 4));
    }
  }

  void add_whole(JobEntry entry) {
    for (const int32_t rank : some_ranks()) give(rank, entry);
  }

  void add_irregular(JobEntry entry) {
    entry.form = JobEntry::Form::kBoxes;
    entry.kind = EntryKind::kSharded;
    const std::vector<std::vector<Box>> boxes = irregular_boxes(random_, entry.shape, job_.ranks);
    for (int32_t r = 0; r < job_.ranks; ++r) give(r, entry).boxes = boxes[static_cast<size_t>(r)];
  }

  std::vector<Placement> random_placements(size_t axes, size_t dimensions) {
    std::vector<Placement> placements;
    for (size_t i = 0; i < axes; ++i) {
      const bool cut = dimensions > 0 && random_.chance(70);
      placements.push_back(cut ? shard(static_cast<int32_t>(
                                     random_.between(0, static_cast<int64_t>(dimensions) - 1)))
                               : replicate());
    }
    return placements;
  }

  void add_sharded(JobEntry entry, const Ranks& ranks) {
    entry.form = JobEntry::Form::kLayout;
    entry.kind = EntryKind::kSharded;
    Mesh mesh;
    mesh.shape = random_axes(random_, static_cast<int64_t>(ranks.size()));
    mesh.ranks = ranks;
    const size_t axes = mesh.shape.size();
    entry.layout = layout_of(std::move(mesh), random_placements(axes, entry.shape.size()));
    // Ranks outside the mesh may know the tensor without holding a part of it.
    const bool known_to_all = random_.chance(20);
    for (int32_t r = 0; r < job_.ranks; ++r) {
      if (known_to_all || entry.layout->contains(r)) give(r, entry);
    }
  }

  // The same cuts on several sub-groups with a mesh each, as tensor-parallel groups have them; at
  // times one group holds the tensor otherwise.
  void add_groups(JobEntry entry) {
    entry.form = JobEntry::Form::kLayout;
    entry.kind = EntryKind::kSharded;
    const int32_t count = static_cast<int32_t>(random_.between(1, job_.ranks));
    const std::vector<Placement> placements = random_placements(1, entry.shape.size());
    const bool interleaved = random_.chance(30) && job_.ranks % count == 0;
    for (int32_t first = 0; first + count <= job_.ranks; first += count) {
      Mesh mesh;
      mesh.shape = {count};
      for (int32_t i = 0; i < count; ++i)
        mesh.ranks.push_back(interleaved ? first / count + i * (job_.ranks / count) : first + i);
      const std::vector<int32_t> ranks = mesh.ranks;
      entry.layout = layout_of(std::move(mesh), placements);
      for (const int32_t rank : ranks) give(rank, entry);
    }
  }

  RandomSource& random_;
  RandomJob job_;
  std::vector<Ranks> stages_;
};

inline RandomJob random_job(RandomSource& random) {
  return RandomJobMaker(random).make();
}

}  // namespace shardwright::plan::test
