# SPDX-License-Identifier: Apache-2.0
#
# `cmake --install`: headers, library, command line, shardwright.pc and the CMake package. Everything is found relative
# to where the files lie, so the installed tree can be moved.
if(NOT TARGET shardwright)
  return()
endif()
if(SKBUILD)
  # The wheel: library and command line lie beside the module, which the folder of the Python binding installs.
  set(native_dir shardwright/_native)
  install(TARGETS shardwright LIBRARY DESTINATION "${native_dir}" COMPONENT python NAMELINK_SKIP)
  if(TARGET shardwright_cli)
    set_target_properties(shardwright_cli PROPERTIES INSTALL_RPATH "$ORIGIN")
    install(TARGETS shardwright_cli RUNTIME DESTINATION "${native_dir}" COMPONENT python)
  endif()
  return()
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS shardwright EXPORT shardwrightTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library
  INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(DIRECTORY include/shardwright DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development
  FILES_MATCHING PATTERN "*.h")
# For C++ hosts of libtorch, which they bring themselves.
install(DIRECTORY bindings/libtorch/include/shardwright DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development
  FILES_MATCHING PATTERN "*.hpp")
install(FILES LICENSE LICENSES.md DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT development OPTIONAL)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/shardwright")
install(EXPORT shardwrightTargets NAMESPACE shardwright:: DESTINATION "${package_dir}" COMPONENT development)
configure_package_config_file(cmake/shardwrightConfig.cmake.in "${CMAKE_BINARY_DIR}/package/shardwrightConfig.cmake"
  INSTALL_DESTINATION "${package_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/package/shardwrightConfigVersion.cmake"
  VERSION "${PROJECT_VERSION}" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/package/shardwrightConfig.cmake"
              "${CMAKE_BINARY_DIR}/package/shardwrightConfigVersion.cmake"
  DESTINATION "${package_dir}" COMPONENT development)

file(RELATIVE_PATH SHW_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" SHW_PC_PREFIX "${SHW_PC_PREFIX}")
configure_file(cmake/shardwright.pc.in "${CMAKE_BINARY_DIR}/package/shardwright.pc" @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/package/shardwright.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
  COMPONENT development)

if(TARGET shardwright_cli)
  file(RELATIVE_PATH SHW_LIB_FROM_BIN "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
  set_target_properties(shardwright_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${SHW_LIB_FROM_BIN}")
  install(TARGETS shardwright_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT programs)
endif()
