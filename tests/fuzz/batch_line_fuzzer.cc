// Lines of a batch file: each becomes a request, or one line of output that says why not.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "server/batch_line.h"

namespace {

namespace json = ingot::base::json;

// A line of the output as JSON.
json::object parse_output(std::string_view line) {
  CHECK(line.ends_with('\n') && line.find('\n') == line.size() - 1, line);
  const auto document = ingot::base::parse_json(line, "output");
  CHECK(document.has_value(), line);
  return document->as_object();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  const auto request = ingot::server::parse_batch_line(line);
  if (!request) {
    CHECK(!request.error().code.empty() && !request.error().message.empty());
    const json::object output = parse_output(ingot::server::batch_error_line("b", request.error()));
    CHECK(output.at("response").is_null() && output.at("error").is_object());
    return 0;
  }
  CHECK(!request->custom_id.empty());
  if (request->request) return 0;
  const json::object output = parse_output(
      ingot::server::batch_answer_line("b", request->custom_id, "r", request->request.error()));
  CHECK(output.at("custom_id").as_string() == request->custom_id);
  CHECK(output.at("response").at("status_code") == 400);
  return 0;
}
