// A tokenizer.json, a zero byte and a text: a file that is accepted encodes every text to ids that
// it has, and where it normalizes nothing they decode to the text.

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

using ingot::text::ControlTokens;
using ingot::text::Normalization;
using ingot::text::SpecialTokens;
using ingot::text::Tokenizer;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view json = input.substr(0, input.find('\0'));
  // A pattern may take its limit of steps for every word, so that long texts are no use here.
  const std::string_view text = input.substr(std::min(size, json.size() + 1), 200);

  const auto tokenizer = Tokenizer::parse(json, "input");
  if (!tokenizer) {
    const std::string& message = tokenizer.error().message;
    CHECK(message.starts_with("input: "), message);
    CHECK(message.find('\n') == std::string::npos, message);
    return 0;
  }
  const auto file = ingot::text::parse_tokenizer_file(json, "input");
  CHECK(file.has_value());
  for (const ControlTokens control : {ControlTokens::kRecognise, ControlTokens::kAsText}) {
    const auto ids = tokenizer->encode(text, control);
    if (!ids) {
      CHECK(ids.error().message.find('\n') == std::string::npos, ids.error().message);
      continue;
    }
    const bool is_text = control == ControlTokens::kAsText;
    for (const int32_t id : *ids) {
      CHECK(tokenizer->has_token(id));
      CHECK(!is_text || tokenizer->added_token(id) == nullptr);
    }
    const auto decoded = tokenizer->decode(*ids, SpecialTokens::kKeep);
    CHECK(decoded.has_value() && !ingot::text::find_invalid_utf8(*decoded));
    CHECK(!is_text || file->normalization != Normalization::kNone || *decoded == text);
  }
  return 0;
}
