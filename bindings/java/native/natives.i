/* SPDX-License-Identifier: Apache-2.0
 *
 * What SWIG wraps of bindings/java/native: functions with flat arrays. `%native` functions take Java objects and are
 * written as JNI functions in memory.c. */
shw_status shw_java_save_options_create(const int32_t* ints, const int64_t* longs, const char* trace_path,
                                        const char* kind_globs, const uint64_t* kind_offsets, const int32_t* kind_values,
                                        uint64_t kind_count, const char* metadata, const uint64_t* metadata_offsets,
                                        uint64_t metadata_count, shw_cancellation* cancellation, shw_save_options** out,
                                        shw_error** err);
void shw_java_save_options_release(shw_save_options* options);
shw_status shw_java_load_options_create(const int32_t* ints, const int64_t* longs, const char* trace_path,
                                        const char* strict_globs, const uint64_t* strict_offsets,
                                        const int32_t* strict_rules, const int32_t* strict_shapes,
                                        uint64_t strict_count, shw_cancellation* cancellation, shw_load_options** out, shw_error** err);
void shw_java_load_options_release(shw_load_options* options);
shw_status shw_java_checkpoint_options_create(const int32_t* ints, const int64_t* longs, shw_cancellation* cancellation,
                                              shw_checkpoint_options** out, shw_error** err);
void shw_java_checkpoint_options_release(shw_checkpoint_options* options);
shw_status shw_java_estimate_options_create(const int64_t* longs, shw_estimate_options** out, shw_error** err);
void shw_java_estimate_options_release(shw_estimate_options* options);
shw_status shw_java_context_create(uint32_t threads, uint64_t memory_budget, int32_t log_level, void* log_bridge,
                                   shw_context** out, shw_error** err);
shw_status shw_java_state_add_tensors(shw_state* state, uint64_t count, const char* names, const uint64_t* name_offsets,
                                      const int64_t* facts, const int64_t* shapes, const int64_t* strides,
                                      const int64_t* global_shapes, const uint64_t* global_shape_offsets,
                                      const uint64_t* box_ranges, const int64_t* box_offsets, const int64_t* box_sizes,
                                      const int64_t* local_offsets, const int64_t* layouts, uint64_t layout_count,
                                      int32_t rank, const char* paths, const uint64_t* path_offsets, shw_error** err);
shw_status shw_java_state_add_objects(shw_state* state, uint64_t count, const char* names, const uint64_t* name_offsets,
                                      const char* contents, const uint64_t* content_offsets, const char* content_types,
                                      const uint64_t* content_type_offsets, const char* paths,
                                      const uint64_t* path_offsets, const int32_t* kinds, shw_error** err);
shw_status shw_java_layout_create(const int64_t* mesh, int32_t mesh_ndim, const char* axis_names,
                                  const uint64_t* axis_name_offsets, const int32_t* ranks, uint64_t rank_count,
                                  const int32_t* placements, const int32_t* map, const uint64_t* map_offsets,
                                  int32_t tensor_ndim, shw_layout** out, shw_error** err);
shw_status shw_java_describe_options_create(const int32_t* ints, const char* kind_globs,
                                            const uint64_t* kind_offsets,
                                            const int32_t* kind_values, uint64_t kind_count,
                                            const char* agreement, uint64_t agreement_size,
                                            shw_describe_options** out, shw_error** err);
void shw_java_describe_options_release(shw_describe_options* options);
shw_status shw_java_merge_options_create(const int32_t* ints, shw_merge_options** out,
                                         shw_error** err);
void shw_java_merge_options_release(shw_merge_options* options);
shw_status shw_java_match_options_create(const int32_t* ints, shw_match_options** out,
                                         shw_error** err);
void shw_java_match_options_release(shw_match_options* options);
shw_status shw_java_entry_batch_create(
    uint64_t count, const char* names, const uint64_t* name_offsets, const int32_t* codes,
    const int64_t* shapes, const uint64_t* shape_offsets, const uint64_t* box_ranges,
    const int64_t* box_offsets, const int64_t* box_sizes, const uint64_t* numbers,
    const uint64_t* order, const char* secondary, const uint64_t* object_sizes, const char* paths,
    const uint64_t* path_offsets, const char* attributes, const uint64_t* attribute_offsets,
    const char* digests, shw_entry_batch** out, shw_error** err);
void shw_java_entry_batch_release(shw_entry_batch* batch);
shw_status shw_java_global_plan_describe(const shw_describe_options* options,
                                      const shw_entry_batch* entries, const int64_t* layouts,
                                      shw_buffer** out, shw_error** err);
shw_status shw_java_plan_owners(uint64_t count, const uint64_t* weights, const int32_t* sets,
                                const char* secondary, uint64_t set_count,
                                const uint64_t* set_offsets, const int32_t* holders,
                                int32_t rank_count, shw_buffer** out, shw_error** err);
shw_status shw_java_read_whole(const shw_checkpoint* checkpoint, uint64_t index, shw_owned_tensor** out,
                               shw_error** err);
shw_status shw_java_read_box(const shw_checkpoint* checkpoint, uint64_t index, const int64_t* box_offsets,
                             const int64_t* box_sizes, int32_t ndim, void* target, uint64_t target_bytes,
                             shw_error** err);
shw_status shw_java_storage_size(shw_storage* storage, const char* key, uint64_t key_size, uint64_t* out,
                                 shw_error** err);
shw_status shw_java_storage_create(void* bridge, shw_storage** out, shw_error** err);
shw_status shw_java_collective_create(void* bridge, int32_t rank, int32_t size, int32_t rooted, shw_collective** out, shw_error** err);
void shw_java_job_wait(shw_job* job, int64_t timeout_ns);
void shw_java_job_watch(shw_job* job);
void shw_java_job_ends_wait(void);

%native(addressOf) jlong addressOf(jobject buffer);
%native(view) jobject view(jlong address, jlong size);
%native(copy) jbyteArray copy(jlong address, jlong size);
%native(reference) jlong reference(jobject object);
%native(releaseReference) void releaseReference(jlong reference);
%native(jobProgress) jlongArray jobProgress(jlong job);
%native(jobStage) jbyteArray jobStage(jlong job);
%native(summary) jlongArray summary(jlong report);
%native(tensorFacts) jlongArray tensorFacts(jlong checkpoint);
%native(tensorShapes) jlongArray tensorShapes(jlong checkpoint);
%native(chunkFacts) jlongArray chunkFacts(jlong checkpoint);
%native(layoutPieces) jlongArray layoutPieces(jlong layout, jlongArray shape, jint rank);
%native(layoutLocalShape) jlongArray layoutLocalShape(jlong layout, jlongArray shape, jint rank);
%native(layoutContains) jboolean layoutContains(jlong layout, jint rank);
%native(gridPlace) jlongArray gridPlace(jlongArray local, jint prepended, jlongArray places);
%native(gridPieces) jlongArray gridPieces(jlongArray shard, jint localNdim, jint prepended, jint flags);
%native(gridFlatEntry) jlongArray gridFlatEntry(jlongArray shard, jint localNdim, jint prepended, jint flags);
%native(gridFlatPieces) jlongArray gridFlatPieces(jlongArray shape, jlongArray entry, jlongArray chunk);
%native(gridOverlap) jlongArray gridOverlap(jlong stored, jlong wanted, jlong index);
%native(ownedTensor) jlongArray ownedTensor(jlong tensor);
%native(stateObject) jbyteArray stateObject(jlong state, jlong index);
%native(planEntries) jobject planEntries(jlong plan);
%native(abiVersion) jlong abiVersion();
