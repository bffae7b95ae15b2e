# SPDX-License-Identifier: Apache-2.0
#
# Functions by which the folders declare what they hold.
#   shw_add_folder(path...)                         add_subdirectory for each
#   shw_core_library(plan SOURCES.. DEPENDS..)      static, hidden, position independent target shw_plan
#   shw_flatbuffers(target SCHEMAS a.fbs)           generated header a_generated.h, private to the target
#   shw_shared_library(SOURCES.. DEPENDS.. VERSION_SCRIPT f)  the library itself: target shardwright
#   shw_plugin(name SOURCES.. LINK..)               module lib/lib<name>.so that links nothing of ours
#   shw_test(name SOURCES.. DEPENDS.. LINK..)       GoogleTest program registered with CTest
#   shw_core_test(plan SOURCES.. DEPENDS..)         the same for one folder of core/: program test_core_plan
#   shw_c_test(name SOURCES..)                      C11 program over the public headers, registered with CTest
#   shw_fuzz_target(name SOURCES.. DEPENDS.. CORPUS dir)
#   shw_pytest(name PATHS.. LABELS..)               pytest files registered with CTest
#   shw_command_test(name COMMAND.. LABELS..)       any other command (cargo test, mvn test, a script)
# A label chooses the stage of tools/run_tests.py: core, capi, abi, cli, fuzz, crash, bindings, install, docs, torch, cuda, mindspore.
# `tsan` adds a test to the ThreadSanitizer build, `soak` keeps it out of the short run, `no_asan` out of the sanitizer
# builds; `counted`: the program writes how many tests it ran, and none is a failure.
include_guard(GLOBAL)
set(SHW_STAGE_PATTERN "(^|;)(core|capi|abi|cli|fuzz|crash|bindings|install|docs|torch|cuda|mindspore)(;|$)")

# What a stage builds: all programs whose tests carry its label.
foreach(stage IN ITEMS core capi fuzz crash tsan)
  add_custom_target(shw_${stage}_programs)
endforeach()

function(shw_add_folder)
  foreach(folder IN LISTS ARGN)
    add_subdirectory("${folder}")
  endforeach()
endfunction()

# Sources of a target are compiled together when SHW_UNITY says so. Those that a test compiles once more with other
# definitions must stay objects of their own (SKIP_UNITY_BUILD_INCLUSION).
function(shw_compile_together)
  set_target_properties(${ARGN} PROPERTIES UNITY_BUILD "${SHW_UNITY}" UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# All generated headers: enough for clang-tidy to read any source.
add_custom_target(shw_generated)

# Folder core/<name> as target shw_<name>. DEPENDS: names of folders to its left. LINK: third-party targets, private.
function(shw_core_library name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;DEPENDS;LINK")
  set(target "shw_${name}")
  add_library(${target} STATIC ${ARG_SOURCES})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  shw_compile_together(${target})
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:shw_core_flags> ${ARG_LINK})
  # fmt appears in headers of base, so it travels with every folder; so do threads.
  target_link_libraries(${target} PUBLIC shw::fmt Threads::Threads)
  target_include_directories(${target} PUBLIC "${CMAKE_SOURCE_DIR}")
  foreach(folder IN LISTS ARG_DEPENDS)
    target_link_libraries(${target} PUBLIC "shw_${folder}")
  endforeach()
endfunction()

# Generates C++ for schemas and lets `target` include it as "<schema>_generated.h" below its own folder path:
# core/plan/wire/plan.fbs -> #include "core/plan/wire/plan_generated.h".
function(shw_flatbuffers target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SCHEMAS")
  set(root "${CMAKE_BINARY_DIR}/generated")
  set(headers "")
  foreach(schema IN LISTS ARG_SCHEMAS)
    get_filename_component(source "${schema}" ABSOLUTE)
    file(RELATIVE_PATH relative "${CMAKE_SOURCE_DIR}" "${source}")
    get_filename_component(folder "${relative}" DIRECTORY)
    get_filename_component(stem "${relative}" NAME_WE)
    set(header "${root}/${folder}/${stem}_generated.h")
    file(GLOB included CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.fbs")
    add_custom_command(OUTPUT "${header}"
      COMMAND "${SHW_FLATC}" --cpp --scoped-enums --reflect-names --cpp-std c++17 --no-warnings
              --keep-prefix -I "${CMAKE_SOURCE_DIR}" -o "${root}/${folder}" "${source}"
      DEPENDS "${source}" ${included} "${SHW_FLATC}"
      COMMENT "flatc ${relative}" VERBATIM)
    list(APPEND headers "${header}")
  endforeach()
  target_sources(${target} PRIVATE ${headers})
  add_custom_target(${target}_generated DEPENDS ${headers})
  add_dependencies(${target} ${target}_generated)
  add_dependencies(shw_generated ${target}_generated)
  target_include_directories(${target} SYSTEM BEFORE PRIVATE "${root}")
  target_link_libraries(${target} PRIVATE shw::flatbuffers)
endfunction()

# lib/libshardwright.so.0. DEPENDS: folders of core/. VERSION_SCRIPT: exported names (may be generated).
function(shw_shared_library)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "VERSION_SCRIPT" "SOURCES;DEPENDS;LINK")
  add_library(shardwright SHARED ${ARG_SOURCES})
  set_target_properties(shardwright PROPERTIES VERSION 0 SOVERSION 0 LINKER_LANGUAGE CXX
    LINK_DEPENDS "${ARG_VERSION_SCRIPT}")
  target_include_directories(shardwright PUBLIC
    $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
  target_link_libraries(shardwright PRIVATE $<BUILD_INTERFACE:shw_core_flags> ${ARG_LINK})
  foreach(folder IN LISTS ARG_DEPENDS)
    target_link_libraries(shardwright PRIVATE "$<BUILD_INTERFACE:shw_${folder}>")
  endforeach()
  target_link_options(shardwright PRIVATE
    -Wl,-z,nodelete -Wl,-z,now -Wl,-z,relro -Wl,--exclude-libs,ALL -Wl,--gc-sections
    "-Wl,--version-script=${ARG_VERSION_SCRIPT}")
  if(NOT SHW_SANITIZE)
    # The run time of a sanitizer lives in the program, so only a plain build can forbid open symbols.
    target_link_options(shardwright PRIVATE -Wl,-z,defs)
  endif()
  if(SHW_STATIC_RUNTIME)
    target_link_options(shardwright PRIVATE -static-libstdc++ -static-libgcc)
  endif()
  add_library(shardwright::shardwright ALIAS shardwright)
endfunction()

# lib/lib<name>.so, loaded with dlopen. C or C++; sees the public headers only.
function(shw_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;LINK")
  add_library(${name} MODULE ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}/include")
  target_link_libraries(${name} PRIVATE shw_flags ${ARG_LINK})
  target_link_options(${name} PRIVATE -Wl,-z,now -Wl,-z,relro)
  if(NOT SHW_SANITIZE)
    target_link_options(${name} PRIVATE -Wl,-z,defs)
  endif()
endfunction()

# Registers `target` with CTest under `name`: labels, time limit, and where GoogleTest writes what it counted.
function(shw_register_test name target)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "" "TIMEOUT" "LABELS;ARGUMENTS;ENVIRONMENT")
  # A compiled test that names no stage belongs to the first one.
  if(NOT ARG_LABELS MATCHES "${SHW_STAGE_PATTERN}")
    list(APPEND ARG_LABELS core)
  endif()
  add_test(NAME ${name} COMMAND ${target} ${ARG_ARGUMENTS} WORKING_DIRECTORY "${CMAKE_BINARY_DIR}")
  shw_test_properties(${name} "${ARG_TIMEOUT}" "${ARG_LABELS}" "${ARG_ENVIRONMENT}")
  foreach(label IN LISTS ARG_LABELS)
    if(TARGET shw_${label}_programs)
      add_dependencies(shw_${label}_programs ${target})
    endif()
  endforeach()
endfunction()

# What every test gets: labels, a time limit in seconds (300, there to end what hangs; four times that under a sanitizer) and its environment.
function(shw_test_properties name timeout labels environment)
  if(NOT labels MATCHES "${SHW_STAGE_PATTERN}")
    message(FATAL_ERROR "Test ${name} has no label of a stage, so nothing would run it.")
  endif()
  if(NOT timeout)
    set(timeout 300)
  endif()
  if(SHW_SANITIZE)
    math(EXPR timeout "${timeout} * 4")
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout} SKIP_RETURN_CODE 77
    ENVIRONMENT "GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/test-results/${name}.xml;SHW_SOURCE_DIR=${CMAKE_SOURCE_DIR};SHW_BUILD_DIR=${CMAKE_BINARY_DIR};PYTHONPATH=${CMAKE_BINARY_DIR}/python;${environment}")
endfunction()

# What nearly every test reads first, as the target shw_test_headers, which shw_test takes where it is there: compiled once,
# it saves a quarter of the time of a test's source. For clang: gcc would compile it for each program, and ccache keep neither.
function(shw_precompile_test_headers)
  file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/shw_test_headers.cc" "int main() { return 0; }\n")
  add_executable(shw_test_headers EXCLUDE_FROM_ALL "${CMAKE_CURRENT_BINARY_DIR}/shw_test_headers.cc")
  target_link_libraries(shw_test_headers PRIVATE shw_test_flags shw::fmt GTest::gtest Threads::Threads)
  set(headers "")
  foreach(header IN ITEMS gtest/gtest.h fmt/format.h map span thread)
    list(APPEND headers "$<$<COMPILE_LANGUAGE:CXX>:<${header}$<ANGLE-R>>")
  endforeach()
  target_precompile_headers(shw_test_headers PRIVATE ${headers})
  shw_without_time_stamp(shw_test_headers)
endfunction()

# The time stamp of precompiled headers would make ccache miss.
function(shw_without_time_stamp target)
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
endfunction()

# GoogleTest program `name`. DEPENDS: folders of core/. LINK: other targets (shardwright, ...).
# LABELS: CTest labels. TIMEOUT: seconds (120).
function(shw_test name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "TIMEOUT" "SOURCES;DEPENDS;LINK;LABELS;ENVIRONMENT")
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE shw_test_flags ${ARG_LINK} GTest::gtest_main)
  if(TARGET shw_test_headers AND NOT ARG_SOURCES MATCHES "\\.c(;|$)")
    target_precompile_headers(${name} REUSE_FROM shw_test_headers)
    shw_without_time_stamp(${name})
  endif()
  foreach(folder IN LISTS ARG_DEPENDS)
    target_link_libraries(${name} PRIVATE "shw_${folder}")
  endforeach()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  shw_register_test(${name} ${name} LABELS counted ${ARG_LABELS} TIMEOUT "${ARG_TIMEOUT}" ENVIRONMENT ${ARG_ENVIRONMENT})
endfunction()

# Tests of core/<folder>: program test_core_<folder>, label core. DEPENDS: further folders, LINK: further targets.
function(shw_core_test folder)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "TIMEOUT" "SOURCES;DEPENDS;LINK;ENVIRONMENT")
  set(labels core)
  if(folder MATCHES "^(concurrency|storage|collective|exec|hsdp)$")
    list(APPEND labels tsan)
  endif()
  shw_test(test_core_${folder} SOURCES ${ARG_SOURCES} DEPENDS ${folder} ${ARG_DEPENDS} LINK ${ARG_LINK}
    LABELS ${labels} TIMEOUT "${ARG_TIMEOUT}" ENVIRONMENT ${ARG_ENVIRONMENT})
endfunction()

# C11 program over the public headers and the shared library. It passes when it returns 0.
function(shw_c_test name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "TIMEOUT" "SOURCES;LINK;LABELS;ARGUMENTS;ENVIRONMENT")
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE shw_flags shardwright ${ARG_LINK})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  shw_register_test(${name} ${name} LABELS capi ${ARG_LABELS} TIMEOUT "${ARG_TIMEOUT}" ARGUMENTS ${ARG_ARGUMENTS}
    ENVIRONMENT ${ARG_ENVIRONMENT})
endfunction()

# One LLVMFuzzerTestOneInput. With SHW_FUZZ a libFuzzer program, else a program that replays files; in both cases
# CTest runs it once over CORPUS (a folder of start inputs, relative to the calling folder).
function(shw_fuzz_target name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "CORPUS" "SOURCES;DEPENDS;LINK")
  set(target "fuzz_${name}")
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE shw_flags ${ARG_LINK})
  foreach(folder IN LISTS ARG_DEPENDS)
    target_link_libraries(${target} PRIVATE "shw_${folder}")
  endforeach()
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/fuzz")
  get_filename_component(corpus "${ARG_CORPUS}" ABSOLUTE)
  file(GLOB inputs CONFIGURE_DEPENDS "${corpus}/*")
  if(NOT inputs)
    message(FATAL_ERROR "${target}: ${corpus} holds no input, so its replay would test nothing.")
  endif()
  if(SHW_FUZZ)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    # -runs=0 executes every file of the corpus once and adds nothing to it.
    set(arguments -runs=0 "${corpus}")
  else()
    target_sources(${target} PRIVATE "${CMAKE_SOURCE_DIR}/tests/support/fuzz_replay_main.cc")
    set(arguments "${corpus}")
  endif()
  shw_register_test(${target} ${target} LABELS fuzz ARGUMENTS ${arguments})
endfunction()

# pytest over PATHS (relative to the calling folder). Counts come from the JUnit file that pytest writes.
function(shw_pytest name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "TIMEOUT" "PATHS;LABELS;ENVIRONMENT")
  set(paths "")
  foreach(path IN LISTS ARG_PATHS)
    get_filename_component(path "${path}" ABSOLUTE)
    list(APPEND paths "${path}")
  endforeach()
  shw_command_test(${name} LABELS counted ${ARG_LABELS} TIMEOUT "${ARG_TIMEOUT}" ENVIRONMENT ${ARG_ENVIRONMENT}
    COMMAND "${SHW_VENV}/bin/python" -m pytest -q -p no:cacheprovider "--rootdir=${CMAKE_SOURCE_DIR}"
      -o faulthandler_timeout=180  # a test that hangs says where, before its time is over
      "--junitxml=${CMAKE_BINARY_DIR}/test-results/${name}.xml" ${paths})
endfunction()

# Any command as a test: status 0 passes, 77 is skipped. FOLDER: where it runs (the build tree).
function(shw_command_test name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "TIMEOUT;FOLDER" "COMMAND;LABELS;ENVIRONMENT")
  if(NOT ARG_FOLDER)
    set(ARG_FOLDER "${CMAKE_BINARY_DIR}")
  endif()
  add_test(NAME ${name} COMMAND ${ARG_COMMAND} WORKING_DIRECTORY "${ARG_FOLDER}")
  shw_test_properties(${name} "${ARG_TIMEOUT}" "${ARG_LABELS}" "${ARG_ENVIRONMENT}")
endfunction()
