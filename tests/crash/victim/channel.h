/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages between a victim and the test that started it, over one stream socket. A message is this
 * struct and then `size` bytes. */
#ifndef SHARDWRIGHT_TESTS_CRASH_CHANNEL_H
#define SHARDWRIGHT_TESTS_CRASH_CHANNEL_H

#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

enum {
  /* From a victim. */
  MESSAGE_MEET = 1, /* takes part in a collective operation with these bytes */
  MESSAGE_ABORT,    /* wakes all ranks: status `value`, with the text */
  MESSAGE_REPORT, /* operation `tag` of the script has ended: status `value`, save `number`, text */
  MESSAGE_STEPS,  /* the script is done after `number` steps */
  MESSAGE_STOPPED, /* waits before a step for MESSAGE_GO */
  MESSAGE_REFUSED, /* met a lock that another process holds */
  /* To a victim. */
  MESSAGE_GATHERED, /* the bytes of all ranks, back to back */
  MESSAGE_GONE,     /* rank `number` is gone, or a rank has aborted with status `value` and text */
  MESSAGE_GO
};

struct message {
  uint32_t kind;
  int32_t value;
  uint64_t tag;
  uint64_t number;
  uint64_t size;
};

/* 1, or 0 when the other side is gone. */
int channel_send(int socket, struct message message, const void* bytes);
int channel_receive(int socket, void* bytes, uint64_t size);

#if defined(__cplusplus)
}
#endif

#endif
