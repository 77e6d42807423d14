#include "kernels/ledger.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "base/grouped.h"
#include "base/progress.h"

namespace ingot::kernels {

std::string_view name(Tuning tuning) {
  switch (tuning) {
    case Tuning::kExact:
      return "exact";
    case Tuning::kNear:
      return "near";
    case Tuning::kHeuristic:
      return "heuristic";
  }
  return "";
}

void Ledger::add(LedgerEntry entry) {
  const auto same = std::find_if(entries_.begin(), entries_.end(), [&](const LedgerEntry& other) {
    return other.operation == entry.operation && other.formats == entry.formats &&
           other.shape == entry.shape && other.variant == entry.variant;
  });
  if (same == entries_.end()) {
    entries_.push_back(std::move(entry));
    return;
  }
  same->uses += entry.uses;
  same->bytes_per_token += entry.bytes_per_token;
  same->macs_per_token += entry.macs_per_token;
}

double Ledger::bytes_per_token() const {
  double bytes = 0;
  for (const LedgerEntry& entry : entries_) bytes += entry.bytes_per_token;
  return bytes;
}

double Ledger::macs_per_token() const {
  double macs = 0;
  for (const LedgerEntry& entry : entries_) macs += entry.macs_per_token;
  return macs;
}

double Ledger::share(const LedgerEntry& entry) const {
  const double total = bytes_per_token();
  return total == 0 ? 0 : entry.bytes_per_token / total;
}

double Ledger::mac_share(const LedgerEntry& entry) const {
  const double total = macs_per_token();
  return total == 0 ? 0 : entry.macs_per_token / total;
}

std::vector<const LedgerEntry*> Ledger::slow_entries() const {
  const auto larger_share = [&](const LedgerEntry& entry) {
    return std::max(share(entry), mac_share(entry));
  };
  std::vector<const LedgerEntry*> slow;
  for (const LedgerEntry& entry : entries_) {
    if (entry.target == Target::kReference && larger_share(entry) > kHotShare) {
      slow.push_back(&entry);
    }
  }
  std::ranges::stable_sort(slow, std::greater(),
                           [&](const LedgerEntry* entry) { return larger_share(*entry); });
  return slow;
}

std::string Ledger::describe_slow_entries() const {
  const auto slow = slow_entries();
  if (slow.empty()) return {};
  const LedgerEntry& first = *slow.front();
  std::string line = fmt::format(
      "{}, {}, {} runs on a reference kernel ({:.1f}% of a token's bytes, {:.1f}% of its "
      "multiplications{}{})",
      first.operation, first.formats, first.shape, 100 * share(first), 100 * mac_share(first),
      first.why_not_faster.empty() ? "" : "; ", first.why_not_faster);
  if (slow.size() > 1) line += fmt::format(", and {} more", slow.size() - 1);
  return line;
}

double Ledger::reference_share() const {
  double share_sum = 0;
  for (const LedgerEntry& entry : entries_) {
    if (entry.target == Target::kReference) share_sum += share(entry);
  }
  return share_sum;
}

std::string describe(const Ledger& ledger) {
  std::string text =
      fmt::format("  {:<13} {:<20} {:<30} {:>5} {:>7} {:>7}  {:<9} {:<9} {}\n", "operation",
                  "formats", "shape", "uses", "bytes", "macs", "tuning", "target", "kernel");
  for (const LedgerEntry& entry : ledger.entries()) {
    text += fmt::format("  {:<13} {:<20} {:<30} {:>5} {:>6.1f}% {:>6.1f}%  {:<9} {:<9} {}{}\n",
                        entry.operation, entry.formats, entry.shape, entry.uses,
                        100 * ledger.share(entry), 100 * ledger.mac_share(entry),
                        name(entry.tuning), name(entry.target), entry.variant,
                        entry.why_not_faster.empty() ? "" : "  (" + entry.why_not_faster + ")");
  }
  text += fmt::format(
      "  {:.1f}% of the {} read per token are read by reference kernels; macs are counted with {} "
      "keys\n",
      100 * ledger.reference_share(),
      base::format_bytes(static_cast<uint64_t>(ledger.bytes_per_token())),
      base::grouped(kLedgerKeys));
  return text;
}

}  // namespace ingot::kernels
