/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens a context with the installed library and prints the version that the library names.
 */
#include <shardwright/shardwright.h>
#include <stdio.h>

int main(void) {
  shw_error* error = NULL;
  shw_context* context = NULL;
  if (shw_context_create(NULL, &context, &error) != SHW_OK) {
    fprintf(stderr, "%s\n", shw_error_message(error, NULL));
    shw_error_release(error);
    return 1;
  }
  printf("%s\n", shw_version_string());
  shw_context_release(context);
  return 0;
}
