/* SPDX-License-Identifier: Apache-2.0
 *
 * Simulation: a job of any number of ranks is described as JSON (docs/formats/mesh.md) or taken
 * from a checkpoint, and what a save or load of it would cost is estimated on one machine before
 * anything moves. No rank has to run, no tensor has to be there. */
#ifndef SHARDWRIGHT_ESTIMATE_H
#define SHARDWRIGHT_ESTIMATE_H

#include "base.h"
#include "buffer.h"
#include "checkpoint.h"
#include "save.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* A described job: its ranks, and what each holds of each tensor and object. Immutable.
 * Since: 0.1 unstable */
typedef struct shw_job_description shw_job_description;

/* Blocks of a load that several nodes want: each node reads them, or one rank reads a block and
 * sends it to one rank of each other node, as loads with the option exchange = always do.
 * Since: 0.1 unstable */
enum { SHW_ESTIMATE_EXCHANGE_OFF = 0, SHW_ESTIMATE_EXCHANGE_ALWAYS = 1 };

/* How the cost of a plan is estimated. `owner` is a SHW_OWNER_ number and `preset` a SHW_PRESET_
 * number, as in save options; `memory_budget` is the staging bytes of one rank, 0 = 256 MiB; the
 * rates give the time: bytes per second of one rank, and of all ranks together, 0 = not known.
 * `ranks_per_node` is for loads: so many ranks, one after the other, run on one machine and share
 * what they read; 0 = each reads alone, 64 at most. `exchange` is a SHW_ESTIMATE_EXCHANGE_ number;
 * other than 0 it needs `ranks_per_node`. Flag SHW_ESTIMATE_WITH_PLAN: see shw_estimate_save and
 * shw_estimate_load.
 * Since: 0.1 unstable */
typedef struct shw_estimate_options {
  uint32_t struct_size;
  uint32_t flags;
  int32_t owner;
  int32_t preset;
  uint64_t memory_budget;
  uint64_t rank_bytes_per_second;
  uint64_t total_bytes_per_second;
  uint32_t ranks_per_node;
  int32_t exchange;
} shw_estimate_options;

/* Flag of shw_estimate_options: the merged plan of a save, or the load plan of each rank, is
 * wanted, too.
 * Since: 0.1 unstable */
#define SHW_ESTIMATE_WITH_PLAN 1

/* Flag of shw_estimate_options: groups of tensors list the chunks of their first tensor
 * ("chunk_list"), up to 1 Mi in all.
 * Since: 0.1 unstable */
#define SHW_ESTIMATE_WITH_CHUNKS 2

/* Byte size of the oldest published shw_estimate_options.
 * Since: 0.1 unstable */
#define SHW_ESTIMATE_OPTIONS_SIZE_V1 48

#define SHW_ESTIMATE_OPTIONS_INIT {sizeof(shw_estimate_options), 0, 0, 0, 0, 0, 0, 0, 0}

/* Fills options with zeros and their size, as SHW_ESTIMATE_OPTIONS_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_estimate_options_init(shw_estimate_options* options,
                                       uint32_t struct_size) SHW_NOEXCEPT;

/* Reads a JSON description. What is wrong is told with line and column, which are also the details
 * `line` and `column`; keys that are not known are refused with the nearest known one.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_job_description_create(const void* SHW_NULLABLE data, uint64_t size, shw_job_description** out,
                           shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Takes what a checkpoint stores: each chunk is held by the rank that wrote it.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_job_description_from_checkpoint(const shw_checkpoint* checkpoint, shw_job_description** out,
                                    shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* The tensors and objects of `source` as `target` lays them out: as it lists them, else by the
 * first of its rules that matches.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, NOT_FOUND
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_job_description_lay_out(const shw_job_description* source, const shw_job_description* target,
                            shw_job_description** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Number of ranks; 0 for NULL.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API int32_t shw_job_description_rank_count(const shw_job_description* description) SHW_NOEXCEPT;

/* The JSON text that shw_job_description_create reads, repeats written out.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_job_description_json(const shw_job_description* description,
                                                         shw_buffer** out,
                                                         shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Plans the save of all ranks and gives what it costs as JSON text with "schema": 1 (part 0 of
 * `out`). With SHW_ESTIMATE_WITH_PLAN part 1 is the merged plan as a plan buffer.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_estimate_save(const shw_job_description* description,
                                                  const shw_estimate_options* SHW_NULLABLE options,
                                                  shw_buffer** out,
                                                  shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Plans the load by the ranks of `wanted` (shw_job_description_lay_out made it from `stored`) of
 * what the checkpoint of `stored` holds, or of what a save of `stored` would store; `wanted` NULL =
 * `stored` itself. What it costs is JSON text with "schema": 1 (part 0 of `out`). With
 * SHW_ESTIMATE_WITH_PLAN part 1 + r is the load plan of rank r as a plan buffer, up to 4 GiB in
 * all; its entries are the tensors and objects that the rank holds, in the order of the
 * description.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, NOT_FOUND, RESOURCE_EXHAUSTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_estimate_load(const shw_job_description* stored,
                                                  const shw_job_description* SHW_NULLABLE wanted,
                                                  const shw_estimate_options* SHW_NULLABLE options,
                                                  shw_buffer** out,
                                                  shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Releases the description. NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: description
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_job_description_release(shw_job_description* SHW_NULLABLE description)
    SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_ESTIMATE_H */
