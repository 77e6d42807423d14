#include "quantize/source_files.h"

#include <cerrno>
#include <cstring>
#include <set>

#include <sys/stat.h>

namespace ingot::quantize {
namespace {

int64_t nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + int64_t{time.tv_nsec};
}

base::Result<SourceFile> look_at(const base::InputFile& file) {
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) {
    return base::error("{}: cannot be looked at: {}", file.path().string(), std::strerror(errno));
  }
  return SourceFile{.name = file.path().filename().string(),
                    .size_bytes = static_cast<uint64_t>(status.st_size),
                    .modified_ns = nanoseconds(status.st_mtim),
                    .changed_ns = nanoseconds(status.st_ctim),
                    .inode = static_cast<int64_t>(status.st_ino)};
}

std::unexpected<base::Error> changed(const base::InputFile& file) {
  return base::error("{}: changed while it was read; start again when nothing writes to the source",
                     file.path().string());
}

}  // namespace

base::Result<std::vector<SourceFile>> look_at_source(const tensor::Checkpoint& checkpoint) {
  std::vector<SourceFile> files;
  for (const base::InputFile& file : checkpoint.files()) {
    files.push_back(TRY(look_at(file)));
    if (files.back().size_bytes != file.size_bytes()) return changed(file);
  }
  return files;
}

base::Status check_unchanged(const tensor::Checkpoint& checkpoint,
                             const std::vector<SourceFile>& before, uint32_t file) {
  const base::InputFile& input = checkpoint.files()[file];
  if (TRY(look_at(input)).is_as_old_as(before[file])) return {};
  return changed(input);
}

std::vector<uint32_t> source_files_of(const PlannedShard& shard) {
  std::set<uint32_t> files;
  for (const PlannedTensor& tensor : shard.tensors) {
    files.insert(tensor.source.data->file);
    if (tensor.source.scales != nullptr) files.insert(tensor.source.scales->file);
  }
  return {files.begin(), files.end()};
}

}  // namespace ingot::quantize
