# Compiled twins of the Python modules that turn schemas and patterns into expressions: see grammask/_compiled.
#
# The modules form one group, whose code is one library; each has a small extension module of its own beside it. Classes
# that inherit from a compiled class belong into the group as well.
set(prefix grammask.constraints)
set(compiled_modules)
foreach(name IN ITEMS
    array_language arrays dialects documents expansion formats formulas indentation keys lowering numbers object_cells
    objects reader regex_format shapes strings values whitespace)
  list(APPEND compiled_modules ${prefix}.json_schema.${name})
endforeach()
foreach(name IN ITEMS
    codepoints context lowering parser repetition syntax unicode_properties unicode_tables)
  list(APPEND compiled_modules ${prefix}.regex.${name})
endforeach()
list(APPEND compiled_modules ${prefix}.tools.arguments)

execute_process(
  COMMAND "${Python_EXECUTABLE}" -c "from mypyc.build import include_dir; print(include_dir())"
  OUTPUT_VARIABLE mypyc_runtime OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE mypyc_missing ERROR_QUIET)
if(mypyc_missing)
  message(FATAL_ERROR
    "Compiling the Python modules needs mypyc. Install it with 'pip install mypy[mypyc]', or build without compiled "
    "modules: -DGRAMMASK_COMPILE_PYTHON=OFF (pip: --config-settings=cmake.define.GRAMMASK_COMPILE_PYTHON=OFF).")
endif()
enable_language(C)

set(generated "${CMAKE_CURRENT_BINARY_DIR}/compiled")
set(library_source "${generated}/grammask/_compiled/__native_modules.c")
set(module_files)
set(shim_sources)
foreach(module IN LISTS compiled_modules)
  string(REPLACE . / path ${module})
  list(APPEND module_files "${PROJECT_SOURCE_DIR}/src/${path}.py")
  list(APPEND shim_sources "${generated}/${path}.c")
endforeach()
set(script "${CMAKE_CURRENT_LIST_DIR}/compile_python.py")
add_custom_command(
  OUTPUT "${library_source}" ${shim_sources} "${generated}/manifest.json"
  COMMAND "${Python_EXECUTABLE}" "${script}" "${generated}" ${compiled_modules}
  WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}/src"
  DEPENDS "${script}" "${PROJECT_SOURCE_DIR}/src/grammask/_compiled/manifest.py" ${module_files}
  COMMENT "Translating Python modules to C" VERBATIM)

# Optional to install: whoever builds the target _core alone has none of them.
function(add_compiled_module target name source)
  Python_add_library(${target} MODULE WITH_SOABI "${source}")
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} C_STANDARD 11 C_VISIBILITY_PRESET hidden)
  target_include_directories(${target} PRIVATE "${mypyc_runtime}" "${generated}")
  if(MSVC)
    target_compile_options(${target} PRIVATE /w)
  else()
    target_compile_options(${target} PRIVATE -w -O2 -fwrapv)
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION grammask/_compiled OPTIONAL)
endfunction()

add_compiled_module(compiled_modules modules__mypyc "${library_source}")
foreach(module source IN ZIP_LISTS compiled_modules shim_sources)
  add_compiled_module(${module} ${module} "${source}")
  add_dependencies(${module} compiled_modules)
endforeach()
install(FILES "${generated}/manifest.json" DESTINATION grammask/_compiled OPTIONAL)
