#include "server/batch_input.h"

#include <algorithm>

#include <fmt/format.h>
#include <xxhash.h>

#include "base/check.h"

namespace ingot::server {

base::Result<BatchInput> BatchInput::open(const std::filesystem::path& path) {
  const base::InputFile file = TRY(base::InputFile::open(path));
  BatchInput input(path, TRY(base::MappedFile::map(file, file.size_bytes())));
  const std::string_view text = input.text();
  int64_t number = 0;
  // Some editors put a mark of the byte order in front.
  for (size_t begin = text.starts_with("\xEF\xBB\xBF") ? 3 : 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    ++number;
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      input.lines_.push_back({.offset = begin, .size = line.size(), .number = number});
    }
    begin = end + 1;
  }
  if (input.lines_.empty()) {
    return base::error("{}: there is no request in it; expected a line of JSON for each",
                       path.string());
  }
  input.hash_ = fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
  return input;
}

std::string_view BatchInput::text() const {
  const auto bytes = mapped_.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view BatchInput::line(int64_t index) const {
  CHECK(0 <= index && index < num_lines());
  const Line& line = lines_[static_cast<size_t>(index)];
  return text().substr(line.offset, line.size);
}

}  // namespace ingot::server
