#include "base/directory_lock.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/log.h"

namespace ingot::base {

Result<DirectoryLock> DirectoryLock::acquire(const std::filesystem::path& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return error("{}: cannot open: {}", directory.string(), std::strerror(errno));
  DirectoryLock lock(descriptor);
  int status = 0;
  do {
    status = ::flock(descriptor, LOCK_EX | LOCK_NB);
  } while (status != 0 && errno == EINTR);
  if (status == 0) return lock;
  if (errno == EWOULDBLOCK) {
    return error("{}: another process writes here; wait until it has ended", directory.string());
  }
  log_warning(fmt::format("{}: cannot be locked here ({}); see to it that no second run uses it",
                          directory.string(), std::strerror(errno)));
  return lock;
}

DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace ingot::base
