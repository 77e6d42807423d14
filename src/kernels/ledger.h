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
  double macs_per_token = 0;        // multiply-accumulates for it, with kLedgerKeys to attend to
};

// Keys of a token in the ledger's count of multiply-accumulates.
inline constexpr int64_t kLedgerKeys = 2048;

// Share of a token's bytes or multiply-accumulates above which a use is hot.
inline constexpr double kHotShare = 0.01;

// Every choice of kernels that a model made at load: one row per operation, formats and shape.
class Ledger {
 public:
  // Adds a choice; one equal in all but uses and bytes is counted into its row.
  void add(LedgerEntry entry);

  const std::vector<LedgerEntry>& entries() const { return entries_; }

  // Sums over all entries.
  double bytes_per_token() const;
  double macs_per_token() const;

  // The entry's share of the weight bytes read per token, and of the multiply-accumulates; 0..1.
  double share(const LedgerEntry& entry) const;
  double mac_share(const LedgerEntry& entry) const;

  // The hot uses that run on a reference kernel, the largest share first.
  std::vector<const LedgerEntry*> slow_entries() const;

  // The same in a line, the first one with operation, formats, shape, shares and reason: "moe,
  // mxfp4 x int8, 64 x [1536, 2048], top 4 runs on a reference kernel (...), and 2 more". Empty
  // when there is none.
  std::string describe_slow_entries() const;

  // Share of those bytes that reference kernels read.
  double reference_share() const;

 private:
  std::vector<LedgerEntry> entries_;
};

// The table that people read, two spaces in: a row an entry and a line of sums.
std::string describe(const Ledger& ledger);

}  // namespace ingot::kernels
