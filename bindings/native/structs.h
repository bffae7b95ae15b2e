/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs of the headers as tables, for bindings that fill and read them field by field: what each
 * field is, where it lies, and what the length of an array follows from. The tables are generated
 * by bindings/swig/structs.py; lengths that need more than an expression are told here. Immutable.
 */
#ifndef SHW_BINDING_STRUCTS_H
#define SHW_BINDING_STRUCTS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shardwright/planning.h"

enum {
  SHW_FIELD_INT,      /* signed number of `width` bytes */
  SHW_FIELD_UINT,     /* unsigned number of `width` bytes */
  SHW_FIELD_TEXT,     /* characters up to a NUL */
  SHW_FIELD_BYTES,    /* bytes, as many as the field `other` receives */
  SHW_FIELD_ARRAY,    /* `length` numbers or characters of `width` bytes */
  SHW_FIELD_HANDLE,   /* handle of the kind `handle` */
  SHW_FIELD_CALLBACK, /* user of a callback of the type `handle`, which is the field `other` */
};

/* One field that a host sees; others (sizes, reserved ones) are in no table. */
typedef struct {
  const char* name;
  const char* camel; /* as Java names it */
  uint16_t offset;
  uint8_t kind;   /* SHW_FIELD_ */
  uint8_t width;  /* bytes of a number or an element */
  uint8_t sign;   /* 1 = elements are signed */
  uint8_t cuts;   /* 1 = cuts of other arrays: ascending from 0 */
  uint16_t other; /* offset of the size or callback; ARRAY: of the cuts that cut it, 0 = none */
  const char* handle;
  uint64_t (*length)(const void* from); /* ARRAY: elements; the cuts of `from` were checked */
} shw_field;

typedef struct {
  const char* name;
  const char* camel;
  uint16_t size;
  uint16_t number; /* below SHW_STRUCT_COUNT */
  uint16_t field_count;
  uint16_t pointer_count;
  const shw_field* fields;
} shw_struct;

/* Most fields of a table, and most that are pointers; the generator holds both. */
enum { SHW_FIELDS_MAX = 32, SHW_POINTERS_MAX = 20 };

static inline void* shw_field_at(void* from, const shw_field* field) {
  return (char*)from + field->offset;
}

/* What a pointer field holds. */
static inline const void* shw_field_pointer(const void* from, const shw_field* field) {
  const void* pointer;
  memcpy(&pointer, (const char*)from + field->offset, sizeof pointer);
  return pointer;
}

/* A number of one to eight bytes, with its sign where it has one. */
static inline uint64_t shw_field_number(const void* from, const shw_field* field) {
  const char* at = (const char*)from + field->offset;
  const int sign = field->kind == SHW_FIELD_INT;
  uint8_t byte;
  uint16_t two;
  uint32_t four;
  uint64_t eight;
  switch (field->width) {
    case 1:
      memcpy(&byte, at, 1);
      return sign ? (uint64_t)(int8_t)byte : byte;
    case 2:
      memcpy(&two, at, 2);
      return sign ? (uint64_t)(int16_t)two : two;
    case 4:
      memcpy(&four, at, 4);
      return sign ? (uint64_t)(int32_t)four : four;
    default:
      memcpy(&eight, at, 8);
      return eight;
  }
}

/* Last of `count` + 1 cuts; 0 without cuts. */
static inline uint64_t shw_last_cut(const uint64_t* cuts, uint64_t count) {
  return cuts ? cuts[count] : 0;
}

/* Boxes of all entries: without ranges each entry has one. */
static inline uint64_t shw_entry_boxes(const shw_entry_batch* s) {
  return s->box_ranges ? s->box_ranges[s->count] : s->count;
}

/* Values of all boxes; the largest number where it does not fit. */
static inline uint64_t shw_entry_box_values(const shw_entry_batch* s) {
  uint64_t values = 0;
  if (!s->box_ranges || !s->shape_offsets) return 0;
  for (uint64_t i = 0; i < s->count; ++i) {
    uint64_t more = 0;
    if (__builtin_mul_overflow(s->box_ranges[i + 1] - s->box_ranges[i],
                               s->shape_offsets[i + 1] - s->shape_offsets[i], &more) ||
        __builtin_add_overflow(values, more, &values))
      return UINT64_MAX;
  }
  return values;
}

#endif
