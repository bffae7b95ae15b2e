// SPDX-License-Identifier: Apache-2.0
//
// context.h: contexts and the plugins that are loaded through them.
#include "shardwright/context.h"

#include <string_view>
#include <utility>

#include "capi/boundary/arguments.h"
#include "capi/boundary/collective_argument.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/location.h"
#include "capi/boundary/struct_reader.h"

namespace capi = shardwright::capi;
using shardwright::Status;

extern "C" {

void shw_allocator_init(shw_allocator* allocator, uint32_t struct_size) noexcept {
  capi::init_struct(allocator, struct_size);
}

void shw_context_options_init(shw_context_options* options, uint32_t struct_size) noexcept {
  capi::init_struct(options, struct_size);
}

shw_status shw_context_create(const shw_context_options* options, shw_context** out,
                              shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    shw_context_options copy;
    SHW_RETURN_IF_ERROR(capi::read_options(options, "options", &copy));
    SHW_ASSIGN_OR_RETURN(auto context, capi::Context::create(copy));
    *out = capi::make_handle<shw_context>(std::move(context));
    return {};
  });
}

shw_status shw_context_shutdown(shw_context* context, int64_t timeout_ns,
                                shw_error** err) noexcept {
  return capi::guarded_answer(err, [&](shw_status* answer) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(context, "context"));
    if (!impl->jobs().shutdown(timeout_ns)) *answer = SHW_PENDING;
    return {};
  });
}

shw_status shw_context_load_plugin(shw_context* context, const char* path,
                                   shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(context, "context"));
    SHW_ASSIGN_OR_RETURN(const auto text, capi::path_argument(path, "path"));
    return impl->plugins().load(text);
  });
}

shw_status shw_context_plugins(shw_context* context, shw_buffer** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(context, "context"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto text, impl->plugins().list_json());
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(std::string_view(text)));
    return {};
  });
}

shw_status shw_context_ask_plugin(shw_context* context, const char* plugin, const char* question,
                                  uint64_t question_size, shw_buffer** out,
                                  shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(context, "context"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(plugin, "plugin"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto text, capi::text_argument(question, question_size, "question"));
    SHW_ASSIGN_OR_RETURN(const auto answer, impl->plugins().ask(plugin, text));
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(std::string_view(answer)));
    return {};
  });
}

shw_status shw_context_open_storage(shw_context* context, const char* plugin, const char* config,
                                    uint64_t config_size, shw_storage** out,
                                    shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(context, "context"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(plugin, "plugin"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto text, capi::text_argument(config, config_size, "config"));
    SHW_ASSIGN_OR_RETURN(auto storage, impl->plugins().open_storage(plugin, text));
    SHW_ASSIGN_OR_RETURN(*out, capi::storage_of(std::move(storage)));
    return {};
  });
}

shw_status shw_context_open_collective(shw_context* context, const char* plugin, const char* config,
                                       uint64_t config_size, shw_collective** out,
                                       shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(context, "context"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(plugin, "plugin"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto text, capi::text_argument(config, config_size, "config"));
    SHW_ASSIGN_OR_RETURN(auto collective, impl->plugins().open_collective(plugin, text));
    SHW_ASSIGN_OR_RETURN(*out, capi::collective_of(std::move(collective)));
    return {};
  });
}

void shw_context_release(shw_context* context) noexcept {
  capi::release_handle(context);
  if (!capi::in_forked_child()) capi::sweep_contexts();
}

}  // extern "C"
