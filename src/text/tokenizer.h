#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/added_tokens.h"
#include "text/byte_pair_merges.h"
#include "text/normalizer.h"
#include "text/prompt_text.h"
#include "text/split_pattern.h"
#include "text/tokenizer_file.h"
#include "text/vocabulary.h"

namespace ingot::text {

enum class ControlTokens : uint8_t {
  kRecognise,  // added tokens in the text become their ids, as Hugging Face does it
  kAsText,     // they are ordinary text
};

enum class SpecialTokens : uint8_t {
  kKeep,
  kSkip,  // added tokens that are `special` are left out of decoded text
};

// A byte-level byte-pair tokenizer, as tokenizer.json describes it: text to ids and back, with the
// ids that Hugging Face's tokenizers give. Ids of added tokens come from recognising them and in no
// other way, so that ordinary text cannot become one. Immutable, movable, safe from any thread.
class Tokenizer {
 public:
  // Reads a tokenizer.json. Errors: unreadable, or see parse_tokenizer_file(); a split pattern that
  // cannot be run; a byte of UTF-8 that has no token.
  static base::Result<Tokenizer> load(const std::filesystem::path& file);
  static base::Result<Tokenizer> parse(std::string_view json, std::string_view source);

  // Errors: text that is not UTF-8 (with the byte), of 2 GiB or more, or a split pattern that gave
  // up on it.
  base::Result<std::vector<int32_t>> encode(std::string_view text, ControlTokens control) const;
  // Recognises added tokens where they lie outside of data altogether. Words may reach over the
  // ends of data: a prompt without markers in its data has the ids that its text has as a whole.
  base::Result<std::vector<int32_t>> encode(const PromptText& prompt) const;

  // Bytes that are not UTF-8 become U+FFFD, one for each maximal subpart.
  // Errors: an id that no token has.
  base::Result<std::string> decode(std::span<const int32_t> ids, SpecialTokens special) const;

  // One more than the highest id; some ids below may have no token.
  int32_t vocabulary_size() const { return vocabulary_.size(); }
  bool has_token(int32_t id) const;
  // The bytes that a token stands for in decoded text; empty for an id that no token has.
  // REQUIRES: 0 <= id < vocabulary_size().
  std::string_view token_bytes(int32_t id) const { return vocabulary_.bytes(id); }
  // What the file's post-processor puts before every text. encode() leaves that to the caller: chat
  // templates write it themselves.
  std::span<const int32_t> prefix_ids() const { return prefix_ids_; }

  std::span<const AddedToken> added_tokens() const { return added_tokens_; }  // by id
  // Null if the id is not that of an added token.
  const AddedToken* added_token(int32_t id) const;
  // The added token with this content. Null if there is none.
  const AddedToken* added_token(std::string_view content) const;

 private:
  struct Encoding;

  Tokenizer(TokenizerFile file, std::vector<SplitPattern> splits,
            const std::array<int32_t, 256>& byte_tokens);

  void mark_words(const TokenizerFile& file);
  base::Result<std::vector<int32_t>> encode_allowing(std::string_view text,
                                                     std::span<const TextSpan> markers) const;
  base::Status encode_between_markers(std::string_view text, Encoding& encoding) const;
  base::Status encode_split(TextSpan span, size_t num_splits_done, Encoding& encoding) const;
  void encode_word(std::string_view word, Encoding& encoding) const;

  Normalization normalization_;
  std::vector<AddedToken> added_tokens_;
  AddedTokenFinder first_finder_;       // of added tokens that are not `normalized`
  AddedTokenFinder normalized_finder_;  // of the others, in what the first left
  std::vector<SplitPattern> splits_;
  Vocabulary vocabulary_;
  BytePairMerges merges_;
  std::vector<int32_t> prefix_ids_;
};

}  // namespace ingot::text
