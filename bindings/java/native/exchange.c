/* SPDX-License-Identifier: Apache-2.0
 *
 * Exchanges of a load: plans of all ranks at once, and where the memory of a round lies. */
#include <stdlib.h>

#include "bindings/java/native/native.h"

static jlongArray failed(JNIEnv* env, shw_status status, shw_error* err) {
  shw_java_throw(env, status, err);
  return NULL;
}

/* Handles of the exchange plans of want lists, by rank. */
NATIVE(jlongArray, exchangePlans)(JNIEnv* env, jclass type, jlongArray wants) {
  (void)type;
  const jsize count = (*env)->GetArrayLength(env, wants);
  jlong* handles = calloc(2 * (size_t)count + 1, sizeof *handles);
  if (handles == NULL) return failed(env, SHW_RESOURCE_EXHAUSTED, NULL);
  (*env)->GetLongArrayRegion(env, wants, 0, count, handles);
  shw_plan** plans = (shw_plan**)(void*)(handles + count);
  shw_error* err = NULL;
  const shw_status status =
      shw_exchange_plans((const shw_plan* const*)(void*)handles, (uint64_t)count, plans, &err);
  jlongArray array = status == SHW_OK ? shw_java_longs(env, handles + count, (uint64_t)count)
                                      : failed(env, status, err);
  for (jsize i = 0; status == SHW_OK && array == NULL && i < count; ++i) shw_plan_release(plans[i]);
  free(handles);
  return array;
}

/* Begins a round: number of ranks, address and size of outgoing and of incoming, then for each rank
 * the size of its part of outgoing, then of incoming. */
NATIVE(jlongArray, exchangeRound)(JNIEnv* env, jclass type, jlong exchange) {
  (void)type;
  shw_exchange_round round = SHW_EXCHANGE_ROUND_INIT;
  shw_error* err = NULL;
  const shw_status status =
      shw_load_exchange_begin_round((shw_load_exchange*)(intptr_t)exchange, &round, &err);
  if (status != SHW_OK) return failed(env, status, err);
  const jlong facts[] = {(jlong)round.rank_count, (jlong)(intptr_t)round.outgoing,
                         (jlong)round.outgoing_size, (jlong)(intptr_t)round.incoming,
                         (jlong)round.incoming_size};
  const jsize count = (jsize)round.rank_count;
  jlongArray array = (*env)->NewLongArray(env, 5 + 2 * count);
  if (array == NULL) return NULL;
  (*env)->SetLongArrayRegion(env, array, 0, 5, facts);
  (*env)->SetLongArrayRegion(env, array, 5, count, (const jlong*)round.outgoing_sizes);
  (*env)->SetLongArrayRegion(env, array, 5 + count, count, (const jlong*)round.incoming_sizes);
  return array;
}
