// Ids, two bytes each: the pieces of text that they give one by one are whole characters, and
// together what a lossy decoder makes of all their bytes.

#include <cstdint>
#include <string>

#include "base/check.h"
#include "text/detokenizer.h"
#include "text/tokenizer_fixture.h"
#include "text/utf8.h"

using ingot::text::Detokenizer;
using ingot::text::SpecialTokens;
using ingot::text::Tokenizer;
using ingot::text::Utf8Kind;

namespace {

std::string lossy(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const ingot::text::Utf8Unit unit = ingot::text::first_utf8_unit(bytes);
    const bool valid = unit.kind == Utf8Kind::kCharacter;
    text += valid ? bytes.substr(0, unit.size_bytes) : ingot::text::kReplacementCharacter;
    bytes.remove_prefix(unit.size_bytes);
  }
  return text;
}

void run(const Tokenizer& tokenizer, const uint8_t* data, size_t size, SpecialTokens special) {
  Detokenizer detokenizer(tokenizer, special);
  std::string bytes;
  std::string text;
  for (size_t i = 0; i + 1 < size; i += 2) {
    const int32_t id = data[i] | (data[i + 1] & 1) << 8;
    const auto piece = detokenizer.push(id);
    CHECK(piece.has_value() == tokenizer.has_token(id));
    if (!piece) continue;
    CHECK(!ingot::text::find_invalid_utf8(piece->text));
    CHECK(piece->added_token == tokenizer.added_token(id));
    CHECK(piece->added_token_begin <= piece->text.size());
    text += piece->text;
    const bool skipped = special == SpecialTokens::kSkip && piece->added_token != nullptr &&
                         piece->added_token->special;
    if (!skipped) bytes += tokenizer.token_bytes(id);
  }
  text += detokenizer.finish();
  CHECK(text == lossy(bytes), text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Tokenizer tokenizer = ingot::text::tokenizer_of(ingot::text::small_tokenizer_json());
  run(tokenizer, data, size, SpecialTokens::kKeep);
  run(tokenizer, data, size, SpecialTokens::kSkip);
  return 0;
}
