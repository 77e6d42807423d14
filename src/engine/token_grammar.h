#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace ingot::engine {

// A grammar, or whatever else decides token by token what a request may draw.
//
// `allowed` must be a function of the tokens told so far and of nothing else; then what is drawn
// does not depend on what was drafted. Every token of the output is told once and in order, before
// `allowed` is asked for the next; a rejected draft is never told, so no state has to be copied or
// taken back, and a preemption tells nothing again. A stop id is the last that is told: after it
// the grammar is not asked any more, and need not allow anything.
//
// Any member of the team may call them, one at a time; grammars of two requests are called at the
// same time, so they must not change what they share. An exception ends the request as its error.
struct TokenGrammar {
  // The ids that may come next, in TokenMask's words for the vocabulary; no words: all of them.
  // Valid until one of the two is called again. Allowing nothing is the request's error.
  std::function<std::span<const uint32_t>()> allowed = {};
  std::function<void(int32_t id)> tell = {};
};

}  // namespace ingot::engine
