# SPDX-License-Identifier: Apache-2.0
#
# cmake -DFROM=folder -DTO=folder -P copy_package.cmake: copies the sources of the package that changed, and removes the
# copies of those that are no more. What the build itself puts into _native/ stays.
cmake_minimum_required(VERSION 3.25)
file(GLOB_RECURSE wanted RELATIVE "${FROM}" "${FROM}/*.py" "${FROM}/*.pyi" "${FROM}/py.typed")
file(GLOB_RECURSE present RELATIVE "${TO}" "${TO}/*.py" "${TO}/*.pyi")
foreach(path IN LISTS present)
  if(NOT path IN_LIST wanted)
    file(REMOVE "${TO}/${path}")
  endif()
endforeach()
foreach(path IN LISTS wanted)
  configure_file("${FROM}/${path}" "${TO}/${path}" COPYONLY)
endforeach()
