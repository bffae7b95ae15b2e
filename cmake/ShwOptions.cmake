# SPDX-License-Identifier: Apache-2.0
#
# Every switch of the build, with one sentence each. A switch that is ON and whose dependency is missing stops the
# configuration with the name of the switch; nothing is left out in silence.

option(SHW_BUILD_TESTS "Build the test programs of the groups below and register them with CTest." ON)
option(SHW_BUILD_PYTHON "Build the Python module (needs SWIG 4.5 and the Python headers)." ON)
option(SHW_BUILD_JAVA "Build the JNI library and the jar (needs a JDK of 17 or newer, Maven and SWIG 4.5)." ON)
option(SHW_BUILD_RUST "Build the Rust crates against the library of this tree (needs cargo of 1.85 or newer)." ON)
option(SHW_BUILD_CLI "Build the command line program bin/shardwright (needs CLI11)." ON)
option(SHW_BUILD_EXAMPLES "Build the compiled example programs." ON)
option(SHW_BUILD_BENCHMARKS "Build the benchmark programs." ON)
option(SHW_BUILD_PLUGINS "Build the sample plugins: memory storage, faulty storage, two-rank collective." ON)

set(SHW_BUILD_TORCH "AUTO" CACHE STRING
  "Build the plugin for PyTorch's process groups, libshardwright_torch.so: ON, OFF, or AUTO = where torch 2.15 is installed.")
set(SHW_WITH_CUDA "AUTO" CACHE STRING
  "Build the plugin for GPUs and NCCL, libshardwright_cuda.so: ON, OFF, or AUTO = where CUDA 13 and NCCL are found (tools/bootstrap.sh cuda).")

option(SHW_TESTS_CORE "Test group: unit, conformance and property tests of core/." ON)
option(SHW_TESTS_CAPI "Test group: C interface, ABI gates and headers." ON)
option(SHW_TESTS_CLI "Test group: command line." ON)
option(SHW_TESTS_CRASH "Test group: programs that kill, tear and starve a save." ON)
option(SHW_TESTS_FUZZ "Test group: fuzz targets; libFuzzer programs under clang, else a replay of the corpus." ON)
option(SHW_TESTS_BINDINGS "Test group: Python, Java and Rust suites." ON)
option(SHW_TESTS_TORCH "Test group: PyTorch state dicts and process groups (needs torch when it runs)." ON)
option(SHW_TESTS_CUDA "Test group: the plugin for GPUs and NCCL, where it is built; what needs a GPU is skipped without one." ON)
option(SHW_TESTS_INSTALL "Test group: installed tree, wheel, examples of the pages." ON)

option(SHW_IO_URING "Batched reads and writes through io_uring, where the system allows it, else by threads (needs liburing)." ON)
option(SHW_STATIC_RUNTIME "Link libstdc++ and libgcc into the library, as the wheel does." OFF)
option(SHW_FUZZ "Build the fuzz targets as libFuzzer programs (needs clang)." OFF)
option(SHW_UNITY "Compile core/, capi/ and cli/ eight sources at a time: half the work of a first build, more after a change." OFF)
option(SHW_WARNINGS_AS_ERRORS "Stop at the first warning." ON)
set(SHW_SANITIZE "" CACHE STRING "Value of -fsanitize= for everything that is compiled, for example address,undefined.")

# A switch needs something that is not there: say which, and how to go on without it.
function(shw_require_for_option option found what package)
  if(NOT ${found})
    message(FATAL_ERROR
      "${what} was not found, and ${option} is ON. Install ${package}, or configure with -D${option}=OFF.")
  endif()
endfunction()
