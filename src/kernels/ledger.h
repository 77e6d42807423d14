#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/target.h"

namespace ingot::kernels {

// How a row of the tuning table decided a choice.
enum class Tuning { kExact, kNear, kHeuristic };

std::string_view name(Tuning tuning);

// Which variant runs one operation on one shape, why, and how much it matters.
struct LedgerEntry {
  std::string operation;  // "linear"
  std::string formats;    // "bf16 x bf16": weight and activation
  std::string shape;      // "[2048, 6144]"
  std::string_view variant = {};
  Target target = Target::kReference;
  Tuning tuning = Tuning::kHeuristic;
  std::string why_not_faster = {};  // empty when nothing faster exists
  int64_t uses = 1;                 // layers (or experts' layers) with this very choice
  double bytes_per_token = 0;       // weight bytes that one token reads through these uses
};

// Every choice of kernels that a model made at load: one row per operation, formats and shape.
class Ledger {
 public:
  // Adds a choice; one equal in all but uses and bytes is counted into its row.
  void add(LedgerEntry entry);

  const std::vector<LedgerEntry>& entries() const { return entries_; }

  // Sum over all entries.
  double bytes_per_token() const;

  // The entry's share of the weight bytes read per token, 0..1.
  double share(const LedgerEntry& entry) const;

  // Share of those bytes that reference kernels read.
  double reference_share() const;

 private:
  std::vector<LedgerEntry> entries_;
};

}  // namespace ingot::kernels
