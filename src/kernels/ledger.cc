#include "kernels/ledger.h"

#include <algorithm>

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
}

double Ledger::bytes_per_token() const {
  double bytes = 0;
  for (const LedgerEntry& entry : entries_) bytes += entry.bytes_per_token;
  return bytes;
}

double Ledger::share(const LedgerEntry& entry) const {
  const double total = bytes_per_token();
  return total == 0 ? 0 : entry.bytes_per_token / total;
}

double Ledger::reference_share() const {
  double share_sum = 0;
  for (const LedgerEntry& entry : entries_) {
    if (entry.target == Target::kReference) share_sum += share(entry);
  }
  return share_sum;
}

}  // namespace ingot::kernels
