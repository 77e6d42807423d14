#include "cli/bench_report.h"

#include <numeric>

#include <fmt/format.h>

#include "kernels/ledger_json.h"

namespace ingot::cli {
namespace {

namespace json = base::json;
using engine::ProbeReading;
using engine::Samples;
using engine::SpeculationResult;
using engine::StepBenchmarkReport;
using engine::TestResult;
using model::StepCost;

// A team waits at barriers, where its members sleep at last; less than this is taken from it.
constexpr double kQuietShare = 0.8;

std::string name_of(const TestResult& test) {
  if (test.kind == engine::TestKind::kPrefill) return fmt::format("prefill {}", test.tokens);
  std::string text = fmt::format("decode {}", test.tokens);
  if (test.batch > 1) text += fmt::format(" x {}", test.batch);
  if (test.depth > 0) text += fmt::format(" at {}", test.depth);
  return text;
}

// The least time for all steps of a repetition, one after another.
model::StepFloor floor_of(const TestResult& test, const model::MachineRates& rates) {
  model::StepFloor sum;
  for (const StepCost& step : test.steps) {
    const model::StepFloor floor = step_floor(step, rates);
    sum.read_seconds += floor.read_seconds;
    sum.mac_seconds += floor.mac_seconds;
  }
  return sum;
}

double floor_seconds(const TestResult& test, const model::MachineRates& rates) {
  double sum = 0;
  for (const StepCost& step : test.steps) sum += step_floor(step, rates).seconds();
  return sum;
}

// "mxfp4 x int8 85.1, bf16 x bf16 12.0", the most first.
std::string mac_rates(const StepCost& cost, double seconds) {
  std::vector<std::pair<double, std::string>> rates;
  for (const auto& [kind, count] : cost.macs) rates.emplace_back(count / seconds, name(kind));
  std::ranges::sort(rates, std::greater());
  std::string text;
  for (const auto& [rate, kind] : rates) {
    text += fmt::format("{}{} {:.3g}", text.empty() ? "" : ", ", kind, rate / 1e9);
  }
  return text;
}

json::object macs_json(const StepCost& cost, double divisor) {
  json::object object;
  for (const auto& [kind, count] : cost.macs) object[name(kind)] = count / divisor;
  return object;
}

json::object samples_json(const Samples& samples) {
  return {{"median", samples.median()},
          {"standard_deviation", samples.standard_deviation()},
          {"min", samples.quantile(0)},
          {"max", samples.quantile(1)},
          {"samples", json::array(samples.values().begin(), samples.values().end())}};
}

json::object test_json(const TestResult& test, const model::MachineRates& rates) {
  const auto tokens = static_cast<double>(test.total_tokens());
  const auto num_steps = static_cast<double>(test.steps.size());
  const double seconds = test.seconds.median();
  const double least = floor_seconds(test, rates);
  const model::StepFloor floor = floor_of(test, rates);
  const StepCost cost = test.cost();
  return {{"test", name_of(test)},
          {"kind", test.kind == engine::TestKind::kPrefill ? "prefill" : "decode"},
          {"tokens", test.tokens},
          {"depth", test.depth},
          {"batch", test.batch},
          {"steps", test.steps.size()},
          {"tokens_per_second", samples_json(test.seconds.rates(tokens))},
          {"seconds_per_step", seconds / num_steps},
          {"weight_bytes_per_step", cost.weight_bytes / num_steps},
          {"cache_bytes_per_step", cost.cache_bytes / num_steps},
          {"bytes_per_token", cost.bytes() / tokens},
          {"bytes_per_second", cost.bytes() / seconds},
          {"distinct_experts_per_step", test.experts_read},
          {"macs_per_step", macs_json(cost, num_steps)},
          {"macs_per_token", cost.total_macs() / tokens},
          {"macs_per_second", macs_json(cost, seconds)},
          {"floor", json::object{{"read_seconds_per_step", floor.read_seconds / num_steps},
                                 {"mac_seconds_per_step", floor.mac_seconds / num_steps},
                                 {"tokens_per_second", tokens / least}}},
          {"share_of_floor", least / seconds}};
}

// Tokens a step when each draft counts as right as often as is assumed.
double accepted_length(const SpeculationResult& result, const std::vector<double>& acceptance) {
  double length = 1;
  double chance = 1;
  for (size_t i = 0; i < acceptance.size() && i < static_cast<size_t>(result.draft_tokens); ++i) {
    chance *= acceptance[i];
    length += chance;
  }
  return length;
}

double break_even_length(const SpeculationResult& result) {
  return (result.verify.median() + result.draft.median()) / result.plain.median();
}

json::object speculation_json(const SpeculationResult& result, const model::MachineRates& rates,
                              const std::vector<double>& acceptance) {
  json::object object{{"depth", result.depth},
                      {"batch", result.batch},
                      {"draft_tokens", result.draft_tokens},
                      {"plain_seconds", samples_json(result.plain)},
                      {"draft_seconds", samples_json(result.draft)},
                      {"verify_seconds", samples_json(result.verify)},
                      {"draft_floor_seconds", step_floor(result.draft_cost, rates).seconds()},
                      {"verify_floor_seconds", step_floor(result.verify_cost, rates).seconds()},
                      {"break_even_accepted_length", break_even_length(result)}};
  if (!acceptance.empty()) {
    const double length = accepted_length(result, acceptance);
    object["accepted_length"] = length;
    object["gain"] = length / break_even_length(result);
  }
  return object;
}

void print_probes(const StepBenchmarkReport& report) {
  fmt::print("{:<17} {:<6} {:>7} {:>9} {:>9} {:>9} {:>6}  {}\n", "probe", "of", "threads", "median",
             "p10", "p90", "turns", "");
  for (const ProbeReading& reading : report.probes) {
    const bool reads = reading.cost_of_a_mac.empty();
    fmt::print("{:<17} {:<6} {:>7} {:>9.4g} {:>9.4g} {:>9.4g} {:>6}  {}\n", reading.probe,
               reading.quantity, reading.threads, reading.per_second.median() / 1e9,
               reading.per_second.quantile(0.1) / 1e9, reading.per_second.quantile(0.9) / 1e9,
               reading.per_second.values().size(),
               reads ? "GB/s" : fmt::format("GMAC/s, each {}", reading.cost_of_a_mac));
  }
}

void print_speculation(const StepBenchmarkReport& report, const std::vector<double>& acceptance) {
  if (report.speculation.empty()) return;
  fmt::print(
      "\nspeculation: ms of a plain step T(1), of K drafts D(K), of verifying V(K+1), and "
      "their floors;\na step gains when more than (V + D) / T tokens come of it\n");
  fmt::print("{:>5} {:>6} {:>3} {:>9} {:>9} {:>7} {:>9} {:>7} {:>9}{}\n", "batch", "depth", "K",
             "T(1)", "D(K)", "floor", "V(K+1)", "floor", "(V+D)/T",
             acceptance.empty() ? "" : "     AL   gain");
  for (const SpeculationResult& result : report.speculation) {
    std::string gain;
    if (!acceptance.empty()) {
      const double length = accepted_length(result, acceptance);
      gain = fmt::format(" {:>6.2f} {:>6.2f}", length, length / break_even_length(result));
    }
    fmt::print(
        "{:>5} {:>6} {:>3} {:>9.3f} {:>9.3f} {:>6.0f}% {:>9.3f} {:>6.0f}% {:>9.2f}{}\n",
        result.batch, result.depth, result.draft_tokens, 1e3 * result.plain.median(),
        1e3 * result.draft.median(),
        100 * step_floor(result.draft_cost, report.rates).seconds() / result.draft.median(),
        1e3 * result.verify.median(),
        100 * step_floor(result.verify_cost, report.rates).seconds() / result.verify.median(),
        break_even_length(result), gain);
  }
}

std::string describe_time(const StepBenchmarkReport& report, const BenchEngineOptions& options) {
  if (options.cpu_time) return "times are processor time";
  return fmt::format(
      "the steps got {:.0f}% of the processor time of their threads{}",
      100 * report.processor_share,
      report.processor_share < kQuietShare ? ": other work slowed them and the probes" : "");
}

}  // namespace

void print_bench(const StepBenchmarkReport& report, const BenchEngineOptions& options) {
  print_probes(report);
  fmt::print("\n{:<22} {:>10} {:>8} {:>10} {:>7} {:>9} {:>7}  {}\n", "test", "tokens/s", "+-",
             "floor", "share", "bound by", "GB/s", "GMAC/s");
  for (const TestResult& test : report.tests) {
    const auto tokens = static_cast<double>(test.total_tokens());
    const double seconds = test.seconds.median();
    const double least = floor_seconds(test, report.rates);
    const model::StepFloor floor = floor_of(test, report.rates);
    const StepCost cost = test.cost();
    fmt::print("{:<22} {:>10.4g} {:>8.3g} {:>10.4g} {:>6.1f}% {:>9} {:>7.3g}  {}\n", name_of(test),
               tokens / seconds, test.seconds.rates(tokens).standard_deviation(), tokens / least,
               100 * least / seconds, floor.read_seconds > floor.mac_seconds ? "reading" : "macs",
               cost.bytes() / seconds / 1e9, mac_rates(cost, seconds));
  }
  print_speculation(report, options.simulated_acceptance);
  fmt::print("\nmedians of {}; {}\n", options.repetitions, describe_time(report, options));
}

void add_bench(json::object& document, const StepBenchmarkReport& report,
               const BenchEngineOptions& options, const kernels::Ledger& ledger) {
  json::array probes;
  for (const ProbeReading& reading : report.probes) {
    probes.push_back(json::object{{"probe", reading.probe},
                                  {"quantity", reading.quantity},
                                  {"unit", reading.cost_of_a_mac.empty() ? "bytes/s" : "macs/s"},
                                  {"cost_of_a_mac", reading.cost_of_a_mac},
                                  {"threads", reading.threads},
                                  {"per_second", samples_json(reading.per_second)}});
  }
  json::array tests;
  for (const TestResult& test : report.tests) tests.push_back(test_json(test, report.rates));
  document["repetitions"] = options.repetitions;
  document["max_step_tokens"] = options.max_step_tokens;
  document["clock"] = options.cpu_time ? "cpu" : "wall";
  document["processor_share"] = report.processor_share;
  document["probes"] = std::move(probes);
  document["tests"] = std::move(tests);
  if (!report.speculation.empty()) {
    json::array speculation;
    for (const SpeculationResult& result : report.speculation) {
      speculation.push_back(speculation_json(result, report.rates, options.simulated_acceptance));
    }
    document["speculation"] = std::move(speculation);
  }
  document["kernels"] = to_json(ledger);
}

}  // namespace ingot::cli
