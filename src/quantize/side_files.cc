#include "quantize/side_files.h"

#include <algorithm>
#include <string>
#include <system_error>

#include "base/mapped_file.h"
#include "base/output_file.h"
#include "quantize/quantization_report.h"

namespace ingot::quantize {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPieceBytes = size_t{1} << 20;

bool is_side_file(const fs::path& relative) {
  const std::string name = relative.filename().string();
  if (relative.extension() == ".safetensors") return false;
  if (relative.has_parent_path()) return true;
  return name != "model.safetensors.index.json" && name != "config.json" && name != kManifestName &&
         !(name.starts_with("README") && name.ends_with(".md"));
}

base::Status copy_whole(const fs::path& from, const fs::path& to) {
  const base::InputFile input = TRY(base::InputFile::open(from));
  base::OutputFile output = TRY(base::OutputFile::create(to));
  std::vector<std::byte> piece(std::min<uint64_t>(kPieceBytes, input.size_bytes()));
  for (uint64_t first = 0; first < input.size_bytes(); first += piece.size()) {
    const uint64_t count = std::min<uint64_t>(piece.size(), input.size_bytes() - first);
    const std::span<std::byte> bytes(piece.data(), count);
    TRY(input.read_at(first, bytes));
    TRY(output.write(bytes));
  }
  return output.finish();
}

}  // namespace

base::Result<std::vector<SideFile>> list_side_files(const fs::path& directory) {
  std::vector<SideFile> files;
  std::error_code code;
  fs::recursive_directory_iterator entries(directory, code);
  for (; !code && entries != fs::recursive_directory_iterator(); entries.increment(code)) {
    const fs::path relative = entries->path().lexically_relative(directory);
    std::error_code ignored;  // of an entry that went away or a link that leads nowhere
    if (relative.filename().string().starts_with('.')) {
      entries.disable_recursion_pending();
    } else if (entries->is_regular_file(ignored) && is_side_file(relative)) {
      files.push_back({.name = relative, .size_bytes = entries->file_size(ignored)});
    }
  }
  if (code) return base::error("{}: cannot be listed: {}", directory.string(), code.message());
  std::ranges::sort(files, {}, &SideFile::name);
  return files;
}

base::Status copy_side_files(const std::vector<SideFile>& files, const fs::path& from,
                             const fs::path& to) {
  for (const SideFile& file : files) {
    const fs::path target = to / file.name;
    static_cast<void>(TRY(base::create_directories(target.parent_path())));
    TRY(copy_whole(from / file.name, target));
  }
  return {};
}

}  // namespace ingot::quantize
