#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/result.h"

namespace ingot::quantize {

// A file of a model that holds no weights: tokenizer, chat template, code, licence.
struct SideFile {
  std::filesystem::path name;  // relative to the model's directory
  uint64_t size_bytes = 0;
};

// The side files of a model, sorted by name: every regular file, in folders too, but safetensors,
// the index, config.json, README*.md, our own manifest, and what begins with a dot. A link to a
// file counts as the file, as in caches of downloads; a link to a folder is left out.
// Errors: a folder that cannot be read.
base::Result<std::vector<SideFile>> list_side_files(const std::filesystem::path& directory);

// Copies them, each whole or not at all. Errors: unreadable, a full disk.
base::Status copy_side_files(const std::vector<SideFile>& files, const std::filesystem::path& from,
                             const std::filesystem::path& to);

}  // namespace ingot::quantize
