// SPDX-License-Identifier: Apache-2.0
//
// Which ranks of the target hold which parts of a tensor: the boxes that a job of that shape would
// save, and the file each goes to, one for each tensor- and pipeline-parallel place. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/exec/convert.h"
#include "core/plan/catalog.h"
#include "core/reshard/buckets.h"
#include "core/reshard/target_job.h"

namespace shardwright::reshard {

// The shape of the job that saved, as far as its chunks tell: expert and pipeline sizes only where
// its optimizer is stored in buckets, else 1; the data-parallel size is not known and 1, the
// tensor-parallel size of experts that of the rest where there are none.
JobShape shape_of_source(const plan::Catalog& catalog, const std::vector<Bucket>& buckets);

// A box that ranks of the target hold of a tensor.
struct HeldBox {
  Box box;
  Dims leading;       // its indexes in the dimensions in front, which number layers and experts
  int64_t stage = 0;  // of the pipeline
  int64_t place = 0;  // tensor-parallel, of experts among theirs; or kAllPlaces
  static constexpr int64_t kAllPlaces = -1;
};

class TargetGrid final : public exec::FilePlacement {
 public:
  // INVALID_ARGUMENT naming the tensor whose dimension, and the layers or experts whose number, the
  // sizes do not divide, or layers of stages that are not those of the model. source: of the chunks
  // of `stored`, whose tensors have the same names as those to be placed, or one of them behind
  // "optimizer.state.NAME.". Both outlive the grid.
  static Result<TargetGrid> create(const plan::Catalog& stored, const JobShape& source,
                                   const TargetJob& target);
  std::vector<Part> parts(const plan::Catalog& view, size_t tensor) const override;
  // Of a tensor of the model or one of its states, layer by layer; halves of a gated unit are two
  // boxes. Empty where ranks are not known to hold it.
  std::vector<HeldBox> held(const plan::Catalog& view, size_t tensor) const;
  int64_t layers() const { return layers_; }
  // Of each stage of the pipeline; empty: not said, and all have as many.
  const std::vector<int64_t>& stage_layers() const { return stage_layers_; }

 private:
  explicit TargetGrid(const TargetJob& target)
      : target_(target.shape), stage_layers_(target.pipeline_layers) {}

  struct Split {
    size_t dimension = SIZE_MAX;  // SIZE_MAX: not split
    int64_t halves = 1;           // 2: of a gated unit, each of which is split
    size_t leading = 0;           // dimensions in front that number layers and experts
    int64_t layer = -1;           // of its name
    bool is_behind = false;       // of the layers, in the last stage
  };
  Status add_tensor(const plan::Catalog& stored, size_t tensor, const JobShape& source);
  Status check_split(std::string_view name, std::span<const int64_t> shape, Split* split) const;
  Status check_stages(const JobShape& source) const;
  // Ranks that share out the rows of a tensor.
  int64_t places(std::string_view name) const;
  int64_t stage_of(const Split& split, int64_t layer) const;

  JobShape target_;
  std::vector<int64_t> stage_layers_;
  int64_t layers_ = 1;
  std::map<std::string, Split, std::less<>> splits_;
};

}  // namespace shardwright::reshard
