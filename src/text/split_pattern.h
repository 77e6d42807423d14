#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/prompt_text.h"

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;

namespace ingot::text {

// A regular expression that cuts text into words, as tokenizer files have it. It was written for
// Oniguruma with the Unicode version of Hugging Face's tokenizers and is run by PCRE2; what the two
// engines read differently is refused. Immutable, movable.
class SplitPattern {
 public:
  // What matching needs besides the pattern: one thread at a time.
  class Workspace;

  // Errors: syntax that is not in the subset that both engines read alike, a pattern that can match
  // nothing at all. They begin with `source`.
  static base::Result<SplitPattern> compile(std::string_view pattern, std::string_view source);

  // The first match that begins at `from` or later; none when there is none.
  // `subject` has been through with_stand_ins(). A match depends on `subject` alone: it may look
  // before `from`, but not beyond the end.
  // REQUIRES: subject is UTF-8; from <= subject.size() and between characters.
  // Errors: matching took more steps than are reasonable.
  base::Result<std::optional<TextSpan>> find(std::string_view subject, size_t from,
                                             Workspace& workspace) const;

 private:
  struct Free {
    void operator()(pcre2_real_code_8* code) const;
  };

  SplitPattern(pcre2_real_code_8* code, std::string_view pattern)
      : code_(code), pattern_(pattern) {}

  std::unique_ptr<pcre2_real_code_8, Free> code_;
  std::string pattern_;
};

class SplitPattern::Workspace {
 public:
  Workspace();

 private:
  friend class SplitPattern;

  struct Free {
    void operator()(pcre2_real_match_data_8* data) const;
    void operator()(pcre2_real_match_context_8* context) const;
  };

  std::unique_ptr<pcre2_real_match_data_8, Free> data_;
  std::unique_ptr<pcre2_real_match_context_8, Free> context_;
};

// PCRE2's Unicode tables are older than Hugging Face's, and its \s has one character more. So a
// text is matched with a stand-in for each such character: one of the same size, whose class in
// PCRE2's tables is what the character has in the newer ones. None if there is nothing to replace.
// REQUIRES: text is UTF-8.
std::optional<std::string> with_stand_ins(std::string_view text);

}  // namespace ingot::text
