#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "base/clock.h"
#include "engine/engine_request.h"

namespace ingot::engine {

// Brings the news of some requests from the engine's thread to one that waits for them, in order.
// Any thread may call it.
class UpdateQueue {
 public:
  struct Entry {
    uint64_t tag = 0;  // as the sink was made with
    EngineUpdate update = {};
  };

  UpdateQueue() : state_(std::make_shared<State>()) {}

  // For Engine::submit; may outlive the queue.
  UpdateSink sink(uint64_t tag) const;

  // The next one, or nothing when there was none for so long.
  std::optional<Entry> wait_for(base::Duration time_limit) const;

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable arrived;
    std::deque<Entry> entries;
  };
  std::shared_ptr<State> state_;
};

}  // namespace ingot::engine
