#pragma once

#include <set>
#include <string>

#include "tidy/source_tree.h"

namespace ingot::tidy {

// File names that are not snake_case, or that say nothing about the content (utils, manager).
Findings check_file_name(const SourceFile& file);

// Types called ...Manager, ...Helper, ...Util and the like.
Findings check_type_names(const SourceFile& file);

// Headers without #pragma once.
Findings check_pragma_once(const SourceFile& file);

// Files of src/ROOM/ outside namespace ingot::ROOM; main.cc is free.
Findings check_namespace(const SourceFile& file);

// Sources of src/ whose header is missing. linear_avx2.cc belongs to linear.h: a name may go on
// after its header's. Tests and benchmarks have none; the files of cli/, one a command, share some.
Findings check_header_pair(const SourceFile& file, const std::set<std::string>& paths);

}  // namespace ingot::tidy
