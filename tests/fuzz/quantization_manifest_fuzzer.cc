// ingot_quantization.json: what is accepted is the same after it was written and read again, and
// its tables can be printed; what is refused is refused in one line that names the file.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "quantize/quantization_manifest.h"

namespace {

using ingot::quantize::QuantizationManifest;

std::string written(const QuantizationManifest& manifest) {
  ingot::base::json::object document{{"schema", "ingot.quantization/1"}};
  add_to(document, manifest);
  return ingot::base::pretty_json(document);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto manifest = ingot::quantize::parse_manifest(text, "manifest.json");
  if (!manifest) {
    const std::string& message = manifest.error().message;
    CHECK(message.starts_with("manifest.json"), message);
    CHECK(std::ranges::none_of(message, [](char c) { return static_cast<uint8_t>(c) < 0x20; }),
          message);
    return 0;
  }
  const std::string first = written(*manifest);
  const auto again = ingot::quantize::parse_manifest(first, "manifest.json");
  CHECK(again.has_value(), again ? "" : again.error().message);
  CHECK(written(*again) == first, first);
  CHECK(difference(again->identity, manifest->identity).empty());
  const auto report = manifest->report();
  CHECK(report.complete == (manifest->shards.size() == manifest->num_shards));
  CHECK(!describe(report).empty());
  return 0;
}
