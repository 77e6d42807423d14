#include "text/tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/mapped_file.h"
#include "text/byte_level.h"
#include "text/detokenizer.h"
#include "text/utf8.h"

namespace ingot::text {
namespace {

constexpr uint64_t kFileBytesMax = 1ULL << 30;
constexpr size_t kTextBytesMax = (1ULL << 31) - 1;
constexpr int32_t kNoToken = -1;

std::vector<AddedToken> tokens_for_finder(const TokenizerFile& file, bool normalized) {
  std::vector<AddedToken> tokens;
  std::ranges::copy_if(file.added_tokens, std::back_inserter(tokens),
                       [&](const AddedToken& token) { return token.normalized == normalized; });
  return tokens;
}

const AddedToken* find_added(std::span<const AddedToken> tokens, int32_t id) {
  const auto token = std::ranges::lower_bound(tokens, id, {}, &AddedToken::id);
  return token != tokens.end() && token->id == id ? &*token : nullptr;
}

// What a token is in decoded text: Hugging Face's decoder reads the content of an added token as
// byte-level too, and takes it literally where it is not.
std::string decoded_bytes(std::string_view content) {
  return byte_level_bytes(content).value_or(std::string(content));
}

std::vector<Vocabulary::Token> all_tokens(const TokenizerFile& file) {
  std::vector<Vocabulary::Token> tokens;
  tokens.reserve(file.vocabulary.size() + file.added_tokens.size());
  for (const VocabularyEntry& entry : file.vocabulary) {
    if (find_added(file.added_tokens, entry.id) != nullptr) continue;
    tokens.push_back({entry.id, decoded_bytes(entry.content)});
  }
  for (const AddedToken& token : file.added_tokens) {
    tokens.push_back({token.id, decoded_bytes(token.content)});
  }
  return tokens;
}

// Merges into an added token are left out: its id comes from recognising it alone. Where markers
// are recognised, no text is left that has its content.
std::vector<MergeRule> merges_of_text(const TokenizerFile& file) {
  std::vector<MergeRule> rules = file.merges;
  std::erase_if(rules, [&](const MergeRule& rule) {
    return find_added(file.added_tokens, rule.merged) != nullptr;
  });
  return rules;
}

bool is_byte_of_utf8(int byte) { return byte < 0xC0 || (byte > 0xC1 && byte < 0xF5); }

base::Result<std::array<int32_t, 256>> find_byte_tokens(const TokenizerFile& file,
                                                        std::string_view source) {
  std::array<int32_t, 256> tokens{};
  tokens.fill(kNoToken);
  for (const VocabularyEntry& entry : file.vocabulary) {
    const auto bytes = byte_level_bytes(entry.content);
    if (!bytes || bytes->size() != 1) continue;
    const auto byte = static_cast<uint8_t>(bytes->front());
    if (find_added(file.added_tokens, entry.id) != nullptr) {
      return base::error(
          "{}: added token {:?} is also the only token of a byte, which then no "
          "text could have; remove it from added_tokens",
          source, entry.content);
    }
    tokens[byte] = entry.id;
  }
  for (int byte = 0; byte < 256; ++byte) {
    if (!is_byte_of_utf8(byte) || tokens[static_cast<size_t>(byte)] != kNoToken) continue;
    std::string content;
    append_utf8(content, byte_level_character(static_cast<uint8_t>(byte)));
    return base::error(
        "{}: model.vocab has no token {:?} for byte 0x{:02X}, so some text has no "
        "tokens; this is not a byte-level vocabulary",
        source, content, byte);
  }
  return tokens;
}

// The parts of a text that are not data.
std::vector<TextSpan> outside_of(std::span<const TextSpan> data, size_t size) {
  std::vector<TextSpan> outside;
  size_t begin = 0;
  for (const TextSpan& span : data) {
    if (begin < span.begin) outside.push_back({begin, span.begin});
    begin = span.end;
  }
  if (begin < size) outside.push_back({begin, size});
  return outside;
}

// The parts of `spans` in [begin, end), counted from begin.
std::vector<TextSpan> clipped(std::span<const TextSpan> spans, size_t begin, size_t end) {
  std::vector<TextSpan> inside;
  auto span = std::ranges::upper_bound(spans, begin, {}, &TextSpan::end);
  for (; span != spans.end() && span->begin < end; ++span) {
    inside.push_back({std::max(span->begin, begin) - begin, std::min(span->end, end) - begin});
  }
  return inside;
}

// Calls marker(id) and between(begin, end) for the markers of a text and what lies between them.
template <typename Marker, typename Between>
base::Status for_each_part(std::span<const AddedTokenMatch> matches, size_t size, Marker marker,
                           Between between) {
  size_t done = 0;
  for (const AddedTokenMatch& match : matches) {
    if (done < match.begin) TRY(between(done, match.begin));
    marker(match.id);
    done = match.end;
  }
  if (done < size) TRY(between(done, size));
  return {};
}

}  // namespace

// One call of encode(): what it has so far, and memory that its words share.
struct Tokenizer::Encoding {
  std::vector<int32_t> ids;
  std::string_view text;     // between two markers, normalized
  std::string_view subject;  // the same with stand-ins, for the patterns
  std::vector<SplitPattern::Workspace> split_workspaces;
  BytePairMerges::Workspace merge_workspace;
};

Tokenizer::Tokenizer(TokenizerFile file, std::vector<SplitPattern> splits,
                     const std::array<int32_t, 256>& byte_tokens)
    : normalization_(file.normalization),
      first_finder_(tokens_for_finder(file, false)),
      normalized_finder_(tokens_for_finder(file, true)),
      splits_(std::move(splits)),
      vocabulary_(all_tokens(file)),
      merges_(merges_of_text(file), byte_tokens) {
  mark_words(file);
  prefix_ids_ = std::move(file.prefix_ids);
  added_tokens_ = std::move(file.added_tokens);
}

// Sorts out what each token of the vocabulary is to text. Words that are one token need no merging:
// with ignore_merges all of the vocabulary by definition, else those that their merges lead to,
// found here once and for all.
void Tokenizer::mark_words(const TokenizerFile& file) {
  BytePairMerges::Workspace workspace;
  std::vector<int32_t> ids;
  for (const VocabularyEntry& entry : file.vocabulary) {
    if (find_added(file.added_tokens, entry.id) != nullptr) continue;
    const std::string_view bytes = vocabulary_.bytes(entry.id);
    // A word is made of whole characters.
    if (!byte_level_bytes(entry.content) || bytes.empty() || find_invalid_utf8(bytes)) continue;
    bool is_word = file.ignore_merges;
    if (!is_word) {
      ids.clear();
      merges_.encode(bytes, workspace, ids);
      is_word = ids.size() == 1 && ids.front() == entry.id;
    }
    if (is_word) vocabulary_.mark_word(entry.id);
  }
}

base::Result<Tokenizer> Tokenizer::load(const std::filesystem::path& file) {
  const std::string json = TRY(base::read_text_file(file, kFileBytesMax));
  return parse(json, file.string());
}

base::Result<Tokenizer> Tokenizer::parse(std::string_view json, std::string_view source) {
  TokenizerFile file = TRY(parse_tokenizer_file(json, source));
  const std::array<int32_t, 256> byte_tokens = TRY(find_byte_tokens(file, source));
  std::vector<SplitPattern> splits;
  for (const std::string& pattern : file.split_patterns) {
    splits.push_back(TRY(SplitPattern::compile(pattern, source)));
  }
  return Tokenizer(std::move(file), std::move(splits), byte_tokens);
}

base::Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text,
                                                     ControlTokens control) const {
  const TextSpan all{0, text.size()};
  const bool recognise = control == ControlTokens::kRecognise && !text.empty();
  return encode_allowing(text, std::span(&all, recognise ? 1 : 0));
}

base::Result<std::vector<int32_t>> Tokenizer::encode(const PromptText& prompt) const {
  return encode_allowing(prompt.text, outside_of(prompt.data, prompt.text.size()));
}

// Recognises added tokens inside of the spans of `markers`.
base::Result<std::vector<int32_t>> Tokenizer::encode_allowing(
    std::string_view text, std::span<const TextSpan> markers) const {
  if (text.size() > kTextBytesMax) {
    return base::error("the text has {} bytes, and a tokenizer takes {}", text.size(),
                       kTextBytesMax);
  }
  if (const auto invalid = find_invalid_utf8(text)) {
    return base::error("byte {} of the text is not UTF-8; convert the text", *invalid);
  }
  Encoding encoding;
  encoding.split_workspaces.resize(splits_.size());
  const auto marker = [&](int32_t id) { encoding.ids.push_back(id); };
  const auto between = [&](size_t begin, size_t end) {
    const std::string_view part = text.substr(begin, end - begin);
    return for_each_part(normalized_finder_.find(part, clipped(markers, begin, end)), part.size(),
                         marker, [&](size_t from, size_t to) {
                           return encode_between_markers(part.substr(from, to - from), encoding);
                         });
  };
  TRY(for_each_part(first_finder_.find(text, markers), text.size(), marker, between));
  return std::move(encoding.ids);
}

base::Status Tokenizer::encode_between_markers(std::string_view text, Encoding& encoding) const {
  std::string normal_form;
  if (normalization_ != Normalization::kNone) {
    normal_form = normalized(text, normalization_);
    text = normal_form;
  }
  const std::optional<std::string> subject = with_stand_ins(text);
  encoding.text = text;
  encoding.subject = subject ? std::string_view(*subject) : text;
  return encode_split({0, text.size()}, 0, encoding);
}

// Cuts a part by the patterns from num_splits_done on: each match stands alone, and so does what
// lies between. A pattern sees only its part.
base::Status Tokenizer::encode_split(TextSpan span, size_t num_splits_done,
                                     Encoding& encoding) const {
  if (num_splits_done == splits_.size()) {
    encode_word(encoding.text.substr(span.begin, span.end - span.begin), encoding);
    return {};
  }
  const std::string_view subject = encoding.subject.substr(span.begin, span.end - span.begin);
  const auto cut = [&](size_t begin, size_t end) -> base::Status {
    if (begin == end) return {};
    return encode_split({span.begin + begin, span.begin + end}, num_splits_done + 1, encoding);
  };
  size_t done = 0;
  while (done < subject.size()) {
    const auto match = TRY(
        splits_[num_splits_done].find(subject, done, encoding.split_workspaces[num_splits_done]));
    if (!match) break;
    TRY(cut(done, match->begin));
    TRY(cut(match->begin, match->end));
    done = match->end;
  }
  return cut(done, subject.size());
}

void Tokenizer::encode_word(std::string_view word, Encoding& encoding) const {
  if (const std::optional<int32_t> id = vocabulary_.find_word(word)) {
    encoding.ids.push_back(*id);
  } else {
    merges_.encode(word, encoding.merge_workspace, encoding.ids);
  }
}

base::Result<std::string> Tokenizer::decode(std::span<const int32_t> ids,
                                            SpecialTokens special) const {
  Detokenizer detokenizer(*this, special);
  std::string text;
  for (const int32_t id : ids) text += TRY(detokenizer.push(id))
  .text;
  return text + detokenizer.finish();
}

bool Tokenizer::has_token(int32_t id) const {
  return id >= 0 && id < vocabulary_.size() && vocabulary_.contains(id);
}

const AddedToken* Tokenizer::added_token(int32_t id) const { return find_added(added_tokens_, id); }

const AddedToken* Tokenizer::added_token(std::string_view content) const {
  const auto token = std::ranges::find(added_tokens_, content, &AddedToken::content);
  return token == added_tokens_.end() ? nullptr : &*token;
}

}  // namespace ingot::text
