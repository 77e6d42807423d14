#include "kernels/ledger_json.h"

namespace ingot::kernels {

base::json::array to_json(const Ledger& ledger) {
  base::json::array rows;
  for (const LedgerEntry& entry : ledger.entries()) {
    rows.push_back(base::json::object{{"operation", entry.operation},
                                      {"formats", entry.formats},
                                      {"shape", entry.shape},
                                      {"kernel", entry.variant},
                                      {"target", name(entry.target)},
                                      {"tuning", name(entry.tuning)},
                                      {"why_not_faster", entry.why_not_faster},
                                      {"uses", entry.uses},
                                      {"bytes_per_token", entry.bytes_per_token},
                                      {"bytes_share", ledger.share(entry)},
                                      {"macs_per_token", entry.macs_per_token},
                                      {"macs_share", ledger.mac_share(entry)}});
  }
  return rows;
}

}  // namespace ingot::kernels
