#include "simulation/simulation.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"

namespace ingot::simulation {

using base::error;
using scheduler::Batch;
using scheduler::RequestId;

namespace {

scheduler::Scheduler create_scheduler(const Setup& setup) {
  base::Result<scheduler::Scheduler> created = scheduler::Scheduler::create(setup.config);
  CHECK(created, created ? "" : created.error().message);
  return std::move(*created);
}

}  // namespace

Simulation::Simulation(const Setup& setup, Plans plans, Journal& journal, Standing& standing)
    : setup_(setup),
      plans_(std::move(plans)),
      journal_(journal),
      standing_(standing),
      executor_(setup.config, setup.seed, requests_),
      ledger_(setup.config, requests_, executor_),
      scheduler_(create_scheduler(setup)),
      next_(plans_()) {}

base::Result<Outcome> Simulation::run() {
  if (base::Status status = run_all(); !status) {
    return error("step {}: {}", executor_.cache().num_steps(), status.error().message);
  }
  return Outcome{.stats = scheduler_.stats(),
                 .num_by_reason = ledger_.num_by_reason(),
                 .num_refused = ledger_.num_refused(),
                 .fingerprint = journal_.fingerprint()};
}

base::Status Simulation::run_all() {
  while (true) {
    TRY(offer_arrivals());
    if (scheduler_.idle() != requests_.empty()) return error("the scheduler is wrongly idle");
    if (!requests_.empty()) {
      TRY(step());
      continue;
    }
    TRY(ledger_.check_idle(scheduler_.stats()));
    if (!next_) return {};
    clock_.advance_to(next_->arrival);
  }
}

base::Status Simulation::offer_arrivals() {
  while (next_ && next_->arrival <= clock_.now() &&
         static_cast<int32_t>(requests_.size()) < setup_.max_outstanding) {
    RequestPlan plan = *std::exchange(next_, plans_());
    const RequestId id = plan.request.id;
    const auto total = static_cast<int64_t>(plan.request.prompt.size()) + plan.request.max_tokens;
    ledger_.offered();
    standing_.num_offered = ledger_.num_offered();
    journal_.enter("add", id, clock_.now());
    const base::Status added = scheduler_.add(plan.request, clock_.now());
    if (added.has_value() != (total <= scheduler_.max_request_tokens())) {
      return error("request {} of {} tokens was {}, and {} can be", id, total,
                   added ? "added" : "refused", scheduler_.max_request_tokens());
    }
    if (added) {
      executor_.add(plan.request);
      requests_.emplace(id, LiveRequest(setup_.seed, std::move(plan), clock_.now()));
    } else {
      ledger_.refused();
    }
  }
  return {};
}

base::Status Simulation::step() {
  TRY(leave_queue(Moment::kWaiting));
  const Batch& batch = scheduler_.schedule(clock_.now());
  journal_.enter(batch, clock_.now());
  TRY(enter_events());
  if (batch.sequences.empty()) {
    if (requests_.empty()) return {};
    return error("{} requests wait and nothing is computed", requests_.size());
  }
  TRY(check_batch(batch));
  const scheduler::StepResult& result = executor_.execute(batch);
  if (executor_.violation()) return std::unexpected(*executor_.violation());
  TRY(check_pages_in_use());
  TRY(check_nobody_starves(batch));

  // Others come and go in the middle of the step.
  const base::Duration duration = setup_.step_cost +
                                  setup_.row_cost * executor_.num_rows_in_step() +
                                  setup_.draft_cost * executor_.deepest_chain_in_step();
  const uint64_t batch_before = Journal::fingerprint(batch);
  clock_.advance(duration / 2);
  TRY(offer_arrivals());
  TRY(leave_queue(Moment::kUnderWay));
  TRY(leave(Moment::kUnderWay));
  if (Journal::fingerprint(batch) != batch_before) return error("a batch under way has changed");
  clock_.advance(duration - duration / 2);

  scheduler_.commit(result, clock_.now());
  TRY(enter_events());
  TRY(ledger_.check_told());
  TRY(leave(Moment::kCommitted));
  TRY(ledger_.check_stats(scheduler_.stats()));
  scheduler_.check_invariants();
  standing_.num_finished = ledger_.num_finished() + ledger_.num_refused();
  standing_.num_steps = executor_.cache().num_steps();
  return {};
}

base::Status Simulation::check_batch(const Batch& batch) const {
  for (const Batch::Sequence& entry : batch.sequences) {
    const auto found = requests_.find(entry.request);
    if (found == requests_.end()) continue;
    const std::optional<base::Instant>& deadline = found->second.plan.request.deadline;
    if (deadline && *deadline <= clock_.now()) {
      return error("request {} is computed after its deadline", entry.request);
    }
  }
  return {};
}

// Right after a batch was made, nobody has a page that the executor was not told of.
base::Status Simulation::check_pages_in_use() const {
  const scheduler::SchedulerStats stats = scheduler_.stats();
  const int32_t num_in_use = executor_.cache().tables().num_pages_in_use();
  const int32_t num_pages = setup_.config.num_pages;
  if (num_in_use + stats.num_free_pages > num_pages) {
    return error("{} pages of {} are in use and {} free", num_in_use, num_pages,
                 stats.num_free_pages);
  }
  if (num_in_use + stats.num_free_pages + stats.num_cached_pages < num_pages) {
    return error("pages are lost: {} of {} are in use, {} free and {} cached", num_in_use,
                 num_pages, stats.num_free_pages, stats.num_cached_pages);
  }
  return {};
}

// In each step somebody who goes before a request computes a row, or the request itself does. Else
// it waits for a place of others, who came later and run already: each of them ends after as many
// steps as it has positions, at the most.
base::Status Simulation::check_nobody_starves(const Batch& batch) {
  const shadow::ShadowCache& cache = executor_.cache();
  const shadow::ShadowRequest* first = nullptr;
  for (const Batch::Sequence& entry : batch.sequences) {
    const shadow::ShadowRequest& request = cache.request(entry.request);
    if (first == nullptr || request.goes_before(*first)) first = &request;
  }
  const int32_t patience = setup_.config.num_slots * setup_.config.max_context;
  for (auto& [id, request] : requests_) {
    const shadow::ShadowRequest& computed = cache.request(id);
    const bool progresses = first->goes_before(computed) || computed.last_step == cache.num_steps();
    request.num_idle_steps = progresses ? 0 : request.num_idle_steps + 1;
    if (request.num_idle_steps > patience) {
      return error("request {} starves: it waits and others that come after it run", id);
    }
  }
  return {};
}

base::Status Simulation::enter_events() {
  for (const scheduler::RequestEvent& event : scheduler_.take_events()) {
    journal_.enter(event, clock_.now());
    TRY(ledger_.enter(event, clock_.now()));
    if (event.report) executor_.remove(event.request);
  }
  return {};
}

// Half of those who give up waiting do it while a step is under way.
base::Status Simulation::leave_queue(Moment moment) {
  std::vector<RequestId> leaving;
  for (auto& [id, request] : requests_) {
    const RequestPlan& plan = request.plan;
    if (plan.cancel != Moment::kWaiting) continue;
    if (executor_.cache().request(id).num_batches > 0) continue;
    const bool is_its_moment = (plan.cancel_count % 2 == 0) == (moment == Moment::kUnderWay);
    if (is_its_moment && ++request.num_steps_waited == plan.cancel_count) leaving.push_back(id);
  }
  for (const RequestId id : leaving) TRY(cancel(id, Moment::kWaiting));
  return {};
}

base::Status Simulation::leave(Moment moment) {
  std::vector<RequestId> cancelled, stopped;
  for (const auto& [id, request] : requests_) {
    const RequestPlan& plan = request.plan;
    const shadow::ShadowRequest& computed = executor_.cache().request(id);
    if (computed.last_step != executor_.cache().num_steps()) continue;
    const bool stops =
        plan.stop == moment && plan.stop_length + plan.stop_surplus <= request.num_told;
    const bool cancels = plan.cancel == moment && plan.cancel_count == computed.num_batches;
    if (stops) {
      stopped.push_back(id);
    } else if (cancels) {
      cancelled.push_back(id);
    }
  }
  for (const RequestId id : stopped) TRY(stop(id, moment));
  for (const RequestId id : cancelled) TRY(cancel(id, moment));
  return {};
}

base::Status Simulation::cancel(RequestId id, Moment moment) {
  requests_.find(id)->second.cancelled = true;
  journal_.enter("cancel", id, clock_.now());
  if (!scheduler_.cancel(id, clock_.now())) {
    return error("request {} is live and could not be cancelled", id);
  }
  return check_gone(id, moment);
}

base::Status Simulation::stop(RequestId id, Moment moment) {
  LiveRequest& request = requests_.find(id)->second;
  request.stop_length = request.plan.stop_length;
  journal_.enter("stop", id, clock_.now());
  if (!scheduler_.stop(id, request.stop_length, clock_.now())) {
    return error("request {} is live and could not be stopped", id);
  }
  return check_gone(id, moment);
}

base::Status Simulation::check_gone(RequestId id, Moment moment) {
  // What is under way ends with its step; the ledger looks at that.
  if (moment == Moment::kUnderWay) return {};
  TRY(enter_events());
  if (requests_.contains(id)) return error("request {} was ended and goes on", id);
  if (scheduler_.cancel(id, clock_.now())) return error("request {} could be ended twice", id);
  return {};
}

}  // namespace ingot::simulation
