/* SPDX-License-Identifier: Apache-2.0
 *
 * The library as hosts load it: two copies side by side under RTLD_LOCAL, and many rounds of dlopen
 * and dlclose. Links nothing of the library; argument 1 is the library, argument 2 a scratch
 * folder. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shardwright/shardwright.h>

#define REQUIRE(condition)                                    \
  do {                                                        \
    if (!(condition)) {                                       \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
      const char* reason = dlerror();                         \
      if (reason != NULL) fprintf(stderr, "%s\n", reason);    \
      exit(1);                                                \
    }                                                         \
  } while (0)

typedef shw_status (*get_api_function)(uint32_t, uint32_t, const shw_api**, shw_error**);

static const shw_api* api_of(void* library) {
  const shw_api* api = NULL;
  get_api_function get_api;
  void* symbol = dlsym(library, "shw_get_api");
  REQUIRE(symbol != NULL);
  memcpy(&get_api, &symbol, sizeof(get_api));
  REQUIRE(get_api(SHW_ABI_MAJOR, SHW_ABI_MINOR, &api, NULL) == SHW_OK);
  REQUIRE(api->struct_size == sizeof(shw_api));
  return api;
}

static void use(const shw_api* api) {
  shw_context* context = NULL;
  shw_context_options options = SHW_CONTEXT_OPTIONS_INIT;
  options.threads = 1;
  REQUIRE(api->context_create(&options, &context, NULL) == SHW_OK);
  api->context_release(context);
}

static void copy_file(const char* from, const char* to) {
  static char block[1 << 16];
  FILE* in = fopen(from, "rb");
  FILE* out = fopen(to, "wb");
  REQUIRE(in != NULL && out != NULL);
  for (size_t size; (size = fread(block, 1, sizeof(block), in)) > 0;) {
    REQUIRE(fwrite(block, 1, size, out) == size);
  }
  fclose(in);
  REQUIRE(fclose(out) == 0);
}

int main(int argc, char** argv) {
  char copy[600];
  REQUIRE(argc == 3);
  snprintf(copy, sizeof(copy), "%s/libshardwright_copy.so", argv[2]);
  copy_file(argv[1], copy);
  void* first = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  void* second = dlopen(copy, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(first != NULL && second != NULL);
  REQUIRE(api_of(first) != api_of(second));
  use(api_of(first));
  use(api_of(second));
  /* An error of one copy is released by that copy; texts of both are equal. */
  REQUIRE(strcmp(api_of(first)->version_string(), api_of(second)->version_string()) == 0);
  for (int round = 0; round < 1000; ++round) {
    void* again = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    REQUIRE(again != NULL);
    if (round % 100 == 0) use(api_of(again));
    REQUIRE(dlclose(again) == 0);
  }
  REQUIRE(dlclose(first) == 0);
  void* back = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  REQUIRE(back != NULL);
  use(api_of(back));
  remove(copy);
  return 0;
}
