/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads any checkpoint from plain C: prints the SHA-256 digest of every tensor and a slice of one.
 *   c_reader CHECKPOINT NAME
 * Tab-separated lines: "tensor", name, dtype, shape, digest; then "slice", name, bytes of NAME[2:4,
 * 0:4] in hex.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "shardwright/shardwright.h"

/* Prints the error of a failed call and ends the program; a success passes through. */
static void check(shw_status status, shw_error** err) {
  if (status == SHW_OK) return;
  fprintf(stderr, "%s: %s\n", shw_status_name(status),
          *err != NULL ? shw_error_message(*err, NULL) : "");
  shw_error_release(*err);
  exit(1);
}

static void print_hex(const void* data, uint64_t size) {
  const unsigned char* bytes = data;
  for (uint64_t i = 0; i < size; ++i) printf("%02x", bytes[i]);
  printf("\n");
}

static void print_tensors(const shw_checkpoint* checkpoint) {
  shw_error* err = NULL;
  shw_buffer* digests = NULL; /* one part per tensor */
  check(shw_checkpoint_digests(checkpoint, NULL, shw_checkpoint_tensor_count(checkpoint),
                               SHW_DIGEST_SHA256, &digests, &err),
        &err);
  for (uint64_t i = 0; i < shw_checkpoint_tensor_count(checkpoint); ++i) {
    shw_tensor_info info = SHW_TENSOR_INFO_INIT;
    check(shw_checkpoint_tensor_infos(checkpoint, i, 1, &info, &err), &err);
    printf("tensor\t%s\t%s\t", shw_checkpoint_tensor_name(checkpoint, i, NULL),
           shw_dtype_name(info.dtype));
    const int64_t* shape = shw_checkpoint_tensor_shape(checkpoint, i);
    for (int32_t d = 0; d < info.ndim; ++d) printf("%s%" PRId64, d > 0 ? "," : "", shape[d]);
    printf("\t");
    printf("%.*s\n", (int)shw_buffer_part_size(digests, i),
           (const char*)shw_buffer_part_data(digests, i));
  }
  shw_buffer_release(digests);
}

static void print_slice(const shw_checkpoint* checkpoint, const char* name) {
  const int64_t offsets[] = {2, 0}, sizes[] = {2, 4};
  shw_error* err = NULL;
  uint64_t index = 0, name_size = 0;
  while (name[name_size] != '\0') ++name_size;
  check(shw_checkpoint_find_tensor(checkpoint, name, name_size, -1, &index, &err), &err);
  shw_owned_tensor* slice = NULL;
  check(shw_checkpoint_read_tensor(checkpoint, index, offsets, sizes, 2, &slice, &err), &err);
  shw_tensor view = SHW_TENSOR_INIT;
  check(shw_owned_tensor_describe(slice, &view, &err), &err);
  printf("slice\t%s\t", name);
  print_hex(view.data, view.byte_size);
  shw_owned_tensor_release(slice);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: c_reader CHECKPOINT NAME\n");
    return 2;
  }
  shw_error* err = NULL;
  shw_context* context = NULL;
  check(shw_context_create(NULL, &context, &err), &err);
  shw_checkpoint* checkpoint = NULL;
  check(shw_checkpoint_open(context, NULL, argv[1], NULL, &checkpoint, &err), &err);
  print_tensors(checkpoint);
  print_slice(checkpoint, argv[2]);
  shw_checkpoint_release(checkpoint);
  shw_context_release(context);
  return 0;
}
