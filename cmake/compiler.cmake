# Language, warnings and flags of everything that is compiled here.

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE OFF)

if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  message(FATAL_ERROR "Ingot runs on x86-64; this is ${CMAKE_SYSTEM_PROCESSOR}")
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# Products and sums round separately, so that a result does not depend on what the compiler fused.
add_compile_options(-ffp-contract=off)

add_compile_options(-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wold-style-cast
                    -Wimplicit-fallthrough -Wextra-semi)
# A designated initializer may leave out what has a default.
add_compile_options(-Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 sees overflows in inlined sums of std::string that are none; the sanitizers look too.
  add_compile_options(-Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++ 12 implements std::stable_sort with a function that it calls deprecated.
  add_compile_options(-Wno-deprecated-declarations)
endif()
if(INGOT_WARNINGS_AS_ERRORS)
  add_compile_options(-Werror)
endif()

if(INGOT_SANITIZE)
  add_compile_options(-fsanitize=${INGOT_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${INGOT_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instrumented code makes g++ see paths that do not exist.
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()

# Files built for one instruction set. They are optimised in every build type: unoptimised, inline
# functions of the standard library stay out of line as weak symbols, and the linker may then take
# the wide copy for code that has to run on any processor (tests/tidy looks for such symbols).
set(INGOT_AVX2_FLAGS -O2 -mavx2 -mfma -mf16c)
if(INGOT_SANITIZE MATCHES "address")
  # With these checks their unrolled tiles compile for ten minutes. To be undone.
  list(APPEND INGOT_AVX2_FLAGS -fno-sanitize=address,undefined)
endif()
set(INGOT_AVX512_FLAGS ${INGOT_AVX2_FLAGS} -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # The headers of g++ 12 read their own deliberately undefined registers.
  list(APPEND INGOT_AVX512_FLAGS -Wno-maybe-uninitialized)
endif()

find_program(INGOT_CCACHE ccache)
if(INGOT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${INGOT_CCACHE})
endif()

find_program(INGOT_MOLD mold)
if(INGOT_MOLD)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=mold INGOT_MOLD_WORKS)
  if(INGOT_MOLD_WORKS)
    add_link_options(-fuse-ld=mold)
  endif()
endif()
