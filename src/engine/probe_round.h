#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/samples.h"
#include "kernels/probe.h"
#include "model/step_cost.h"

namespace ingot::engine {

// What one probe measured over a run.
struct ProbeReading {
  std::string_view probe;          // "fma_f32_avx2"
  std::string_view quantity;       // "read", or the numbers that are multiplied
  std::string_view cost_of_a_mac;  // empty for "read"
  int threads = 1;
  Samples per_second = {};  // bytes, or multiply-accumulates
};

// All probes of a machine, taken in rounds.
class ProbeRounds {
 public:
  // `team` and `clock` must outlive it. Errors: not enough memory.
  static base::Result<ProbeRounds> create(base::ThreadTeam& team, const base::Clock& clock,
                                          kernels::Target allowed, base::Duration slice,
                                          uint64_t available_bytes);

  // One slice of each probe on all threads; `with_one_thread` also on one, where there are more.
  void run(bool with_one_thread);

  const std::vector<ProbeReading>& readings() const { return readings_; }
  // Medians of what all threads reached together.
  model::MachineRates rates() const;

 private:
  ProbeRounds() = default;

  int num_threads_ = 1;
  base::Duration slice_{};
  const kernels::ReadProbe* read_ = nullptr;
  std::unique_ptr<kernels::ProbeBench> bench_;
  std::vector<const kernels::MacProbe*> macs_;  // of a reading; null where it is of "read"
  std::vector<ProbeReading> readings_;
};

}  // namespace ingot::engine
