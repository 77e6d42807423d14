#include "server/batch_job.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include "base/random.h"
#include "engine/update_queue.h"
#include "server/answer_collector.h"
#include "server/batch_line.h"

namespace ingot::server {
namespace {

using namespace std::chrono_literals;

// Lines that may be answered before an earlier one is. Their answers are kept in memory, and lost
// if the job is killed.
constexpr int64_t kLinesAhead = 4096;
constexpr size_t kBytesAhead = size_t{256} << 20;
// How often what was written is made durable.
constexpr base::Duration kFlushInterval = 5s;

class BatchJob {
 public:
  BatchJob(const BatchService& service, const BatchInput& input, BatchOutput& output,
           const base::Clock& clock, const BatchHooks& hooks)
      : service_(service), input_(input), output_(output), clock_(clock), hooks_(hooks) {
    tally_ = {.num_lines = input.num_lines(),
              .num_done = output.num_found(),
              .num_failed = output.num_found_failed(),
              .num_found = output.num_found()};
    next_to_begin_ = next_to_write_ = output.num_found();
    custom_ids_ = output.custom_ids_found();
  }

  base::Result<BatchTally> run();

 private:
  // A line whose choices are with the engine.
  struct Pending {
    std::string custom_id;
    AnswerCollector collector;
    std::vector<scheduler::RequestId> engine_ids = {};
  };
  // Which choice of which line an update is of.
  struct Choice {
    int64_t line = 0;
    size_t index = 0;
  };

  bool has_room() const;
  void begin(int64_t line);
  void submit(int64_t line, std::string custom_id, PreparedRequest prepared);
  void take(engine::UpdateQueue::Entry entry);
  void end(int64_t line, std::string text, bool is_answer);
  void refuse(int64_t line, const std::string& custom_id, const ApiError& error);
  ApiResult<PreparedRequest> prepare_line(const BatchRequest& request) const;
  std::string answer_id(std::string_view custom_id) const;
  bool is_repeated(const std::optional<std::string>& custom_id);
  base::Status write_finished();

  const BatchService& service_;
  const BatchInput& input_;
  BatchOutput& output_;
  const base::Clock& clock_;
  const BatchHooks& hooks_;
  const engine::UpdateQueue queue_;
  BatchTally tally_;
  int64_t next_to_begin_ = 0;
  int64_t next_to_write_ = 0;
  std::unordered_map<int64_t, Pending> pending_;
  std::unordered_map<uint64_t, Choice> choices_;  // by tag
  uint64_t last_tag_ = 0;
  std::map<int64_t, std::string> finished_;  // lines that wait for an earlier one
  size_t finished_bytes_ = 0;
  std::unordered_set<std::string> custom_ids_;
  base::Instant flushed_at_ = clock_.now();
};

// The same whatever line the request stands in, and another in another job.
std::string BatchJob::answer_id(std::string_view custom_id) const {
  const std::string text = fmt::format("{} {} {}", input_.hash(), service_.facts.seed, custom_id);
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

std::string line_id(int64_t line) { return fmt::format("batch_req_{}", line + 1); }
std::string request_id(int64_t line) { return fmt::format("req_{}", line + 1); }

base::Result<BatchTally> BatchJob::run() {
  while (true) {
    while (next_to_begin_ < tally_.num_lines && has_room()) begin(next_to_begin_++);
    TRY(write_finished());
    if (hooks_.on_progress) hooks_.on_progress(tally_);
    if (next_to_write_ == tally_.num_lines) break;
    if (hooks_.wants_more && !hooks_.wants_more()) {
      tally_.was_stopped = true;
      for (const auto& [line, pending] : pending_) {
        for (const scheduler::RequestId id : pending.engine_ids) service_.engine.cancel(id);
      }
      TRY(output_.flush());
      return tally_;
    }
    auto entry = pending_.empty() ? std::nullopt : queue_.wait_for(50ms);
    while (entry) {
      take(*std::move(entry));
      entry = queue_.wait_for(0s);
    }
  }
  TRY(output_.finish());
  return tally_;
}

// Enough waits in the engine that a slot which falls free finds work, and not much more.
bool BatchJob::has_room() const {
  return std::ssize(choices_) < 2 * service_.max_running + 16 &&
         next_to_begin_ - next_to_write_ < kLinesAhead && finished_bytes_ < kBytesAhead;
}

bool BatchJob::is_repeated(const std::optional<std::string>& custom_id) {
  return custom_id && !custom_ids_.insert(*custom_id).second;
}

void BatchJob::begin(int64_t line) {
  auto request = parse_batch_line(input_.line(line));
  // A line that is no request has its id all the same; a job that goes on knows no more of it.
  if (is_repeated(request ? request->custom_id : request.error().custom_id) && request) {
    request = std::unexpected(
        BatchError{.custom_id = request->custom_id,
                   .code = "duplicate_custom_id",
                   .message = "an earlier line has this custom_id too; give each its own"});
  }
  if (!request) {
    BatchError error = std::move(request).error();
    error.message = fmt::format("line {} of the file: {}", input_.line_number(line), error.message);
    return end(line, batch_error_line(line_id(line), error), false);
  }
  ApiResult<PreparedRequest> prepared = prepare_line(*request);
  if (!prepared) return refuse(line, request->custom_id, prepared.error());
  submit(line, std::move(request->custom_id), *std::move(prepared));
}

ApiResult<PreparedRequest> BatchJob::prepare_line(const BatchRequest& request) const {
  if (!request.request) return std::unexpected(request.request.error());
  ModelFacts facts = service_.facts;
  facts.seed = base::random_stream(facts.seed, request.custom_id).word(0);
  const std::string& name = answer_fields(*request.request).model;
  if (!name.empty() &&
      std::ranges::find(service_.model_names, name) == service_.model_names.end()) {
    return std::unexpected(
        ApiError{.status = 404,
                 .message = fmt::format("the model {:?} is not served here; it is {}", shown(name),
                                        fmt::join(service_.model_names, " or ")),
                 .param = "model",
                 .code = "model_not_found"});
  }
  return prepare(*request.request, service_.text, facts, service_.local_time);
}

void BatchJob::submit(int64_t line, std::string custom_id, PreparedRequest prepared) {
  AnswerCollector collector(std::move(prepared.form), {.id = answer_id(custom_id),
                                                       .model = service_.model_names.front(),
                                                       .created = service_.created});
  const auto at = pending_
                      .emplace(line, Pending{.custom_id = std::move(custom_id),
                                             .collector = std::move(collector)})
                      .first;
  Pending& pending = at->second;
  for (size_t i = 0; i < prepared.choices.size(); ++i) {
    const uint64_t tag = ++last_tag_;
    const auto id = service_.engine.submit(std::move(prepared.choices[i]), queue_.sink(tag));
    if (!id) {
      for (const scheduler::RequestId other : pending.engine_ids) service_.engine.cancel(other);
      // Nobody waits for the choices that were taken.
      std::erase_if(choices_, [&](const auto& entry) { return entry.second.line == line; });
      const ApiError error{.message = id.error().message};
      const std::string name = std::move(pending.custom_id);
      pending_.erase(at);
      return refuse(line, name, error);
    }
    pending.engine_ids.push_back(*id);
    choices_[tag] = {.line = line, .index = i};
  }
}

void BatchJob::take(engine::UpdateQueue::Entry entry) {
  const auto found = choices_.find(entry.tag);
  if (found == choices_.end()) return;  // of a request that was refused
  const Choice choice = found->second;
  Pending& pending = pending_.at(choice.line);
  tally_.num_output_tokens += std::ssize(entry.update.tokens);
  if (entry.update.report) {
    tally_.num_prompt_tokens += entry.update.report->usage.num_prompt_tokens;
    tally_.num_cached_tokens += entry.update.report->usage.num_cached_tokens;
    choices_.erase(found);
  }
  const bool had_error = pending.collector.error() != nullptr;
  pending.collector.add(choice.index, std::move(entry.update));
  if (!had_error && pending.collector.error() != nullptr) {
    for (const scheduler::RequestId id : pending.engine_ids) service_.engine.cancel(id);
  }
  if (!pending.collector.done()) return;
  ApiResult<base::json::object> body = pending.collector.body();
  const std::string custom_id = std::move(pending.custom_id);
  pending_.erase(choice.line);
  if (!body) return refuse(choice.line, custom_id, body.error());
  if (!service_.simulated_acceptance.empty()) {
    (*body)["simulated_acceptance"] = base::json::value_from(service_.simulated_acceptance);
  }
  end(choice.line,
      batch_answer_line(line_id(choice.line), custom_id, request_id(choice.line), *body), true);
}

void BatchJob::refuse(int64_t line, const std::string& custom_id, const ApiError& error) {
  end(line, batch_answer_line(line_id(line), custom_id, request_id(line), error), false);
}

void BatchJob::end(int64_t line, std::string text, bool is_answer) {
  ++tally_.num_done;
  if (!is_answer) ++tally_.num_failed;
  finished_bytes_ += text.size();
  finished_.emplace(line, std::move(text));
}

base::Status BatchJob::write_finished() {
  while (!finished_.empty() && finished_.begin()->first == next_to_write_) {
    TRY(output_.append(finished_.begin()->second));
    finished_bytes_ -= finished_.begin()->second.size();
    finished_.erase(finished_.begin());
    ++next_to_write_;
  }
  if (clock_.now() - flushed_at_ < kFlushInterval) return {};
  flushed_at_ = clock_.now();
  return output_.flush();
}

}  // namespace

base::Result<BatchTally> run_batch_job(const BatchService& service, const BatchInput& input,
                                       BatchOutput& output, const base::Clock& clock,
                                       const BatchHooks& hooks) {
  return BatchJob(service, input, output, clock, hooks).run();
}

}  // namespace ingot::server
