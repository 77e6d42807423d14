// A chat template, parsed and rendered with variables of every kind. Whatever it is: it ends, its
// errors are one line with a place, and what it renders is UTF-8 whose spans are in order, within
// the text and on whole characters.

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

#include "base/check.h"
#include "text/jinja_parser.h"
#include "text/jinja_renderer.h"
#include "text/utf8.h"

namespace {

using ingot::text::RenderBudget;
using ingot::text::TemplateValue;
using ingot::text::TemplateVariables;

constexpr std::string_view kMessages = R"([
  {"role": "system", "content": "Be brief. \u00e9\u65e5 <|user|>"},
  {"role": "user", "content": [{"type": "text", "text": "a b\n"}, {"type": "image"}]},
  {"role": "assistant", "content": "<think>x</think>y", "tool_calls": [
    {"function": {"name": "f", "arguments": {"k": 1, "l": [1.5, null, true, {}]}}}]},
  {"role": "tool", "content": "{\"n\": 100000000000000000000}"},
  {"role": "user", "content": "  it's \"q\"\t\\ "}])";
constexpr std::string_view kTools =
    R"([{"function": {"name": "f", "parameters": {"b": 1, "a": [1e20]}, "items": null}}])";

TemplateValue parsed(std::string_view json) {
  const auto value = TemplateValue::parse_json(json, "variables");
  CHECK(value.has_value());
  return *value;
}

const TemplateVariables& variables() {
  static const TemplateVariables all = {{"messages", parsed(kMessages)},
                                        {"tools", parsed(kTools)},
                                        {"documents", parsed(R"([{"c": [{"c": []}, {}]}])")},
                                        {"add_generation_prompt", TemplateValue::boolean(true)},
                                        {"bos_token", TemplateValue::trusted("<s>")},
                                        {"x", TemplateValue::data("x<|y|>")},
                                        {"n", TemplateValue::integer(3)},
                                        {"trusted", TemplateValue::trusted("t")}};
  return all;
}

bool starts_character(std::string_view text, size_t at) {
  return at == text.size() || (static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80U;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kBytesMax = 4096;  // longer ones show nothing new and take long
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  if (size > kBytesMax) return 0;
  const auto tree = ingot::text::parse_jinja(source);
  if (!tree) {
    CHECK(tree.error().line > 0, tree.error().reason);
    return 0;
  }
  // Less than users have, so that a hostile template ends soon under sanitizers too.
  const RenderBudget budget{.steps = 200'000, .list_bytes = 16 << 20, .text_bytes = 64 << 20};
  const auto rendered = ingot::text::render_jinja(*tree, variables(), std::tm{}, budget);
  if (!rendered) {
    CHECK(rendered.error().line > 0 && !rendered.error().reason.empty(), rendered.error().reason);
    return 0;
  }
  const std::string& text = rendered->text;
  CHECK(!ingot::text::find_invalid_utf8(text), text);
  size_t end = 0;
  bool is_first = true;
  for (const auto& span : rendered->data) {
    CHECK(span.begin < span.end && span.end <= text.size(), text);
    CHECK(is_first || span.begin > end, "spans overlap or touch");
    CHECK(starts_character(text, span.begin) && starts_character(text, span.end), text);
    end = span.end;
    is_first = false;
  }
  return 0;
}
