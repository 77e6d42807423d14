#include "simulation/setup.h"

#include <chrono>

#include <fmt/format.h>

#include "simulation/dice.h"

namespace ingot::simulation {

using scheduler::SpeculationMode;

Setup draw_setup(uint64_t seed) {
  Dice dice(base::random_stream(seed, "setup"));
  Setup setup = {.seed = seed};
  scheduler::SchedulerConfig& config = setup.config;

  config.num_slots = dice.between(1, 12);
  config.max_context = dice.between(200, 420);
  const int32_t context_pages =
      (config.max_context + scheduler::kPageTokens - 1) / scheduler::kPageTokens;
  // A third has room for a single long request, a third is tight, a third has room for all.
  switch (dice.between(0, 2)) {
    case 0:
      config.num_pages = dice.between(context_pages / 2, context_pages + 4);
      break;
    case 1:
      config.num_pages = context_pages + dice.between(0, 4 * config.num_slots);
      break;
    default:
      config.num_pages = context_pages * (config.num_slots + dice.between(1, 8));
      break;
  }
  const int32_t spare_rows = dice.chance(0.3) ? dice.between(2, 8) : dice.between(8, 160);
  config.max_step_tokens = config.num_slots + spare_rows;
  if (dice.chance(0.3)) config.max_logit_rows = config.num_slots + dice.between(1, 32);
  config.max_prefilling = dice.between(1, 8);
  config.max_preemptions = dice.between(0, 3);
  config.prefix_cache = dice.chance(0.85);
  if (dice.chance(0.7)) {
    config.speculation = dice.chance(0.7) ? SpeculationMode::kFixed : SpeculationMode::kAuto;
    config.max_draft_tokens = dice.between(1, 5);
  }

  setup.step_cost = std::chrono::microseconds(dice.between(500, 5000));
  setup.row_cost = std::chrono::microseconds(dice.between(1, 200));
  setup.draft_cost = std::chrono::microseconds(dice.between(10, 500));
  setup.mean_gap = setup.step_cost * dice.between(1, 20);
  setup.usual_max_tokens = dice.chance(0.6) ? dice.between(2, 24) : dice.between(24, 120);
  setup.max_outstanding = config.num_slots + dice.between(1, 60);
  const bool speculates = config.speculation != SpeculationMode::kOff;
  config.writes_mtp_rows = speculates || dice.chance(0.5);
  return setup;
}

std::string describe(const Setup& setup) {
  const scheduler::SchedulerConfig& config = setup.config;
  const bool speculates = config.speculation != SpeculationMode::kOff;
  const char* mode = !speculates                                     ? "off"
                     : config.speculation == SpeculationMode::kFixed ? "fixed"
                                                                     : "auto";
  return fmt::format(
      "{} pages, {} slots, context {}, step {} rows, {} logit rows, {} prefilling, {} preemptions, "
      "prefix cache {}, MTP rows {}, speculation {} {}",
      config.num_pages, config.num_slots, config.max_context, config.max_step_tokens,
      config.max_logit_rows, config.max_prefilling, config.max_preemptions,
      config.prefix_cache ? "on" : "off", config.writes_mtp_rows ? "on" : "off", mode,
      config.max_draft_tokens);
}

}  // namespace ingot::simulation
