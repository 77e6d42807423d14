// The parser of a model's output: the events do not depend on how the output was cut, and the
// arguments of every finished call are a JSON object.
//
// The first byte chooses the options, the second the size of the pieces.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "text/output_parser.h"

namespace {

using ingot::text::MarkerSource;
using ingot::text::OutputEvent;
using ingot::text::OutputParser;
using ingot::text::OutputParserOptions;
using Events = std::vector<OutputEvent>;
using Kind = OutputEvent::Kind;

void append(Events& all, const Events& more) {
  for (const OutputEvent& event : more) {
    const bool piece = event.kind != Kind::kToolCallBegin && event.kind != Kind::kToolCallEnd;
    if (piece && !all.empty() && all.back().kind == event.kind) {
      all.back().text += event.text;
    } else {
      all.push_back(event);
    }
  }
}

Events parse(std::string_view output, const OutputParserOptions& options, size_t piece_size) {
  OutputParser parser(options);
  Events events;
  for (size_t at = 0; at < output.size(); at += piece_size) {
    append(events, parser.push_text(output.substr(at, piece_size)));
  }
  append(events, parser.finish());
  return events;
}

void check_arguments(const Events& events) {
  std::string arguments;
  for (const OutputEvent& event : events) {
    if (event.kind == Kind::kToolCallBegin) arguments.clear();
    if (event.kind == Kind::kToolCallArguments) arguments += event.text;
    if (event.kind != Kind::kToolCallEnd) continue;
    const auto parsed = ingot::base::parse_json(arguments, "arguments");
    // A value may be as deep as the reader's limit, and then the object is one deeper.
    CHECK(parsed ? parsed->is_object() : parsed.error().message.contains("too deep"), arguments);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view output(reinterpret_cast<const char*>(data + 2), size - 2);
  // JSON is Unicode; the detokenizer gives nothing else.
  for (const char c : output) {
    if (static_cast<unsigned char>(c) >= 0x80) return 0;
  }
  OutputParserOptions options{.markers = MarkerSource::kText,
                              .starts_in_reasoning = (data[0] & 1) != 0,
                              .tool_calls = (data[0] & 2) != 0};
  options.tools = {{.name = "find",
                    .arguments = {{.name = "q", .types = {.string = true}},
                                  {.name = "n", .types = {.number = true}},
                                  {.name = "x", .types = {.string = true, .null = true}}}}};
  const Events whole = parse(output, options, output.size() + 1);
  CHECK(parse(output, options, 1 + data[1] % 16) == whole);
  check_arguments(whole);
  return 0;
}
