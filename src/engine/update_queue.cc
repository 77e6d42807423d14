#include "engine/update_queue.h"

#include <utility>

namespace ingot::engine {

UpdateSink UpdateQueue::sink(uint64_t tag) const {
  return [state = state_, tag](EngineUpdate&& update) {
    {
      const std::scoped_lock lock(state->mutex);
      state->entries.push_back({.tag = tag, .update = std::move(update)});
    }
    state->arrived.notify_one();
  };
}

std::optional<UpdateQueue::Entry> UpdateQueue::wait_for(base::Duration time_limit) const {
  std::unique_lock lock(state_->mutex);
  const auto has_some = [this] { return !state_->entries.empty(); };
  if (!state_->arrived.wait_for(lock, time_limit, has_some)) return std::nullopt;
  Entry entry = std::move(state_->entries.front());
  state_->entries.pop_front();
  return entry;
}

}  // namespace ingot::engine
