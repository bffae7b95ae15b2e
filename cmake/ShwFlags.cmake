# SPDX-License-Identifier: Apache-2.0
#
# Compiler flags and output folders. Two interface targets carry them: shw_flags (everything of ours) and
# shw_core_flags (core and capi: stricter warnings on top).
include(CheckCXXCompilerFlag)

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/archive")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(SHW_CCACHE ccache)
  mark_as_advanced(SHW_CCACHE)
  if(SHW_CCACHE)
    set(CMAKE_C_COMPILER_LAUNCHER "${SHW_CCACHE}")
    set(CMAKE_CXX_COMPILER_LAUNCHER "${SHW_CCACHE}")
  endif()
endif()

check_cxx_compiler_flag(-fno-gnu-unique SHW_HAS_NO_GNU_UNIQUE)

add_library(shw_flags INTERFACE)
target_compile_options(shw_flags INTERFACE
  -Wall -Wextra -Wshadow
  $<$<BOOL:${SHW_WARNINGS_AS_ERRORS}>:-Werror>
  $<$<AND:$<BOOL:${SHW_HAS_NO_GNU_UNIQUE}>,$<COMPILE_LANGUAGE:CXX>>:-fno-gnu-unique>
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  "-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=")
target_include_directories(shw_flags INTERFACE "${CMAKE_SOURCE_DIR}")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # gcc 12 reports false positives of these two inside libstdc++ once it has inlined a vector or a string.
  target_compile_options(shw_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow>
    # A type of an unnamed namespace in a source that another one includes: how sources are compiled together.
    $<$<AND:$<BOOL:${SHW_UNITY}>,$<COMPILE_LANGUAGE:CXX>>:-Wno-subobject-linkage>)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # std::stable_sort of libstdc++ 12 uses a function that libstdc++ itself marks as deprecated.
  target_compile_options(shw_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-deprecated-declarations>)
endif()

if(SHW_SANITIZE)
  # Mixed programs report nonsense, so every compile and link line gets it.
  add_compile_options("-fsanitize=${SHW_SANITIZE}" -fno-omit-frame-pointer)
  add_link_options("-fsanitize=${SHW_SANITIZE}")
  if(SHW_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
    # C programs that load the library need the part of the run time that knows C++.
    add_link_options($<$<LINK_LANG_AND_ID:C,Clang>:-fsanitize-link-c++-runtime>)
    link_libraries($<$<LINK_LANG_AND_ID:C,Clang>:stdc++>)
  endif()
endif()
# What a host that is not ours needs (an interpreter, a JVM): it loads the run time before anything else.
set(SHW_SANITIZER_ENVIRONMENT "")
if(SHW_SANITIZE MATCHES "address")
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=libclang_rt.asan-${CMAKE_SYSTEM_PROCESSOR}.so
    OUTPUT_VARIABLE SHW_ASAN_LIBRARY OUTPUT_STRIP_TRAILING_WHITESPACE)
  if((SHW_BUILD_PYTHON OR SHW_BUILD_JAVA) AND NOT EXISTS "${SHW_ASAN_LIBRARY}")
    message(FATAL_ERROR "The shared AddressSanitizer library of ${CMAKE_CXX_COMPILER} was not found. Install "
      "libclang-rt-19-dev, or configure with -DSHW_BUILD_PYTHON=OFF -DSHW_BUILD_JAVA=OFF.")
  endif()
  set(SHW_SANITIZER_ENVIRONMENT "LD_PRELOAD=${SHW_ASAN_LIBRARY}")
endif()
if(SHW_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "SHW_FUZZ needs clang. Use the preset asan, or configure with -DSHW_FUZZ=OFF.")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# What tests are compiled with on top: the code under test keeps its flags, but the optimiser would spend most of a cold
# build on the expanded macros of GoogleTest, half of it for instrumentation that only fuzzing reads.
add_library(shw_test_flags INTERFACE)
target_link_libraries(shw_test_flags INTERFACE shw_flags)
if(SHW_SANITIZE)
  target_compile_options(shw_test_flags INTERFACE -O0)
elseif(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_options(shw_test_flags INTERFACE -O1)
endif()
if(SHW_FUZZ)
  target_compile_options(shw_test_flags INTERFACE -fno-sanitize=fuzzer-no-link)
endif()

add_library(shw_core_flags INTERFACE)
target_link_libraries(shw_core_flags INTERFACE shw_flags)
target_compile_options(shw_core_flags INTERFACE -Wconversion -Wsign-conversion)
