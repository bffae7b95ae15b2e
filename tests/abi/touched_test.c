/* SPDX-License-Identifier: Apache-2.0
 *
 * What one read looks at: pages of memory, counted. While a checkpoint is opened, this program's
 * malloc gives each large block pages of its own. They are taken away before a call; each page that
 * the call wants back is counted. So a read that looks at every tensor of the checkpoint is found
 * without a clock. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/scratch.h"
#include "support/states.h"

/* ---- large blocks have pages of their own ---- */

enum { LARGE = 1 << 16, MOST_BLOCKS = 1024 };
struct block {
  char* begin;
  size_t size; /* 0 = an entry that is free again */
};
static struct block blocks[MOST_BLOCKS];
static int block_count;
static int recording;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_llong touched;

static size_t page_size(void) {
  return (size_t)sysconf(_SC_PAGESIZE);
}

static struct block* block_of(const void* address) {
  for (int i = 0; i < block_count; ++i) {
    const char* begin = blocks[i].begin;
    if ((const char*)address >= begin && (const char*)address < begin + blocks[i].size)
      return &blocks[i];
  }
  return NULL;
}

static void* own_pages(size_t size) {
  const size_t rounded = (size + page_size() - 1) / page_size() * page_size();
  void* made = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return NULL;
  pthread_mutex_lock(&mutex);
  CHECK(block_count < MOST_BLOCKS);
  blocks[block_count++] = (struct block){made, rounded};
  pthread_mutex_unlock(&mutex);
  return made;
}

#define EXPORTED __attribute__((visibility("default")))

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* memory, size_t size);
extern void __libc_free(void* memory);

EXPORTED void* malloc(size_t size) {
  return recording && size >= LARGE ? own_pages(size) : __libc_malloc(size);
}
EXPORTED void* calloc(size_t count, size_t size) {
  const int large = recording && size != 0 && count >= LARGE / size && count < SIZE_MAX / size;
  return large ? own_pages(count * size) : __libc_calloc(count, size);
}
EXPORTED void free(void* memory) {
  pthread_mutex_lock(&mutex);
  struct block* block = memory == NULL ? NULL : block_of(memory);
  if (block != NULL) {
    munmap(block->begin, block->size);
    *block = (struct block){NULL, 0};
  }
  pthread_mutex_unlock(&mutex);
  if (block == NULL) __libc_free(memory);
}
EXPORTED void* realloc(void* memory, size_t size) {
  pthread_mutex_lock(&mutex);
  const struct block* block = memory == NULL ? NULL : block_of(memory);
  const size_t held = block == NULL ? 0 : block->size;
  pthread_mutex_unlock(&mutex);
  if (held == 0) return __libc_realloc(memory, size);
  void* moved = malloc(size);
  if (moved == NULL) return NULL;
  memcpy(moved, memory, held < size ? held : size);
  free(memory);
  return moved;
}

/* ---- pages that are wanted back ---- */

static void give_page_back(int signal_number, siginfo_t* info, void* context) {
  (void)context;
  if (block_of(info->si_addr) == NULL) { /* a fault of its own: again, and for good */
    signal(signal_number, SIG_DFL);
    return;
  }
  const uintptr_t page = (uintptr_t)info->si_addr / page_size() * page_size();
  mprotect((void*)page, page_size(), PROT_READ | PROT_WRITE);
  atomic_fetch_add(&touched, 1);
}

static int64_t watched_pages(void) {
  size_t bytes = 0;
  for (int i = 0; i < block_count; ++i) bytes += blocks[i].size;
  return (int64_t)(bytes / page_size());
}

static void protect_all(int protection) {
  for (int i = 0; i < block_count; ++i) {
    if (blocks[i].size > 0) CHECK(mprotect(blocks[i].begin, blocks[i].size, protection) == 0);
  }
}

typedef void (*call_function)(shw_checkpoint* checkpoint, uint64_t tensor);

static int64_t pages_touched(call_function call, shw_checkpoint* checkpoint, uint64_t tensor) {
  atomic_store(&touched, 0);
  protect_all(PROT_NONE);
  call(checkpoint, tensor);
  protect_all(PROT_READ | PROT_WRITE);
  return atomic_load(&touched);
}

/* ---- calls ---- */

enum { TENSORS = 60000, MOST_PAGES = 16 };
static float values[TENSORS];

static void name_of(uint64_t tensor, char name[32]) {
  snprintf(name, 32, "layers.%05d.weight", (int)tensor);
}

static void find(shw_checkpoint* checkpoint, uint64_t tensor) {
  shw_error* error = NULL;
  char name[32];
  uint64_t found = 0;
  name_of(tensor, name);
  CHECK_OK(shw_checkpoint_find_tensor(checkpoint, name, strlen(name), -1, &found, &error));
  CHECK_INT(found, tensor);
}

/* What a rank keeps for itself, asked for without a rank. */
static void find_own(shw_checkpoint* checkpoint, uint64_t tensor) {
  shw_error* error = NULL;
  uint64_t found = 0;
  (void)tensor;
  CHECK_OK(shw_checkpoint_find_tensor(checkpoint, "own", 3, -1, &found, &error));
  CHECK_INT(found, TENSORS);
}

static void describe(shw_checkpoint* checkpoint, uint64_t tensor) {
  shw_error* error = NULL;
  shw_tensor_info info = SHW_TENSOR_INFO_INIT;
  CHECK_OK(shw_checkpoint_tensor_infos(checkpoint, tensor, 1, &info, &error));
  CHECK_INT(info.chunk_count, 1);
}

static void read_new(shw_checkpoint* checkpoint, uint64_t tensor) {
  shw_error* error = NULL;
  shw_owned_tensor* read = NULL;
  CHECK_OK(shw_checkpoint_read_tensor(checkpoint, tensor, NULL, NULL, 1, &read, &error));
  shw_tensor described = SHW_TENSOR_INIT;
  CHECK_OK(shw_owned_tensor_describe(read, &described, &error));
  CHECK(*(const float*)described.data == values[tensor]);
  shw_owned_tensor_release(read);
}

static void read_box(shw_checkpoint* checkpoint, uint64_t tensor) {
  static const int64_t offsets[] = {0}, sizes[] = {1};
  shw_error* error = NULL;
  shw_report* report = NULL;
  float value = -1;
  const shw_tensor target = float_tensor(&value, SHAPE(1), 1);
  shw_box_batch batch = SHW_BOX_BATCH_INIT;
  batch.count = 1;
  batch.tensors = &tensor;
  batch.box_offsets = offsets;
  batch.box_sizes = sizes;
  batch.targets = &target;
  CHECK_OK(shw_checkpoint_read_boxes(checkpoint, &batch, &report, &error));
  CHECK(value == values[tensor]);
  shw_report_release(report);
}

static void list_all(shw_checkpoint* checkpoint, uint64_t tensor) {
  static shw_tensor_info infos[TENSORS];
  shw_error* error = NULL;
  (void)tensor;
  for (int i = 0; i < TENSORS; ++i) infos[i] = (shw_tensor_info)SHW_TENSOR_INFO_INIT;
  CHECK_OK(shw_checkpoint_tensor_infos(checkpoint, 0, TENSORS, infos, &error));
}

static void add_own(shw_state* state) {
  static const uint64_t offsets[] = {0, 3};
  static const int32_t kind = SHW_KIND_RANK_LOCAL;
  shw_error* error = NULL;
  shw_tensor tensor = float_tensor(values, SHAPE(1), 1);
  shw_tensor_batch batch = SHW_TENSOR_BATCH_INIT;
  batch.count = 1;
  batch.names = "own";
  batch.name_offsets = offsets;
  batch.tensors = &tensor;
  batch.kinds = &kind;
  CHECK_OK(shw_state_add_tensors(state, &batch, &error));
}

static shw_checkpoint* open_many(shw_context* context, shw_storage* storage) {
  shw_error* error = NULL;
  shw_report* report = NULL;
  shw_checkpoint* checkpoint = NULL;
  shw_state* state = make_state();
  char name[32];
  for (int i = 0; i < TENSORS; ++i) {
    values[i] = (float)i;
    name_of((uint64_t)i, name);
    add_floats(state, name, &values[i], SHAPE(1), 1);
  }
  add_own(state);
  CHECK_OK(shw_save(context, state, storage, "c", NULL, NULL, &report, &error));
  shw_report_release(report);
  shw_state_release(state);
  recording = 1;
  CHECK_OK(shw_checkpoint_open(context, storage, "c", NULL, &checkpoint, &error));
  recording = 0;
  return checkpoint;
}

static void one_read_looks_at_one_tensor(void) {
  static const struct {
    const char* name;
    call_function call;
  } calls[] = {{"name", find},
               {"name of one rank", find_own},
               {"description", describe},
               {"tensor", read_new},
               {"box", read_box}};
  shw_error* error = NULL;
  shw_storage* storage = NULL;
  struct sigaction action = {.sa_sigaction = give_page_back, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
  shw_context* context = make_context();
  CHECK_OK(shw_storage_create_memory(&storage, &error));
  shw_checkpoint* checkpoint = open_many(context, storage);
  read_new(checkpoint, 7); /* what is made once, at the first read, is made now */
  /* The counter sees a call that looks at everything. */
  const int64_t all = pages_touched(list_all, checkpoint, 0);
  printf("%lld pages of %lld for all tensors\n", (long long)all, (long long)watched_pages());
  CHECK(all > 3 * MOST_PAGES); /* on pages of 64 KiB, too */
  for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); ++i) {
    int64_t most = 0;
    for (uint64_t tensor = 0; tensor < TENSORS; tensor += TENSORS / 7) {
      const int64_t pages = pages_touched(calls[i].call, checkpoint, tensor);
      if (pages > most) most = pages;
    }
    printf("%lld pages for one %s\n", (long long)most, calls[i].name);
    CHECK(most <= MOST_PAGES);
  }
  shw_checkpoint_release(checkpoint);
  shw_storage_release(storage);
  shw_context_release(context);
}

TEST_MAIN(TEST_ENTRY(one_read_looks_at_one_tensor))
