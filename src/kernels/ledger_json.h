#pragma once

#include "base/json.h"
#include "kernels/ledger.h"

namespace ingot::kernels {

// The entries, each with its shares, as reports have them. Beside the ledger and not in it, because
// kernels that are compiled for one instruction set read that header, and nothing of JSON's.
base::json::array to_json(const Ledger& ledger);

}  // namespace ingot::kernels
