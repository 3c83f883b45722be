# Kernels as a part of a build:
#
#   gpulower_add_kernels(NAME
#     SOURCES saxpy.mlir ...        # each makes one file, ${CMAKE_CURRENT_BINARY_DIR}/NAME/saxpy.fatbin
#     TARGETS sm_80 sm_90 ...
#     [EMIT fatbin]                 # what `gpulower compile --emit` takes
#     [LINK library.bc ...]         # libraries of device code
#     [CUDA DIR] [ROCM DIR]         # toolkits; without both, as gpulower finds them
#     [OPTIONS --ftz ...])          # more words for `gpulower compile`
#
# The target NAME makes all of them; its property GPULOWER_FILES lists them. A file is made again when its source, a library, a part of
# the toolkit or gpulower itself has changed.
function(gpulower_add_kernels name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "EMIT;CUDA;ROCM" "SOURCES;TARGETS;LINK;OPTIONS")
  if(CMAKE_VERSION VERSION_LESS 3.20)
    message(FATAL_ERROR "gpulower_add_kernels needs CMake 3.20 or newer, for dependencies that gpulower writes")
  endif()
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES OR NOT arg_TARGETS)
    message(FATAL_ERROR "gpulower_add_kernels(${name}): give SOURCES and TARGETS; not understood: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT arg_EMIT)
    set(arg_EMIT fatbin)
  endif()
  list(JOIN arg_TARGETS "," targets)
  set(words --target ${targets} --emit ${arg_EMIT})
  foreach(library IN LISTS arg_LINK)
    get_filename_component(library "${library}" ABSOLUTE)
    list(APPEND words --link "${library}")
  endforeach()
  if(arg_CUDA)
    get_filename_component(arg_CUDA "${arg_CUDA}" ABSOLUTE)
    list(APPEND words --cuda "${arg_CUDA}")
  endif()
  if(arg_ROCM)
    get_filename_component(arg_ROCM "${arg_ROCM}" ABSOLUTE)
    list(APPEND words --rocm "${arg_ROCM}")
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  file(MAKE_DIRECTORY "${folder}")
  set(files)
  foreach(source IN LISTS arg_SOURCES)
    get_filename_component(source "${source}" ABSOLUTE)
    get_filename_component(stem "${source}" NAME_WLE)
    set(output "${folder}/${stem}.${arg_EMIT}")
    add_custom_command(
      OUTPUT "${output}"
      COMMAND "${gpulower_PROGRAM}" compile "${source}" ${words} ${arg_OPTIONS} --depfile=${output}.d -o "${output}"
      DEPENDS "${source}" "${gpulower_PROGRAM}"
      DEPFILE "${output}.d"
      COMMENT "Compiling kernels of ${stem} for ${targets}"
      VERBATIM)
    list(APPEND files "${output}")
  endforeach()
  add_custom_target(${name} DEPENDS ${files})
  set_target_properties(${name} PROPERTIES GPULOWER_FILES "${files}")
endfunction()
