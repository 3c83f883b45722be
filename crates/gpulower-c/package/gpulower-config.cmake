# find_package(gpulower 1.0): the target gpulower::gpulower, the program gpulower_PROGRAM, and the function gpulower_add_kernels.
foreach(component IN LISTS gpulower_FIND_COMPONENTS)
  set(gpulower_${component}_FOUND FALSE)
  if(gpulower_FIND_REQUIRED_${component})
    set(gpulower_FOUND FALSE)
    set(gpulower_NOT_FOUND_MESSAGE "gpulower has no component '${component}': it has none")
    return()
  endif()
endforeach()
get_filename_component(_gpulower_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(EXISTS "${_gpulower_prefix}/bin/gpulower")
  set(gpulower_PROGRAM "${_gpulower_prefix}/bin/gpulower")
else()
  # Not installed: out of a checkout.
  find_program(gpulower_PROGRAM gpulower REQUIRED)
endif()
include("${CMAKE_CURRENT_LIST_DIR}/gpulower-kernels.cmake")
if(NOT TARGET gpulower::gpulower)
  add_library(gpulower::gpulower SHARED IMPORTED)
  set_target_properties(gpulower::gpulower PROPERTIES
    IMPORTED_LOCATION "${_gpulower_prefix}/lib/libgpulower.so.1"
    IMPORTED_SONAME "libgpulower.so.1"
    INTERFACE_INCLUDE_DIRECTORIES "${_gpulower_prefix}/include")
endif()
unset(_gpulower_prefix)
