/* SPDX-License-Identifier: Apache-2.0
 *
 * What SWIG wraps of bindings/java/native: functions with flat arrays. `%native` functions take Java objects and are
 * written as JNI functions in memory.c. */
shw_status shw_java_context_create(uint32_t threads, uint64_t memory_budget, int32_t log_level, void* log_bridge,
                                   const char* machine, shw_context** out, shw_error** err);
shw_status shw_java_state_add_tensors(shw_state* state, uint64_t count, const char* names, const uint64_t* name_offsets,
                                      const int64_t* facts, const int64_t* shapes, const int64_t* strides,
                                      const int64_t* global_shapes, const uint64_t* global_shape_offsets,
                                      const uint64_t* box_ranges, const int64_t* box_offsets, const int64_t* box_sizes,
                                      const int64_t* local_offsets, const int64_t* layouts, uint64_t layout_count,
                                      int32_t rank, const char* paths, const uint64_t* path_offsets,
                                      const int64_t* grid_fragments, const int64_t* grid_indices,
                                      const uint64_t* grid_offsets, shw_error** err);
shw_status shw_java_object_key_parse(const char* name, uint64_t name_size, shw_buffer** out, shw_error** err);
shw_status shw_java_plan_owners(uint64_t count, const uint64_t* weights, const int32_t* sets,
                                const char* secondary, uint64_t set_count,
                                const uint64_t* set_offsets, const int32_t* holders,
                                int32_t rank_count, shw_buffer** out, shw_error** err);
shw_status shw_java_read_whole(const shw_checkpoint* checkpoint, uint64_t index, shw_owned_tensor** out,
                               shw_error** err);
shw_status shw_java_read_box(const shw_checkpoint* checkpoint, uint64_t index, const int64_t* box_offsets,
                             const int64_t* box_sizes, int32_t ndim, void* target, uint64_t target_bytes,
                             shw_error** err);
shw_status shw_java_storage_create(void* bridge, shw_storage** out, shw_error** err);
shw_status shw_java_collective_create_node(shw_collective* inner, shw_collective** out, shw_error** err);
shw_status shw_java_collective_create(void* bridge, int32_t rank, int32_t size, int32_t rooted, int32_t between_all, shw_collective** out, shw_error** err);
void shw_java_job_wait(shw_job* job, int64_t timeout_ns);
void shw_java_job_wait_staged(shw_job* job, int64_t timeout_ns);
void shw_java_job_watch(shw_job* job);
void shw_java_job_ends_wait(void);
shw_status shw_java_communicator_create(void* bridge, int32_t rank, int32_t size, uint64_t capabilities, int32_t reduces,
                                        int32_t broadcasts, shw_communicator** out, shw_error** err);
shw_status shw_java_communicator_issue(shw_communicator* communicator, int32_t operation, const int64_t* call, double scale,
                                       const void* in, uint64_t in_bytes, void* out_data, uint64_t out_bytes, int32_t root,
                                       shw_work** out, shw_error** err);
shw_status shw_java_hsdp_add_params(shw_hsdp_unit* unit, uint64_t count, const char* names, const uint64_t* name_offsets,
                                    const int64_t* facts, const int64_t* shapes, const char* aliases,
                                    const uint64_t* alias_offsets, const uint64_t* alias_ranges, shw_error** err);
shw_status shw_java_hsdp_add_grads(shw_hsdp_unit* unit, const uint64_t* params, const int64_t* facts, const int64_t* shapes,
                                   uint64_t count, int32_t mode, shw_error** err);
shw_status shw_java_hsdp_set_memory(shw_hsdp_unit* unit, uint64_t first, uint64_t count, const int64_t* memory,
                                    const uint64_t* sizes, shw_error** err);
shw_status shw_java_hsdp_set_allocator(shw_hsdp_unit* unit, void* bridge, shw_error** err);
shw_status shw_java_hsdp_set_units(shw_hsdp_unit* unit, int32_t key, const int64_t* units, uint64_t count, shw_error** err);
shw_status shw_java_hsdp_estimate(uint64_t unit_count, const int64_t* units, const char* names,
                                  const uint64_t* name_offsets, const int64_t* facts, const int64_t* shapes,
                                  const char* aliases, const uint64_t* alias_offsets, const uint64_t* alias_ranges,
                                  const shw_hsdp_estimate_world* world, const shw_hsdp_options* options, int32_t kind,
                                  shw_hsdp_memory* out, shw_error** err);

%native(addressOf) jlong addressOf(jobject buffer);
%native(view) jobject view(jlong address, jlong size);
%native(copy) jbyteArray copy(jlong address, jlong size);
%native(reference) jlong reference(jobject object);
%native(releaseReference) void releaseReference(jlong reference);
%native(tensorShapes) jlongArray tensorShapes(jlong checkpoint);
%native(layoutPieces) jlongArray layoutPieces(jlong layout, jlongArray shape, jint rank);
%native(layoutLocalShape) jlongArray layoutLocalShape(jlong layout, jlongArray shape, jint rank);
%native(layoutContains) jboolean layoutContains(jlong layout, jint rank);
%native(gridPlace) jlongArray gridPlace(jobject shard, jlongArray places);
%native(gridPieces) jlongArray gridPieces(jobject shard);
%native(gridFlatEntry) jlongArray gridFlatEntry(jobject shard);
%native(gridFlatPieces) jlongArray gridFlatPieces(jlongArray shape, jlongArray entry, jlongArray chunk);
%native(gridOverlap) jlongArray gridOverlap(jlong stored, jlong wanted, jlong index);
%native(ownedTensor) jlongArray ownedTensor(jlong tensor);
%native(exchangePlans) jlongArray exchangePlans(jlongArray wants);
%native(exchangeRound) jlongArray exchangeRound(jlong exchange);
%native(stateObject) jbyteArray stateObject(jlong state, jlong index);
%native(hsdpGlobalNorm) jdouble hsdpGlobalNorm(jlong hsdp, jdouble p);
%native(hsdpDivideFactor) jdouble hsdpDivideFactor(jlong unit);
%native(hsdpView) jlongArray hsdpView(jlong unit, jint view, jlong index);
%native(hsdpBox) jlongArray hsdpBox(jlong unit, jlong index);
%native(abiVersion) jlong abiVersion();
