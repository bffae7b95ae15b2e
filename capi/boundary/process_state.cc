// SPDX-License-Identifier: Apache-2.0
//
// The fork word is made at the first call, never by a static constructor. Losing the race to make
// it costs one page that is given back.
#include "capi/boundary/process_state.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

namespace shardwright::capi {
namespace {

using ForkWord = std::atomic<unsigned>;

constinit std::atomic<ForkWord*> fork_word{nullptr};
constinit ForkWord fallback_word{1};
__attribute__((tls_model("initial-exec"))) thread_local int callback_depth = 0;

void clear_in_child() {
  fallback_word.store(0, std::memory_order_relaxed);
}

ForkWord* make_fork_word() noexcept {
  const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* page = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ForkWord* word = &fallback_word;
  if (page != MAP_FAILED && madvise(page, size, MADV_WIPEONFORK) == 0) {
    word = static_cast<ForkWord*>(page);
    word->store(1, std::memory_order_relaxed);
  } else {
    if (page != MAP_FAILED) munmap(page, size);
    page = MAP_FAILED;
    pthread_atfork(nullptr, nullptr, &clear_in_child);
  }
  ForkWord* expected = nullptr;
  if (fork_word.compare_exchange_strong(expected, word, std::memory_order_acq_rel)) return word;
  if (page != MAP_FAILED) munmap(page, size);
  return expected;
}

}  // namespace

bool in_forked_child() noexcept {
  ForkWord* word = fork_word.load(std::memory_order_acquire);
  if (word == nullptr) word = make_fork_word();
  return word->load(std::memory_order_relaxed) == 0;
}

CallbackScope::CallbackScope() noexcept {
  ++callback_depth;
}
CallbackScope::~CallbackScope() {
  --callback_depth;
}
bool in_callback() noexcept {
  return callback_depth != 0;
}

}  // namespace shardwright::capi
