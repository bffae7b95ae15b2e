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
    uint32_t packed = 0;
    CHECK_OK(shw_dtype_parse(names[i], &packed, &error));
    const uint8_t code = (uint8_t)(packed & 255), bits = (uint8_t)(packed >> 8);
    CHECK_TEXT(shw_dtype_name(code, bits), names[i]);
    CHECK_INT(shw_dtype_byte_size(code, bits, 16), 2 * bits);
  }
  shw_error* error = NULL;
  uint32_t packed = 7;
  CHECK_FAILS(shw_dtype_parse("float33", &packed, &error), SHW_INVALID_ARGUMENT, "float33");
  CHECK_INT(packed, 7);
  CHECK_TEXT(shw_dtype_name(2, 33), "");
  CHECK_INT(shw_dtype_byte_size(2, 33, 1), 0);
  CHECK_INT(shw_dtype_byte_size(2, 64, UINT64_MAX), 0);
  CHECK_INT(shw_dtype_byte_size(0, 4, 3), 2);
}

static void accepts_good_descriptors(void) {
  shw_error* error = NULL;
  float data[24];
  shw_tensor tensor = float_tensor(data, SHAPE(4, 6), 2);
  CHECK_OK(shw_tensor_check(&tensor, &error));
  tensor.device_type = 0; /* read as CPU */
  tensor.dtype_lanes = 0; /* read as 1 */
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
                               {"opaque", SHW_UNIMPLEMENTED, good},
                               {"4 lanes", SHW_UNIMPLEMENTED, good},
                               {"float4 element has 4 bits", SHW_INVALID_ARGUMENT, good},
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
  cases[8].tensor.dtype_code = SHW_DTYPE_OPAQUE;
  cases[9].tensor.dtype_lanes = 4;
  cases[10].tensor.dtype_code = SHW_DTYPE_FLOAT4_E2M1FN;
  cases[10].tensor.dtype_bits = 8;
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
  CHECK_OK(shw_owned_tensor_create(SHW_DTYPE_FLOAT, 32, SHAPE(3, 5), 2, &owned, &error));
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
  CHECK_FAILS(shw_owned_tensor_create(SHW_DTYPE_FLOAT, 32, SHAPE(-1), 1, &owned, &error),
              SHW_INVALID_ARGUMENT, "extent 0 of the shape is negative");
  CHECK_FAILS(shw_owned_tensor_create(SHW_DTYPE_FLOAT, 32, SHAPE(INT64_MAX), 1, &owned, &error),
              SHW_INVALID_ARGUMENT, "do not fit 63 bits");
  CHECK_FAILS(shw_owned_tensor_create(SHW_DTYPE_FLOAT, 33, SHAPE(1), 1, &owned, &error),
              SHW_UNIMPLEMENTED, "33 bits is not supported");
  CHECK(owned == NULL);
}

TEST_MAIN(TEST_ENTRY(knows_every_dtype_both_ways), TEST_ENTRY(accepts_good_descriptors),
          TEST_ENTRY(refuses_bad_descriptors), TEST_ENTRY(owns_zeroed_aligned_tensors))
