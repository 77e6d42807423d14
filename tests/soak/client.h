#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/update_queue.h"
#include "soak/answer.h"
#include "soak/findings.h"
#include "soak/offer.h"
#include "soak/plan_pool.h"

namespace ingot::soak {

// What all clients share. Any thread may read and count.
struct Load {
  engine::Engine& engine;
  const base::Clock& clock;
  PlanPool& plans;
  const PlanLimits limits;
  const uint64_t seed;
  Findings& findings;

  std::atomic<uint64_t> next_offer = 0;
  std::atomic<int64_t> num_refused = 0;
  std::atomic<int64_t> num_answered = 0;
  std::atomic<int64_t> num_tokens = 0;
  std::array<std::atomic<int64_t>, 5> num_by_reason = {};  // [FinishReason]
};

// How a client of one round submits.
struct Manner {
  uint64_t end_offer = 0;       // it takes offers with lower numbers
  base::Instant ends_at = {};   // and none later than this
  base::Duration gap_max = {};  // between two of its own, drawn from 0
  size_t window = 1;            // of its own that are under way
};

// Submits offers, leaves some, and checks every answer. One thread runs it; nothing is under way
// when it is done.
class Client {
 public:
  Client(Load& load, const Manner& manner) : load_(load), manner_(manner) {}

  void run();

  // REQUIRES: run() is done, and the engine idle since.
  void check_silence();

 private:
  // A request under way. The sink may outlive it.
  struct Talk {
    Offer offer = {};
    std::optional<base::Instant> deadline = {};
    Answer answer = {};
    std::shared_ptr<std::atomic<scheduler::RequestId>> id = {};  // 0: not known yet
    std::optional<base::Instant> leaves_at = {};
    bool leaves = false;
  };

  bool submit_next();
  engine::UpdateSink sink_of(uint64_t number, const Talk& talk) const;
  void leave(base::Instant now);
  void listen(base::Duration time_limit);
  void check_end(uint64_t number, const Talk& talk);
  void complain(uint64_t number, std::string_view what);

  Load& load_;
  const Manner manner_;
  engine::UpdateQueue queue_;
  std::map<uint64_t, Talk> talks_;  // by the number of the offer
  base::Instant next_at_ = {};
  base::Instant last_news_ = {};
};

}  // namespace ingot::soak
