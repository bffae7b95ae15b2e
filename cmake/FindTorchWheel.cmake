# SPDX-License-Identifier: Apache-2.0
#
# PyTorch as its Python package brings it: target shw::torch with libtorch_cpu and libc10 and nothing else, so that what
# links it runs with CPU and CUDA builds alike. The package's own CMake files look for a CUDA toolkit, which nobody
# needs for that. Python is asked where the package lies; it is not imported. Result variables:
#   TorchWheel_FOUND, SHW_TORCH_FOLDER, SHW_TORCH_VERSION (such as 2.15.0), SHW_TORCH_REASON (why it was not found)
set(TorchWheel_FOUND FALSE)
set(SHW_TORCH_REASON "")
set(python "${Python3_EXECUTABLE}")
if(NOT python)
  find_program(SHW_TORCH_PYTHON NAMES python3 python)
  mark_as_advanced(SHW_TORCH_PYTHON)
  set(python "${SHW_TORCH_PYTHON}")
endif()
# The record of a package is written when all of its files are there.
execute_process(
  COMMAND "${python}" -c "if True:
    import importlib.metadata as metadata, importlib.util as util
    found = util.find_spec('torch')
    whole = found and metadata.distribution('torch').read_text('RECORD')
    print(found.submodule_search_locations[0] if whole else '')"
  OUTPUT_VARIABLE SHW_TORCH_FOLDER OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
set(version_header "${SHW_TORCH_FOLDER}/include/torch/headeronly/version.h")
if(NOT SHW_TORCH_FOLDER)
  set(SHW_TORCH_REASON "${python} has no package torch, or not yet all of it")
elseif(NOT EXISTS "${version_header}")
  set(SHW_TORCH_REASON "${SHW_TORCH_FOLDER} has no headers of torch 2.15")
else()
  set(SHW_TORCH_VERSION "")
  foreach(part IN ITEMS MAJOR MINOR PATCH)
    file(STRINGS "${version_header}" line REGEX "define TORCH_VERSION_${part} ")
    string(REGEX REPLACE "^.* ([0-9]+)$" "\\1" number "${line}")
    string(APPEND SHW_TORCH_VERSION ".${number}")
  endforeach()
  string(SUBSTRING "${SHW_TORCH_VERSION}" 1 -1 SHW_TORCH_VERSION)
  if(NOT SHW_TORCH_VERSION MATCHES "^2\\.15\\.")
    set(SHW_TORCH_REASON "torch is ${SHW_TORCH_VERSION}, and the plugin is written for 2.15")
  else()
    set(TorchWheel_FOUND TRUE)
  endif()
endif()

if(TorchWheel_FOUND AND NOT TARGET shw::torch)
  foreach(library IN ITEMS torch_cpu c10)
    add_library(shw_torch_${library} SHARED IMPORTED GLOBAL)
    set_target_properties(shw_torch_${library} PROPERTIES IMPORTED_LOCATION "${SHW_TORCH_FOLDER}/lib/lib${library}.so")
  endforeach()
  add_library(shw::torch INTERFACE IMPORTED GLOBAL)
  target_link_libraries(shw::torch INTERFACE shw_torch_torch_cpu shw_torch_c10)
  target_include_directories(shw::torch SYSTEM INTERFACE "${SHW_TORCH_FOLDER}/include"
    "${SHW_TORCH_FOLDER}/include/torch/csrc/api/include")
  # Beside torch's headers lies another fmt than ours; its functions are compiled where they are used.
  target_compile_definitions(shw::torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO FMT_HEADER_ONLY)
  # libtorch_cpu of a CUDA build needs libraries of other packages, which who runs it has.
  target_link_options(shw::torch INTERFACE -Wl,--allow-shlib-undefined)
endif()
