/* SPDX-License-Identifier: Apache-2.0
 *
 * The arrays of shw_entry_batch, for bindings that move them one by one: where each lies, how wide
 * its values are, and what its length follows from. In the order of the struct. */
#ifndef SHW_ENTRY_COLUMNS_H
#define SHW_ENTRY_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

#include "shardwright/planning.h"

/* What the length of an array follows from. */
enum {
  BY_ENTRY,     /* one per entry */
  CUTS,         /* one per entry and one more, ascending from 0 */
  CUT_BYTES,    /* as long as the last of the cuts that follow says */
  CUT_VALUES,   /* extents: as the last shape offset says */
  BY_BOX,       /* one per box */
  BY_BOX_VALUE, /* ndim per box */
};

typedef struct {
  const char* name;
  size_t offset; /* in shw_entry_batch */
  size_t width;  /* bytes of one */
  int length;
  size_t cuts; /* CUT_BYTES: where the cuts are */
} entry_column;

#define AT(field) #field, offsetof(shw_entry_batch, field)
static const entry_column kEntryColumns[] = {
    {AT(names), 1, CUT_BYTES, offsetof(shw_entry_batch, name_offsets)},
    {AT(name_offsets), 8, CUTS, 0},
    {AT(dtypes), 4, BY_ENTRY, 0},
    {AT(kinds), 4, BY_ENTRY, 0},
    {AT(shapes), 8, CUT_VALUES, 0},
    {AT(shape_offsets), 8, CUTS, 0},
    {AT(box_ranges), 8, CUTS, 0},
    {AT(box_offsets), 8, BY_BOX_VALUE, 0},
    {AT(box_sizes), 8, BY_BOX_VALUE, 0},
    {AT(numbers), 8, BY_BOX, 0},
    {AT(order), 8, BY_BOX, 0},
    {AT(secondary), 1, BY_BOX, 0},
    {AT(object_sizes), 8, BY_ENTRY, 0},
    {AT(paths), 1, CUT_BYTES, offsetof(shw_entry_batch, path_offsets)},
    {AT(path_offsets), 8, CUTS, 0},
    {AT(attributes), 1, CUT_BYTES, offsetof(shw_entry_batch, attribute_offsets)},
    {AT(attribute_offsets), 8, CUTS, 0},
    {AT(digests), 16, BY_ENTRY, 0},
};
#undef AT
enum { ENTRY_COLUMNS = sizeof kEntryColumns / sizeof kEntryColumns[0] };

static inline const void** entry_field(shw_entry_batch* batch, size_t offset) {
  return (const void**)(void*)((char*)batch + offset);
}

/* Values in box_offsets; the cuts were checked. */
static inline uint64_t entry_box_values(const shw_entry_batch* batch) {
  uint64_t values = 0;
  if (!batch->box_ranges || !batch->shape_offsets) return 0;
  for (uint64_t i = 0; i < batch->count; ++i) {
    values += (batch->box_ranges[i + 1] - batch->box_ranges[i]) *
              (batch->shape_offsets[i + 1] - batch->shape_offsets[i]);
  }
  return values;
}

/* Elements that the array must have. */
static inline uint64_t entry_column_length(const shw_entry_batch* batch, const entry_column* c) {
  switch (c->length) {
    case BY_ENTRY:
      return batch->count;
    case CUTS:
      return batch->count + 1;
    case CUT_BYTES: {
      const uint64_t* cuts = *(const uint64_t* const*)(const void*)((const char*)batch + c->cuts);
      return cuts ? cuts[batch->count] : 0;
    }
    case CUT_VALUES:
      return batch->shape_offsets ? batch->shape_offsets[batch->count] : 0;
    case BY_BOX:
      return batch->box_ranges ? batch->box_ranges[batch->count] : batch->count;
    default:
      return entry_box_values(batch);
  }
}

#endif /* SHW_ENTRY_COLUMNS_H */
