# room(NAME [USES room...] [LIBRARIES target...])
#
# One folder of src/ as the static library ingot_NAME, and its tests as ingot_NAME_test. USES is
# the whole list of rooms whose headers it may include; each must stand above it in the table.
# LIBRARIES are targets from outside. A room whose folder has no source yet is passed over.
#
# Not part of the library: *_test.cc, *_benchmark.cc and main.cc. Files named *_avx2.cc and
# *_avx512.cc are compiled for that instruction set.
function(room name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "USES;LIBRARIES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "room(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  get_property(above GLOBAL PROPERTY INGOT_ROOMS)
  foreach(used IN LISTS arg_USES)
    if(NOT used IN_LIST above)
      message(FATAL_ERROR "room(${name}) uses ${used}, which does not stand above it")
    endif()
  endforeach()
  set_property(GLOBAL APPEND PROPERTY INGOT_ROOMS ${name})

  set(folder ${CMAKE_CURRENT_SOURCE_DIR}/${name})
  file(GLOB headers CONFIGURE_DEPENDS ${folder}/*.h)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cc)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|_benchmark|/main)\\.cc$")

  if(sources)
    add_library(ingot_${name} STATIC ${sources})
    set(scope PUBLIC)
  elseif(headers)
    add_library(ingot_${name} INTERFACE)
    set(scope INTERFACE)
  else()
    return()
  endif()
  target_include_directories(ingot_${name} ${scope} ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(ingot_${name} ${scope} ${arg_LIBRARIES})
  foreach(used IN LISTS arg_USES)
    if(TARGET ingot_${used})
      target_link_libraries(ingot_${name} ${scope} ingot_${used})
    endif()
  endforeach()

  set(has_wide_files NO)
  foreach(target AVX2 AVX512)
    string(TOLOWER ${target} suffix)
    set(wide ${sources})
    list(FILTER wide INCLUDE REGEX "_${suffix}\\.cc$")
    if(wide)
      set_source_files_properties(${wide} PROPERTIES COMPILE_OPTIONS "${INGOT_${target}_FLAGS}"
                                  SKIP_PRECOMPILE_HEADERS ON)
      set(has_wide_files YES)
    endif()
  endforeach()
  if(has_wide_files)
    set_property(GLOBAL APPEND PROPERTY INGOT_WIDE_ROOMS ingot_${name})
  endif()

  if(sources)
    precompile_headers(ingot_${name} ingot_base ${INGOT_PRECOMPILED})
  endif()

  if(INGOT_BUILD_TESTS AND tests)
    gtest_suite(ingot_${name}_test LABEL ${name} SOURCES ${tests} LINKS ingot_${name})
  endif()
endfunction()

# gtest_suite(TARGET LABEL label SOURCES file... LINKS target...)
#
# One GoogleTest program. CTest knows each of its tests as label.Suite.Case, with that label.
function(gtest_suite target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL" "SOURCES;LINKS")
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_LINKS} GTest::gtest_main)
  target_compile_definitions(${target} PRIVATE INGOT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  # Tests spend their time in the rooms; their own code is compiled a third faster this way.
  target_compile_options(${target} PRIVATE -O1)
  precompile_headers(${target} ingot_base_test ${INGOT_PRECOMPILED} <gtest/gtest.h>)
  include(GoogleTest)
  gtest_discover_tests(${target} TEST_PREFIX ${arg_LABEL}. DISCOVERY_MODE PRE_TEST
                       DISCOVERY_TIMEOUT 120
                       PROPERTIES LABELS ${arg_LABEL} TIMEOUT 600)
endfunction()

# What nearly every file reads: parsing it once saves a quarter of a build's time. The clang preset
# does without, so that a file that forgot an include is found.
set(INGOT_PRECOMPILED
    <algorithm> <array> <charconv> <cmath> <cstdint> <cstring> <expected> <filesystem> <functional>
    <limits> <map> <memory> <optional> <set> <span> <string> <string_view> <unordered_map> <utility>
    <vector> <fmt/format.h> <fmt/ranges.h> <boost/json.hpp>)

# precompile_headers(TARGET OWNER header...): one precompiled header, made with OWNER.
function(precompile_headers target owner)
  if(NOT INGOT_PRECOMPILE)
    return()
  endif()
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()
