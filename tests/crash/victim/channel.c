/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole messages, or none. */
#include "channel.h"

#include <errno.h>
#include <sys/socket.h>

static int send_all(int socket, const char* bytes, uint64_t size) {
  while (size > 0) {
    const ssize_t done = send(socket, bytes, size, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return 0;
    bytes += done;
    size -= (uint64_t)done;
  }
  return 1;
}

int channel_send(int socket, struct message message, const void* bytes) {
  return send_all(socket, (const char*)&message, sizeof(message)) &&
         send_all(socket, bytes, message.size);
}

int channel_receive(int socket, void* bytes, uint64_t size) {
  char* at = bytes;
  while (size > 0) {
    const ssize_t done = recv(socket, at, size, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return 0;
    at += done;
    size -= (uint64_t)done;
  }
  return 1;
}
