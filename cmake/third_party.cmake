# Libraries from outside; THIRD_PARTY.md lists them with their licences.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(CLI11 REQUIRED)
find_package(tomlplusplus REQUIRED)

# third_party_library(TARGET HEADER LIBRARY): one whose Debian package has no CMake package.
function(third_party_library target header library)
  string(MAKE_C_IDENTIFIER "INGOT_${library}" name)
  string(TOUPPER ${name} name)
  find_path(${name}_INCLUDE ${header} REQUIRED)
  find_library(${name}_LIBRARY ${library} REQUIRED)
  mark_as_advanced(${name}_INCLUDE ${name}_LIBRARY)
  add_library(${target} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES
    IMPORTED_LOCATION ${${name}_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${${name}_INCLUDE})
endfunction()

third_party_library(xxHash::xxhash xxhash.h xxhash)
third_party_library(PCRE2::8bit pcre2.h pcre2-8)
third_party_library(utf8proc::utf8proc utf8proc.h utf8proc)
third_party_library(edit::edit histedit.h edit)
third_party_library(NUMA::numa numaif.h numa)
