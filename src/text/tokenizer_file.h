#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/added_tokens.h"
#include "text/byte_pair_merges.h"
#include "text/normalizer.h"

namespace ingot::text {

struct VocabularyEntry {
  std::string content;  // as the file writes it, see byte_level.h
  int32_t id = 0;
};

// What a tokenizer.json says, of byte-level byte-pair encoding as GLM and DeepSeek publish it.
struct TokenizerFile {
  Normalization normalization = Normalization::kNone;
  std::vector<std::string> split_patterns;  // applied one after the other, matches stand alone
  bool ignore_merges = false;               // a word of the vocabulary is its token
  std::vector<VocabularyEntry> vocabulary;  // contents and ids are distinct
  std::vector<MergeRule> merges;            // by rank
  std::vector<AddedToken> added_tokens;     // contents and ids are distinct, by id
  std::vector<int32_t> prefix_ids;          // what a post-processor puts before every text
};

// Reads a tokenizer.json. Every field is followed or refused: an unknown one, or a value that asks
// for something else than this, would otherwise give tokens that the model was not trained on.
// Errors: those, and a file that contradicts itself (an id or content given twice, a merge of
// tokens that the vocabulary does not have). They begin with `source` and name the field.
base::Result<TokenizerFile> parse_tokenizer_file(std::string_view json, std::string_view source);

}  // namespace ingot::text
