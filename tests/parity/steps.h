#pragma once

#include <cstdint>
#include <vector>

#include "golden_model.h"

// Ways to feed the same sequences to a model in different steps.
namespace ingot::parity {

// Tokens of a sequence that are enough to go far beyond index_topk in every case.
inline constexpr size_t kLongest = 70;

// The sequences of a case, each cut at `longest` tokens.
std::vector<Ids> ids_of(const GoldenCase& golden, size_t longest = SIZE_MAX);

// The case's sequences and two more, so that there always is company.
std::vector<Ids> with_company(const GoldenCase& golden, size_t vocabulary);

// A step for every `size` tokens of every sequence, one sequence after another.
std::vector<Step> in_chunks(const std::vector<Ids>& sequences, size_t size);

// Steps in which several sequences advance by random amounts: prefill and decode mixed.
std::vector<Step> in_company(const std::vector<Ids>& sequences, uint64_t seed);

// Equality, not tolerance: how tokens are divided into steps changes no bit.
void expect_steps_do_not_matter(GoldenModel& model, const GoldenCase& golden);

}  // namespace ingot::parity
