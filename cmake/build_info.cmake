# Writes build_info.cc, run at every build: cmake -DSOURCE_DIR= -DOUTPUT= -DVERSION= -DCOMPILER=
# -DBUILD_TYPE= -P build_info.cmake. The file is touched only when its text changes, so an
# unchanged commit compiles nothing. Without a git checkout of its own the commit is "unknown".

function(git result)
  # The index stays unlocked: a build may run while somebody commits.
  execute_process(COMMAND ${CMAKE_COMMAND} -E env GIT_OPTIONAL_LOCKS=0 git ${ARGN}
                  WORKING_DIRECTORY ${SOURCE_DIR} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT status EQUAL 0)
    set(output "unknown")
  endif()
  set(${result} "${output}" PARENT_SCOPE)
endfunction()

set(commit "unknown")
git(top_level rev-parse --show-toplevel)
file(REAL_PATH ${SOURCE_DIR} source_dir)
# Sources unpacked inside somebody else's repository must not report that one's commit.
if(top_level STREQUAL source_dir)
  git(commit rev-parse --short=12 HEAD)
  git(changes status --porcelain)
  if(NOT commit STREQUAL "unknown" AND NOT changes STREQUAL "")
    string(APPEND commit "-dirty")
  endif()
endif()

string(CONFIGURE [[
#include "base/build_info.h"

namespace ingot::base {

const BuildInfo& build_info() {
  static constexpr BuildInfo info = {.version = "@VERSION@",
                                     .commit = "@commit@",
                                     .compiler = "@COMPILER@",
                                     .build_type = "@BUILD_TYPE@"};
  return info;
}

}  // namespace ingot::base
]] text @ONLY)

set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
