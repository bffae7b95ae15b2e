/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor descriptors, dtype names, tensors of the library. */
#include "support/states.h"

static void knows_every_dtype_both_ways(void) {
  static const char* const names[] = {"bool",
                                      "int8",
                                      "int16",
                                      "int32",
                                      "int64",
                                      "uint8",
                                      "uint16",
                                      "uint32",
                                      "uint64",
                                      "float16",
                                      "bfloat16",
                                      "float32",
                                      "float64",
                                      "complex32",
                                      "complex64",
                                      "complex128",
                                      "float8_e3m4",
                                      "float8_e4m3",
                                      "float8_e4m3b11fnuz",
                                      "float8_e4m3fn",
                                      "float8_e4m3fnuz",
                                      "float8_e5m2",
                                      "float8_e5m2fnuz",
                                      "float8_e8m0fnu",
                                      "float6_e2m3fn",
                                      "float6_e3m2fn",
                                      "float4_e2m1fn",
                                      "int4",
                                      "uint4"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    shw_error* error = NULL;
    int32_t dtype = 0;
    CHECK_OK(shw_dtype_parse(names[i], &dtype, &error));
    CHECK_INT(dtype, 1 + i);
    CHECK_TEXT(shw_dtype_name(dtype), names[i]);
    CHECK_INT(shw_dtype_byte_size(dtype, 16), 2 * shw_dtype_bits(dtype));
    CHECK_INT(shw_dtype_from_dlpack(shw_dtype_to_dlpack(dtype)), dtype);
  }
  shw_error* error = NULL;
  int32_t dtype = 7;
  CHECK_FAILS(shw_dtype_parse("float33", &dtype, &error), SHW_INVALID_ARGUMENT, "float33");
  CHECK_INT(dtype, 7);
  const int32_t none[] = {INT32_MIN, -1, 0, SHW_UINT4 + 1, INT32_MAX};
  for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); ++i) {
    CHECK_TEXT(shw_dtype_name(none[i]), "");
    CHECK_INT(shw_dtype_bits(none[i]), 0);
    CHECK_INT(shw_dtype_byte_size(none[i], 1), 0);
    CHECK_INT(shw_dtype_to_dlpack(none[i]), 0);
  }
  CHECK_INT(shw_dtype_byte_size(SHW_FLOAT64, UINT64_MAX), 0);
  CHECK_INT(shw_dtype_byte_size(SHW_INT4, 3), 2);
}

/* DLDataType as it lies in memory: code, bits, lanes. */
static void knows_the_types_of_dlpack(void) {
  CHECK_INT(shw_dtype_to_dlpack(SHW_FLOAT32), 2 + 256 * 32 + 65536);
  CHECK_INT(shw_dtype_to_dlpack(SHW_BFLOAT16), 4 + 256 * 16 + 65536);
  CHECK_INT(shw_dtype_from_dlpack(6 + 256 * 8 + 65536), SHW_BOOL);
  const uint32_t none[] = {0,
                           2 + 256 * 32,
                           2 + 256 * 32 + 2 * 65536,
                           2 + 256 * 33 + 65536,
                           3 + 256 * 8 + 65536,
                           15 + 256 * 8 + 65536,
                           99 + 256 * 8 + 65536,
                           UINT32_MAX};
  for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); ++i)
    CHECK_INT(shw_dtype_from_dlpack(none[i]), 0);
}

static void accepts_good_descriptors(void) {
  shw_error* error = NULL;
  float data[24];
  shw_tensor tensor = float_tensor(data, SHAPE(4, 6), 2);
  CHECK_OK(shw_tensor_check(&tensor, &error));
  tensor.device_type = 0; /* read as CPU */
  CHECK_OK(shw_tensor_check(&tensor, &error));
  tensor.strides = SHAPE(1, 4);
  CHECK_OK(shw_tensor_check(&tensor, &error));
  tensor.byte_size = sizeof(data);
  CHECK_OK(shw_tensor_check(&tensor, &error));
  tensor.shape = SHAPE(0, 6);
  tensor.data = NULL;
  CHECK_OK(shw_tensor_check(&tensor, &error));
  tensor = float_tensor(data, NULL, 0); /* a scalar */
  CHECK_OK(shw_tensor_check(&tensor, &error));
}

struct bad_tensor {
  const char* text;
  shw_status status;
  shw_tensor tensor;
};

static void refuses_bad_descriptors(void) {
  static float data[24];
  static const int64_t shape[] = {4, 6}, negative[] = {4, -6}, huge[] = {INT64_MAX, 4, 0};
  static const int64_t wide[] = {100, 1};
  const shw_tensor good = float_tensor(data, shape, 2);
  struct bad_tensor cases[] = {{"ndim", SHW_INVALID_ARGUMENT, good},
                               {"ndim", SHW_INVALID_ARGUMENT, good},
                               {"shape", SHW_INVALID_ARGUMENT, good},
                               {"extent 1 of the shape is negative", SHW_INVALID_ARGUMENT, good},
                               {"does not fit 63 bits", SHW_INVALID_ARGUMENT, good},
                               {"data pointer", SHW_INVALID_ARGUMENT, good},
                               {"need 1224 bytes", SHW_INVALID_ARGUMENT, good},
                               {"device type 5", SHW_UNIMPLEMENTED, good},
                               {"there is no dtype 0", SHW_INVALID_ARGUMENT, good},
                               {"there is no dtype 30", SHW_INVALID_ARGUMENT, good},
                               {"there is no dtype -1", SHW_INVALID_ARGUMENT, good},
                               {"need 96 bytes, its buffer has 8", SHW_INVALID_ARGUMENT, good},
                               {"flags", SHW_UNIMPLEMENTED, good},
                               {"byte 80", SHW_UNIMPLEMENTED, good},
                               {"struct_size", SHW_INVALID_ARGUMENT, good}};
  cases[0].tensor.ndim = -1;
  cases[1].tensor.ndim = 65;
  cases[2].tensor.shape = NULL;
  cases[3].tensor.shape = negative;
  cases[4].tensor.shape = huge;
  cases[4].tensor.ndim = 3;
  cases[5].tensor.data = NULL;
  cases[6].tensor.strides = wide;
  cases[6].tensor.byte_size = sizeof(data);
  cases[7].tensor.device_type = 5;
  cases[8].tensor.dtype = 0;
  cases[9].tensor.dtype = SHW_UINT4 + 1;
  cases[10].tensor.dtype = -1;
  cases[11].tensor.byte_size = 8;
  cases[12].tensor.flags = 8;
  cases[13].tensor.reserved0 = 1;
  cases[14].tensor.struct_size = 88;
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    shw_error* error = NULL;
    CHECK_FAILS(shw_tensor_check(&cases[i].tensor, &error), cases[i].status, cases[i].text);
  }
}

static void owns_zeroed_aligned_tensors(void) {
  shw_error* error = NULL;
  shw_owned_tensor* owned = NULL;
  CHECK_OK(shw_owned_tensor_create(SHW_FLOAT32, SHAPE(3, 5), 2, &owned, &error));
  shw_tensor described = SHW_TENSOR_INIT;
  CHECK_OK(shw_owned_tensor_describe(owned, &described, &error));
  CHECK_INT(described.ndim, 2);
  CHECK_INT(described.shape[1], 5);
  CHECK_INT(described.strides[0], 5);
  CHECK_INT(described.byte_size, 60);
  CHECK(((uintptr_t)described.data & 4095) == 0);
  for (int i = 0; i < 60; ++i) CHECK(((const char*)described.data)[i] == 0);
  CHECK_OK(shw_tensor_check(&described, &error));
  shw_owned_tensor_release(owned);
  owned = NULL;
  CHECK_FAILS(shw_owned_tensor_create(SHW_FLOAT32, SHAPE(-1), 1, &owned, &error),
              SHW_INVALID_ARGUMENT, "extent 0 of the shape is negative");
  CHECK_FAILS(shw_owned_tensor_create(SHW_FLOAT32, SHAPE(INT64_MAX), 1, &owned, &error),
              SHW_INVALID_ARGUMENT, "do not fit 63 bits");
  CHECK_FAILS(shw_owned_tensor_create(2 + 256 * 32, SHAPE(1), 1, &owned, &error),
              SHW_INVALID_ARGUMENT, "there is no dtype 8194, only 1 to 29");
  CHECK(owned == NULL);
}

TEST_MAIN(TEST_ENTRY(knows_every_dtype_both_ways), TEST_ENTRY(knows_the_types_of_dlpack),
          TEST_ENTRY(accepts_good_descriptors), TEST_ENTRY(refuses_bad_descriptors),
          TEST_ENTRY(owns_zeroed_aligned_tensors))
