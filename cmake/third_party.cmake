# Libraries from outside; THIRD_PARTY.md lists them with their licences.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(CLI11 REQUIRED)

# Debian's libxxhash-dev has no CMake package.
find_path(INGOT_XXHASH_INCLUDE xxhash.h REQUIRED)
find_library(INGOT_XXHASH_LIBRARY xxhash REQUIRED)
mark_as_advanced(INGOT_XXHASH_INCLUDE INGOT_XXHASH_LIBRARY)
add_library(xxHash::xxhash UNKNOWN IMPORTED)
set_target_properties(xxHash::xxhash PROPERTIES
  IMPORTED_LOCATION ${INGOT_XXHASH_LIBRARY}
  INTERFACE_INCLUDE_DIRECTORIES ${INGOT_XXHASH_INCLUDE})
