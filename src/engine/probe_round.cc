#include "engine/probe_round.h"

namespace ingot::engine {

using kernels::Arithmetic;

base::Result<ProbeRounds> ProbeRounds::create(base::ThreadTeam& team, const base::Clock& clock,
                                              kernels::Target allowed, base::Duration slice,
                                              uint64_t available_bytes) {
  ProbeRounds rounds;
  rounds.num_threads_ = team.size();
  rounds.slice_ = slice;
  rounds.read_ = &kernels::find_read_probe(allowed);
  rounds.bench_ = TRY(kernels::ProbeBench::create(team, clock, available_bytes));
  for (const int threads : {1, team.size()}) {
    rounds.macs_.push_back(nullptr);
    rounds.readings_.push_back(
        {.probe = rounds.read_->name, .quantity = "read", .cost_of_a_mac = "", .threads = threads});
    for (const Arithmetic numbers : {Arithmetic::kF32, Arithmetic::kBF16, Arithmetic::kInt8}) {
      const kernels::MacProbe* probe = kernels::find_mac_probe(numbers, allowed);
      if (probe == nullptr) continue;
      rounds.macs_.push_back(probe);
      rounds.readings_.push_back({.probe = probe->name,
                                  .quantity = name(numbers),
                                  .cost_of_a_mac = probe->cost_of_a_mac,
                                  .threads = threads});
    }
    if (team.size() == 1) break;
  }
  return rounds;
}

void ProbeRounds::run(bool with_one_thread) {
  for (size_t i = 0; i < readings_.size(); ++i) {
    ProbeReading& reading = readings_[i];
    if (reading.threads != num_threads_ && !with_one_thread) continue;
    reading.per_second.add(macs_[i] == nullptr
                               ? bench_->read_bytes_per_second(*read_, reading.threads, slice_)
                               : bench_->macs_per_second(*macs_[i], reading.threads, slice_));
  }
}

model::MachineRates ProbeRounds::rates() const {
  const auto median_of = [&](std::string_view quantity) {
    for (const ProbeReading& reading : readings_) {
      if (reading.threads == num_threads_ && reading.quantity == quantity) {
        return reading.per_second.median();
      }
    }
    return 0.0;
  };
  model::MachineRates rates{.read_bytes_per_second = median_of("read"),
                            .f32_macs_per_second = median_of(name(Arithmetic::kF32)),
                            .bf16_macs_per_second = median_of(name(Arithmetic::kBF16)),
                            .int8_macs_per_second = median_of(name(Arithmetic::kInt8))};
  if (rates.bf16_macs_per_second == 0) rates.bf16_macs_per_second = rates.f32_macs_per_second;
  return rates;
}

}  // namespace ingot::engine
