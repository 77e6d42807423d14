// numpy files: an accepted one holds exactly the values of its shape, and they are its last bytes.

#include <cstdint>
#include <cstring>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "tensor/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A file in memory, under a name that can be opened.
  static const int descriptor = ::memfd_create("npy", MFD_CLOEXEC);
  CHECK(::ftruncate(descriptor, 0) == 0);
  CHECK(::pwrite(descriptor, data, size, 0) == static_cast<ssize_t>(size));

  const auto array = ingot::tensor::read_npy("/proc/self/fd/" + std::to_string(descriptor));
  if (!array) {
    CHECK(array.error().message.starts_with("/proc/self/fd/"), array.error().message);
    CHECK(array.error().message.find('\n') == std::string::npos, array.error().message);
    return 0;
  }
  const auto elements = array->shape.num_elements();
  CHECK(elements.has_value() && array->values.size() == static_cast<uint64_t>(*elements));
  const size_t data_bytes = array->values.size() * sizeof(float);
  CHECK(data_bytes <= size);
  if (data_bytes > 0) {
    CHECK(std::memcmp(array->values.data(), data + size - data_bytes, data_bytes) == 0);
  }
  return 0;
}
