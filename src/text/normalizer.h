#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ingot::text {

enum class Normalization : uint8_t { kNone, kNfc, kNfkc };

// The Unicode normal form of a text as Hugging Face's tokenizers make it. Their tables are those of
// Unicode 9: what was assigned later stays as it is, as the models saw it. Linear in time.
// REQUIRES: text is UTF-8; form is not kNone.
std::string normalized(std::string_view text, Normalization form);

}  // namespace ingot::text
