# SPDX-License-Identifier: Apache-2.0
#
# shw_swig_interface(FOLDER): writes into FOLDER what the interface files include and what is generated from the headers
# beside SWIG's own output. Sets shw_interface_files to what a SWIG command depends on.
function(shw_swig_interface folder)
  set(swig_folder "${CMAKE_SOURCE_DIR}/bindings/swig")
  set(include "${CMAKE_SOURCE_DIR}/include")
  set(generators "${swig_folder}/annotate.py" "${swig_folder}/interface_model.py" "${swig_folder}/structs.py")
  set(interface "${swig_folder}/shardwright.i")
  file(GLOB headers CONFIGURE_DEPENDS "${include}/shardwright/*.h")
  file(MAKE_DIRECTORY "${folder}")
  set(written "${folder}/annotations.i" "${folder}/structs.i" "${folder}/struct_tables.h" "${folder}/struct_tables.c"
    "${folder}/Structs.java")
  add_custom_command(OUTPUT ${written}
    COMMAND Python3::Interpreter "${swig_folder}/annotate.py" "${include}/shardwright" "${folder}/annotations.i"
    COMMAND Python3::Interpreter "${swig_folder}/structs.py" "${SWIG_EXECUTABLE}" "${interface}" "${include}" "${folder}"
    DEPENDS ${generators} ${headers} "${interface}" "${swig_folder}/rust.i"
    COMMENT "structs and annotations of the public headers" VERBATIM)
  set(shw_interface_files ${written} ${headers} "${interface}" PARENT_SCOPE)
endfunction()
