/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of an allocation is a file without a name that is mapped twice: without any rights, which
 * is what the device gives, and to be read and written. What a lane does with it is a task. */
#include "apart_table.h"

#include <math.h>
#include <pthread.h>
#include <shardwright/tensor.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "thread_device.h"

struct mapping {
  struct mapping* next;
  char* given;
  char* kept;
  uint64_t bytes;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct mapping* mappings;
static shw_device_vtable threads;

static void fill_threads(void) {
  fill_thread_device(&threads, 1, NULL);
}

static shw_status refuse(shw_status status, const char* text, shw_error** err) {
  return shw_error_create(status, text, strlen(text), NULL, 0, NULL, err);
}

/* The place in the list of what lies at the address, the mutex held; NULL = nobody's. */
static struct mapping** find(const void* address) {
  const char* wanted = address;
  struct mapping** at = &mappings;
  while (*at != NULL && (wanted < (*at)->given || wanted >= (*at)->given + (*at)->bytes))
    at = &(*at)->next;
  return *at == NULL ? NULL : at;
}

void* behind_apart_table(const void* address) {
  pthread_mutex_lock(&mutex);
  struct mapping** at = find(address);
  if (at == NULL) abort();
  char* kept = (*at)->kept + ((const char*)address - (*at)->given);
  pthread_mutex_unlock(&mutex);
  return kept;
}

int apart_table_allocations(void) {
  int count = 0;
  pthread_mutex_lock(&mutex);
  for (const struct mapping* each = mappings; each != NULL; each = each->next) ++count;
  pthread_mutex_unlock(&mutex);
  return count;
}

/* Two views of the same new memory, which is not zero. */
static int map_twice(struct mapping* made) {
  const int file = memfd_create("apart", MFD_CLOEXEC);
  if (file < 0) return 0;
  if (ftruncate(file, (off_t)made->bytes) == 0) {
    made->given = mmap(NULL, made->bytes, PROT_NONE, MAP_SHARED, file, 0);
    made->kept = mmap(NULL, made->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  if (made->given == MAP_FAILED || made->kept == MAP_FAILED) return 0;
  memset(made->kept, 0xA5, made->bytes);
  return 1;
}

static shw_status memory_allocate(void* user, uint64_t bytes, void** out, shw_error** err) {
  static const char text[] = "the device apart has no memory for that";
  struct mapping* made = calloc(1, sizeof(*made));
  (void)user;
  if (made == NULL) return refuse(SHW_RESOURCE_EXHAUSTED, text, err);
  made->given = MAP_FAILED;
  made->kept = MAP_FAILED;
  made->bytes = bytes + 1; /* an address behind the last byte is of this memory, too */
  if (bytes > INT64_MAX / 2 || !map_twice(made)) {
    free(made);
    return refuse(SHW_RESOURCE_EXHAUSTED, text, err);
  }
  pthread_mutex_lock(&mutex);
  made->next = mappings;
  mappings = made;
  pthread_mutex_unlock(&mutex);
  *out = made->given;
  return SHW_OK;
}

static void memory_release(void* user, void* memory, uint64_t bytes) {
  (void)user;
  pthread_mutex_lock(&mutex);
  struct mapping** at = find(memory);
  if (at == NULL || (*at)->given != memory || (*at)->bytes != bytes + 1) abort();
  struct mapping* gone = *at;
  *at = gone->next;
  pthread_mutex_unlock(&mutex);
  munmap(gone->given, gone->bytes);
  munmap(gone->kept, gone->bytes);
  free(gone);
}

/* What a lane does; ends with its run. */
struct task {
  shw_element_copy copy;
  uint64_t bytes;
};

static shw_status put(void* lane, shw_device_task_fn run, const struct task* task,
                      shw_error** err) {
  struct task* made = malloc(sizeof(*made));
  if (made == NULL) return refuse(SHW_RESOURCE_EXHAUSTED, "no memory for a task", err);
  *made = *task;
  const shw_status status = threads.lane_submit(threads.user, lane, run, made, err);
  if (status != SHW_OK) free(made);
  return status;
}

static shw_status run_copy(void* data, shw_error** err) {
  struct task* task = data;
  (void)err;
  memmove(task->copy.target, task->copy.source, task->bytes);
  free(task);
  return SHW_OK;
}

static shw_status copy(void* user, void* lane, int32_t kind, const void* source, void* target,
                       uint64_t bytes, shw_error** err) {
  struct task task = {.bytes = bytes};
  (void)user;
  if (bytes == 0) return SHW_OK;
  task.copy.source = kind == SHW_COPY_HOST_TO_DEVICE ? source : behind_apart_table(source);
  task.copy.target = kind == SHW_COPY_DEVICE_TO_HOST ? target : behind_apart_table(target);
  return put(lane, run_copy, &task, err);
}

static shw_status run_zeros(void* data, shw_error** err) {
  struct task* task = data;
  (void)err;
  memset(task->copy.target, 0, task->bytes);
  free(task);
  return SHW_OK;
}

static shw_status fill_zero(void* user, void* lane, void* target, uint64_t bytes, shw_error** err) {
  struct task task = {.bytes = bytes};
  (void)user;
  task.copy.target = behind_apart_table(target);
  return put(lane, run_zeros, &task, err);
}

static double value_of_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023;
  const double size = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                      : exponent == 0 ? ldexp(fraction, -24)
                                      : ldexp(fraction + 1024, exponent - 25);
  return bits >> 15 ? -size : size;
}

/* To the nearest, ties to even, as rint does. */
static uint16_t half_of(double value) {
  const uint16_t sign = signbit(value) ? 0x8000 : 0;
  const double size = fabs(value);
  int exponent = 0;
  if (isnan(value)) return sign | 0x7e00;
  if (size >= 65520) return sign | 0x7c00;
  if (size < 0x1p-14) return (uint16_t)(sign | (uint16_t)rint(ldexp(size, 24)));
  const double fraction = rint(ldexp(frexp(size, &exponent), 11));
  return (uint16_t)(sign + ((exponent + 14) << 10) + (int)fraction - 1024);
}

static double value_of_bfloat(uint16_t high) {
  const uint32_t bits = (uint32_t)high << 16;
  float value = 0;
  memcpy(&value, &bits, sizeof(value));
  return (double)value;
}

/* As half_of, with as many exponents as a float has. */
static uint16_t bfloat_of(double value) {
  const uint16_t sign = signbit(value) ? 0x8000 : 0;
  const double size = fabs(value);
  int exponent = 0;
  if (isnan(value)) return sign | 0x7fc0;
  if (size >= 0x1.ffp127) return sign | 0x7f80;
  if (size < 0x1p-126) return (uint16_t)(sign | (uint16_t)rint(ldexp(size, 133)));
  const double fraction = rint(ldexp(frexp(size, &exponent), 8));
  return (uint16_t)(sign + ((exponent + 126) << 7) + (int)fraction - 128);
}

static double load(int32_t dtype, const void* from, uint64_t index) {
  if (dtype == SHW_FLOAT16) return value_of_half(((const uint16_t*)from)[index]);
  if (dtype == SHW_BFLOAT16) return value_of_bfloat(((const uint16_t*)from)[index]);
  if (dtype == SHW_FLOAT32) return (double)((const float*)from)[index];
  return ((const double*)from)[index];
}

static void store(int32_t dtype, void* to, uint64_t index, double value) {
  if (dtype == SHW_FLOAT16) {
    ((uint16_t*)to)[index] = half_of(value);
  } else if (dtype == SHW_BFLOAT16) {
    ((uint16_t*)to)[index] = bfloat_of(value);
  } else if (dtype == SHW_FLOAT32) {
    ((float*)to)[index] = (float)value;
  } else {
    ((double*)to)[index] = value;
  }
}

static void convert(const shw_element_copy* copy, uint64_t source, uint64_t target) {
  const int is_wide = copy->source_dtype == SHW_FLOAT64 || copy->target_dtype == SHW_FLOAT64;
  double value = load(copy->source_dtype, copy->source, source);
  if (copy->scale != 0 && copy->scale != 1)
    value = is_wide ? value * copy->scale : (double)((float)value * (float)copy->scale);
  if ((copy->flags & SHW_ELEMENT_COPY_ADD) != 0) {
    const double there = load(copy->target_dtype, copy->target, target);
    value = is_wide ? there + value : (double)((float)there + (float)value);
  }
  store(copy->target_dtype, copy->target, target, value);
}

static int copies_bytes(const shw_element_copy* copy) {
  return copy->source_dtype == copy->target_dtype && (copy->scale == 0 || copy->scale == 1) &&
         (copy->flags & SHW_ELEMENT_COPY_ADD) == 0;
}

static shw_status run_elements(void* data, shw_error** err) {
  struct task* task = data;
  const shw_element_copy* copy = &task->copy;
  const uint64_t width = task->bytes;
  (void)err;
  for (uint64_t row = 0; row < copy->rows; ++row) {
    const uint64_t source = row * copy->source_pitch;
    const uint64_t target = row * copy->target_pitch;
    if (copies_bytes(copy)) {
      memmove((char*)copy->target + target * width, (const char*)copy->source + source * width,
              copy->columns * width);
      continue;
    }
    for (uint64_t each = 0; each < copy->columns; ++each)
      convert(copy, source + each, target + each);
  }
  free(task);
  return SHW_OK;
}

static shw_status copy_elements(void* user, void* lane, const shw_element_copy* given,
                                shw_error** err) {
  struct task task = {.copy = *given, .bytes = shw_dtype_byte_size(given->source_dtype, 1)};
  (void)user;
  task.copy.source = behind_apart_table(given->source);
  task.copy.target = behind_apart_table(given->target);
  return put(lane, run_elements, &task, err);
}

void fill_apart_table(shw_device_vtable* vtable, int* released) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, fill_threads);
  fill_thread_device(vtable, 1, released);
  vtable->flags = 0;
  vtable->name = "apart in C";
  vtable->memory_allocate = memory_allocate;
  vtable->memory_release = memory_release;
  vtable->copy = copy;
  vtable->copy_elements = copy_elements;
  vtable->fill_zero = fill_zero;
  vtable->device_type = SHW_DEVICE_EXTENSION;
  vtable->device_id = APART_TABLE_ID;
}
