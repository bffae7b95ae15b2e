/* SPDX-License-Identifier: Apache-2.0
 *
 * Communicators, works and devices through the C interface: every operation, what is refused before
 * anything is issued, tables of a host, what lives how long. What transports promise of each other
 * is tested in tests/conformance. */
#include <math.h>

#include "support/ranks.h"
#include "support/states.h"

static shw_communicator_call call_of(uint64_t sequence, uint64_t count) {
  shw_communicator_call call = SHW_COMMUNICATOR_CALL_INIT;
  call.sequence = sequence;
  call.count = count;
  call.dtype = SHW_FLOAT32;
  return call;
}

/* Waits for the work and releases it. */
static void end(shw_work* work) {
  shw_error* error = NULL;
  CHECK_OK(shw_work_wait(work, -1, &error));
  CHECK_OK(shw_work_poll(work, &error));
  CHECK_OK(shw_work_order(work, 0, &error));
  shw_work_release(work);
}

static void use_every_operation(shw_communicator* communicator, int32_t rank) {
  shw_error* error = NULL;
  shw_work* work = NULL;
  const float mine[] = {(float)rank + 1, 10.0F * (float)rank};
  float all[4] = {0}, one = 0;
  shw_communicator_call call = call_of(1, 2);
  CHECK_OK(shw_communicator_all_gather(communicator, &call, mine, sizeof(mine), all, sizeof(all),
                                       &work, &error));
  end(work);
  CHECK(all[0] == 1 && all[1] == 0 && all[2] == 2 && all[3] == 10);
  call = call_of(2, 1);
  CHECK_OK(shw_communicator_all_to_all(communicator, &call, mine, sizeof(mine), all,
                                       2 * sizeof(float), &work, &error));
  end(work);
  CHECK(all[0] == (rank == 0 ? 1 : 0) && all[1] == (rank == 0 ? 2 : 10));
  call = call_of(3, 1);
  CHECK_OK(shw_communicator_reduce_scatter(communicator, &call, mine, sizeof(mine), &one,
                                           sizeof(one), &work, &error));
  end(work);
  CHECK(one == (rank == 0 ? 3 : 10));
  call = call_of(4, 2);
  call.op = SHW_REDUCTION_MAX;
  float both[] = {mine[0], mine[1]};
  CHECK_OK(shw_communicator_all_reduce(communicator, &call, both, sizeof(both), &work, &error));
  end(work);
  CHECK(both[0] == 2 && both[1] == 10);
  call = call_of(5, 1);
  one = mine[0];
  CHECK_OK(shw_communicator_broadcast(communicator, &call, &one, sizeof(one), 1, &work, &error));
  end(work);
  CHECK(one == 2);
  call = call_of(6, 0);
  call.dtype = 0;
  CHECK_OK(shw_communicator_barrier(communicator, &call, &work, &error));
  end(work);
}

static void over_a_collective(struct rank* rank) {
  shw_communicator* communicator = NULL;
  shw_error* error = NULL;
  CHECK_OK(shw_communicator_create_over(rank->collective, &communicator, &error));
  shw_collective_release(rank->collective); /* the communicator keeps it */
  rank->collective = NULL;
  CHECK_INT(shw_communicator_rank(communicator), rank->rank);
  CHECK_INT(shw_communicator_size(communicator), 2);
  CHECK_TEXT(shw_communicator_name(communicator, NULL), "threads");
  CHECK((shw_communicator_capabilities(communicator) & SHW_COMMUNICATOR_HOST_MEMORY) != 0);
  use_every_operation(communicator, rank->rank);
  shw_communicator_release(communicator);
}

static void each_operation_moves_what_it_says(void) {
  run_ranks(2, over_a_collective, NULL);
}

static void among_threads(struct rank* rank) {
  shw_communicator** members = rank->user;
  shw_communicator* delayed = NULL;
  shw_error* error = NULL;
  use_every_operation(members[rank->rank], rank->rank);
  CHECK_OK(shw_communicator_create_delay(members[rank->rank], 1000, 1e9, &delayed, &error));
  shw_communicator_release(members[rank->rank]); /* the link keeps it */
  use_every_operation(delayed, rank->rank);
  shw_communicator_release(delayed);
}

static void members_of_a_group_are_taken_once(void) {
  shw_communicator_group* group = NULL;
  shw_communicator* members[2] = {NULL, NULL};
  shw_communicator* again = NULL;
  shw_error* error = NULL;
  CHECK_FAILS(shw_communicator_group_create(0, &group, &error), SHW_INVALID_ARGUMENT, "size");
  CHECK_OK(shw_communicator_group_create(2, &group, &error));
  for (int32_t i = 0; i < 2; ++i)
    CHECK_OK(shw_communicator_group_member(group, i, &members[i], &error));
  CHECK_FAILS(shw_communicator_group_member(group, 1, &again, &error), SHW_FAILED_PRECONDITION,
              "rank 1 was taken");
  CHECK_FAILS(shw_communicator_group_member(group, 2, &again, &error), SHW_INVALID_ARGUMENT,
              "2 is not a rank of 2");
  shw_communicator_group_release(group);
  run_ranks(2, among_threads, members);
}

static void what_does_not_fit_is_refused_before_it_is_issued(void) {
  shw_communicator* fake = NULL;
  shw_communicator* delayed = NULL;
  shw_work* work = NULL;
  shw_error* error = NULL;
  float values[8] = {0};
  CHECK_FAILS(shw_communicator_create_fake(3, 3, &fake, &error), SHW_INVALID_ARGUMENT, "rank");
  CHECK_OK(shw_communicator_create_fake(0, 2, &fake, &error));
  shw_communicator_call call = call_of(1, 2);
  CHECK_FAILS(shw_communicator_all_gather(fake, &call, values, 8, values, 12, &work, &error),
              SHW_INVALID_ARGUMENT, "12 bytes, the call needs 16");
  CHECK_FAILS(shw_communicator_reduce_scatter(fake, &call, values, 8, values, 8, &work, &error),
              SHW_INVALID_ARGUMENT, "'in'");
  CHECK_FAILS(shw_communicator_all_reduce(fake, &call, NULL, 8, &work, &error),
              SHW_INVALID_ARGUMENT, "'data'");
  CHECK_FAILS(shw_communicator_broadcast(fake, &call, values, 8, 2, &work, &error),
              SHW_INVALID_ARGUMENT, "2 is not a rank of 2");
  call.dtype = 99;
  CHECK_FAILS(shw_communicator_barrier(fake, &call, &work, &error), SHW_INVALID_ARGUMENT, "dtype");
  call.dtype = SHW_FLOAT32;
  call.op = 5;
  CHECK_FAILS(shw_communicator_barrier(fake, &call, &work, &error), SHW_INVALID_ARGUMENT, "'op'");
  call.op = 0;
  call.count = UINT64_MAX;
  CHECK_FAILS(shw_communicator_all_reduce(fake, &call, values, 8, &work, &error),
              SHW_INVALID_ARGUMENT, "count is");
  call.count = UINT64_C(1) << 61;
  CHECK_FAILS(shw_communicator_all_to_all(fake, &call, values, 8, values, 8, &work, &error),
              SHW_INVALID_ARGUMENT, "do not fit");
  CHECK_FAILS(shw_communicator_create_delay(fake, -1, 0, &delayed, &error), SHW_INVALID_ARGUMENT,
              "latency_ns");
  CHECK_FAILS(shw_communicator_create_delay(fake, 0, NAN, &delayed, &error), SHW_INVALID_ARGUMENT,
              "bytes_per_second");
  CHECK_FAILS(shw_communicator_abort(fake, SHW_OK, "x", 1, &error), SHW_INVALID_ARGUMENT,
              "is no failure");
  call = call_of(9, 2);
  CHECK_OK(shw_communicator_all_reduce(fake, &call, values, 8, &work, &error));
  CHECK_FAILS(shw_work_wait(work, -2, &error), SHW_INVALID_ARGUMENT, "timeout_ns");
  shw_work_release(work);
  shw_communicator_release(fake);
}

static void a_rank_that_does_not_come_is_named(void) {
  shw_communicator_group* group = NULL;
  shw_communicator* member = NULL;
  shw_communicator* other = NULL;
  shw_work* work = NULL;
  shw_error* error = NULL;
  float values[2] = {0};
  CHECK_OK(shw_communicator_group_create(2, &group, &error));
  CHECK_OK(shw_communicator_group_member(group, 0, &member, &error));
  CHECK_OK(shw_communicator_group_member(group, 1, &other, &error));
  shw_communicator_group_release(group);
  shw_communicator_call call = call_of(7, 1);
  call.timeout_ns = 20000000;
  CHECK_OK(shw_communicator_all_gather(member, &call, &values[0], 4, values, 8, &work, &error));
  CHECK_INT(shw_work_poll(work, &error), SHW_PENDING);
  CHECK_INT(shw_work_wait(work, 1, &error), SHW_PENDING);
  CHECK(error == NULL);
  CHECK_FAILS(shw_work_wait(work, -1, &error), SHW_DEADLINE_EXCEEDED, "number 7 of unit 0");
  CHECK_FAILS(shw_work_poll(work, &error), SHW_DEADLINE_EXCEEDED, "number 7 of unit 0");
  shw_communicator_release(member); /* its work keeps it */
  shw_work_release(work);
  shw_communicator_release(other);
}

/* A table of one rank whose operations copy; it counts what was released. */
struct host {
  int works;
  int released;
  int aborted;
  shw_status fails;
  char told[256]; /* to the other ranks */
};

static shw_status host_move(void* user, const shw_communicator_call* call, const void* in,
                            void* out, void** work, shw_error** err) {
  struct host* host = user;
  if (host->fails != SHW_OK)
    return shw_error_create(host->fails, "the wire is cut", 15, NULL, 0, NULL, err);
  memcpy(out, in, shw_dtype_byte_size(call->dtype, call->count));
  ++host->works;
  *work = host;
  return SHW_OK;
}

static shw_status host_wait(void* user, void* work, int64_t timeout_ns, shw_error** err) {
  (void)user, (void)work, (void)err;
  return timeout_ns == 1 ? SHW_PENDING : SHW_OK; /* the least that a caller can wait */
}

static shw_status host_test(void* user, void* work, shw_error** err) {
  (void)user, (void)work, (void)err;
  return SHW_PENDING;
}

static void host_work_release(void* user, void* work) {
  CHECK(user == work);
  --((struct host*)user)->works;
}

static void host_abort(void* user, shw_status code, const char* message, uint64_t size) {
  struct host* host = user;
  CHECK(code != SHW_OK && message != NULL && strlen(message) >= size);
  snprintf(host->told, sizeof host->told, "%.*s", (int)size, message);
  ++host->aborted;
}

static void host_release(void* user) {
  struct host* host = user;
  CHECK_INT(host->works, 0); /* works go first, in whatever order handles were released */
  ++host->released;
}

static shw_communicator_vtable table_of(struct host* host) {
  shw_communicator_vtable table = SHW_COMMUNICATOR_VTABLE_INIT;
  table.capabilities = SHW_COMMUNICATOR_HOST_MEMORY;
  table.size = 1;
  table.name = "copying";
  table.user = host;
  table.all_gather = host_move;
  table.all_to_all = host_move;
  table.work_wait = host_wait;
  table.work_test = host_test;
  table.work_release = host_work_release;
  table.abort = host_abort;
  table.release = host_release;
  return table;
}

static void a_table_is_used_and_released_once(void) {
  struct host host = {0, 0, 0, SHW_OK, ""};
  const shw_communicator_vtable table = table_of(&host);
  shw_communicator* communicator = NULL;
  shw_work* work = NULL;
  shw_error* error = NULL;
  float values[] = {1, 2}, out[2] = {0};
  CHECK_OK(shw_communicator_create(&table, &communicator, &error));
  CHECK_TEXT(shw_communicator_name(communicator, NULL), "copying");
  const shw_communicator_call call = call_of(1, 2);
  CHECK_OK(shw_communicator_reduce_scatter(communicator, &call, values, 8, out, 8, &work, &error));
  CHECK_INT(shw_work_poll(work, &error), SHW_PENDING);
  CHECK_INT(shw_work_wait(work, 0, &error), SHW_PENDING);
  CHECK_OK(shw_work_wait(work, -1, &error));
  CHECK(out[0] == 1 && out[1] == 2);
  shw_work_release(work);
  CHECK_INT(host.works, 0);
  CHECK_OK(shw_communicator_all_gather(communicator, &call, values, 8, out, 8, &work, &error));
  shw_communicator_release(communicator);
  CHECK_INT(host.released, 0);
  shw_work_release(work);
  CHECK_INT(host.released, 1);
  CHECK_INT(host.aborted, 0);
}

static void what_a_table_fails_with_comes_out_and_ends_it(void) {
  struct host host = {0, 0, 0, SHW_UNAVAILABLE, ""};
  const shw_communicator_vtable table = table_of(&host);
  shw_communicator* communicator = NULL;
  shw_work* work = NULL;
  shw_error* error = NULL;
  float values[] = {1, 2};
  CHECK_OK(shw_communicator_create(&table, &communicator, &error));
  const shw_communicator_call call = call_of(4, 2);
  CHECK_FAILS_WITH(shw_communicator_broadcast(communicator, &call, values, 8, 0, &work, &error),
                   SHW_UNAVAILABLE, "communicator 'copying' on rank 0 of 1", "unit", "0");
  CHECK(host.aborted >= 1);
  CHECK(strstr(host.told, "on rank 0 of 1") != NULL &&
        strstr(host.told, "the wire is cut") != NULL);
  shw_communicator_release(communicator);
  CHECK_INT(host.released, 1);
}

static void tables_without_a_slot_are_refused(void) {
  struct host host = {0, 0, 0, SHW_OK, ""};
  shw_communicator* communicator = NULL;
  shw_error* error = NULL;
  shw_communicator_vtable table = table_of(&host);
  table.all_to_all = NULL;
  CHECK_FAILS_WITH(shw_communicator_create(&table, &communicator, &error), SHW_INVALID_ARGUMENT,
                   "required slot", "field", "all_to_all");
  table = table_of(&host);
  table.work_release = NULL;
  CHECK_FAILS_WITH(shw_communicator_create(&table, &communicator, &error), SHW_INVALID_ARGUMENT,
                   "required slot", "field", "work_release");
  table = table_of(&host);
  table.rank = 1;
  CHECK_FAILS(shw_communicator_create(&table, &communicator, &error), SHW_INVALID_ARGUMENT,
              "rank 1 of 1 ranks");
  table = table_of(&host);
  table.abi_major = SHW_ABI_MAJOR + 1;
  CHECK_FAILS(shw_communicator_create(&table, &communicator, &error), SHW_UNIMPLEMENTED, "copying");
  CHECK_INT(host.released, 0);
  shw_device_vtable device_table = SHW_DEVICE_VTABLE_INIT;
  shw_device* device = NULL;
  CHECK_FAILS_WITH(shw_device_create(&device_table, &device, &error), SHW_INVALID_ARGUMENT,
                   "required slot", "field", "name");
  device_table.name = "none";
  CHECK_FAILS_WITH(shw_device_create(&device_table, &device, &error), SHW_INVALID_ARGUMENT,
                   "required slot", "field", "lane_create");
  CHECK_OK(shw_device_create_host(0, &device, &error));
  CHECK_TEXT(shw_device_name(device, NULL), "host");
  shw_device_release(device);
}

TEST_MAIN(TEST_ENTRY(each_operation_moves_what_it_says),
          TEST_ENTRY(members_of_a_group_are_taken_once),
          TEST_ENTRY(what_does_not_fit_is_refused_before_it_is_issued),
          TEST_ENTRY(a_rank_that_does_not_come_is_named),
          TEST_ENTRY(a_table_is_used_and_released_once),
          TEST_ENTRY(what_a_table_fails_with_comes_out_and_ends_it),
          TEST_ENTRY(tables_without_a_slot_are_refused))
