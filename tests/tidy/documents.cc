#include "tidy/documents.h"

#include <algorithm>
#include <vector>

namespace ingot::tidy {
namespace {

constexpr auto npos = std::string_view::npos;

bool exists(const std::string& target, const std::set<std::string>& paths) {
  const std::string as_folder = target.ends_with('/') ? target : target + "/";
  const auto inside = paths.lower_bound(as_folder);
  return target.empty() || paths.contains(target) ||
         (inside != paths.end() && inside->starts_with(as_folder));
}

// Where a link leads, relative to the root; empty for links that leave the repository.
std::string resolve(std::string_view document, std::string_view link) {
  link = link.substr(0, link.find_first_of("# "));
  if (link.empty() || link.contains("://") || link.starts_with("mailto:")) return {};
  const std::filesystem::path folder = std::filesystem::path(document).parent_path();
  const std::string target = (folder / link).lexically_normal().generic_string();
  return target == "." ? std::string{} : target;
}

}  // namespace

Findings check_links(const SourceFile& file, const std::set<std::string>& paths) {
  Findings findings;
  if (!file.path.ends_with(".md")) return findings;
  size_t number = 0;
  bool in_listing = false;
  for (const std::string_view line : lines_of(file.text)) {
    ++number;
    if (line.starts_with("```")) in_listing = !in_listing;
    if (in_listing) continue;
    for (size_t at = line.find("]("); at != npos; at = line.find("](", at + 1)) {
      const std::string_view link = line.substr(at + 2, line.find(')', at) - at - 2);
      if (!exists(resolve(file.path, link), paths)) {
        findings.push_back({file.path, number, "dead link " + std::string(link)});
      }
    }
  }
  return findings;
}

Findings check_machine_paths(const SourceFile& file, const std::filesystem::path& root) {
  std::vector<std::string> machine_paths = {
      "/home"
      "/",
      "/Users"
      "/"};
  const std::string above = root.lexically_normal().parent_path().generic_string();
  if (above.size() > 1) machine_paths.push_back(above + "/");
  Findings findings;
  size_t number = 0;
  for (const std::string_view line : lines_of(file.text)) {
    ++number;
    for (const std::string& path : machine_paths) {
      const size_t at = line.find(path);
      const bool starts_here = at == 0 || (at != npos && !is_identifier_char(line[at - 1]) &&
                                           line[at - 1] != '.' && line[at - 1] != '}');
      if (starts_here) findings.push_back({file.path, number, "names a machine's path " + path});
    }
  }
  return findings;
}

}  // namespace ingot::tidy
