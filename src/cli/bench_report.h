#pragma once

#include "base/json.h"
#include "cli/options.h"
#include "engine/timed_steps.h"
#include "kernels/ledger.h"

namespace ingot::cli {

// The tables that people read, on stdout.
void print_bench(const engine::StepBenchmarkReport& report, const BenchEngineOptions& options);

// Adds "probes", "tests" and the rest to a result document.
void add_bench(base::json::object& document, const engine::StepBenchmarkReport& report,
               const BenchEngineOptions& options, const kernels::Ledger& ledger);

}  // namespace ingot::cli
