#include "tidy/layers.h"

#include <optional>
#include <sstream>

namespace ingot::tidy {
namespace {

std::string without_cmake_comments(std::string_view text) {
  std::string code;
  for (const std::string_view line : lines_of(text)) {
    code.append(line.substr(0, line.find('#')));
    code += '\n';
  }
  return code;
}

// The path between the quotes of an #include "...", if this line is one.
std::optional<std::string_view> quoted_include(std::string_view line) {
  const size_t hash = line.find_first_not_of(' ');
  if (hash == std::string_view::npos || !line.substr(hash).starts_with("#include")) return {};
  const size_t open = line.find('"');
  if (open == std::string_view::npos) return {};
  return line.substr(open + 1, line.find('"', open + 1) - open - 1);
}

}  // namespace

LayerTable parse_layer_table(std::string_view cmake_text) {
  constexpr std::string_view kRoom = "room(";
  const std::string code = without_cmake_comments(cmake_text);
  LayerTable table;
  for (size_t at = find_word(code, kRoom); at != std::string::npos;
       at = find_word(code, kRoom, at + 1)) {
    const size_t begin = at + kRoom.size();
    std::istringstream words(code.substr(begin, code.find(')', begin) - begin));
    std::string name;
    words >> name;
    std::set<std::string>& uses = table[name];
    bool in_uses = false;
    for (std::string word; words >> word;) {
      if (word == "USES" || word == "LIBRARIES") {
        in_uses = word == "USES";
      } else if (in_uses) {
        uses.insert(word);
      }
    }
  }
  return table;
}

Findings check_layers(const SourceFile& file, const LayerTable& table) {
  Findings findings;
  const std::string room(room_of(file.path));
  if (room.empty() || !is_cpp(file.path)) return findings;
  const auto row = table.find(room);
  if (row == table.end()) {
    return {{file.path, 0, "room " + room + " is not in the table of src/CMakeLists.txt"}};
  }
  size_t number = 0;
  for (const std::string_view line : lines_of(file.text)) {
    ++number;
    const auto included = quoted_include(line);
    if (!included) continue;
    const std::string target(included->substr(0, included->find('/')));
    if (!table.contains(target)) {
      findings.push_back({file.path, number, "include headers by room: \"room/header.h\""});
    } else if (target != room && !row->second.contains(target)) {
      findings.push_back(
          {file.path, number,
           room + " does not use " + target + " in the table of src/CMakeLists.txt"});
    }
  }
  return findings;
}

}  // namespace ingot::tidy
