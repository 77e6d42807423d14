#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "tidy/source_tree.h"

namespace ingot::tidy {

// Links of Markdown files to files or folders of the repository that do not exist.
Findings check_links(const SourceFile& file, const std::set<std::string>& paths);

// Lines that name a folder of somebody's machine: a home folder, or the place of this checkout.
Findings check_machine_paths(const SourceFile& file, const std::filesystem::path& root);

}  // namespace ingot::tidy
