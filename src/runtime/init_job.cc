#include "runtime/init_job.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/quiet_thread.h"

namespace talaria {
namespace {

// Jobs that take turns.
using Line = std::vector<InitJob>;

std::vector<Line> in_lines(std::vector<InitJob> jobs) {
  std::vector<Line> lines;
  for (InitJob& job : jobs) {
    auto line = std::ranges::find_if(lines, [&](const Line& other) {
      return job.parent != nullptr && other.front().parent == job.parent;
    });
    if (line == lines.end()) line = lines.insert(lines.end(), Line());
    line->push_back(std::move(job));
  }
  return lines;
}

Status make(InitJob& job) {
  try {
    return job.make(job.subject());
  } catch (const std::exception& exception) {
    return fail(Code::kSystem, "rank {}: out of resources: {}", job.subject().rank(), exception.what());
  }
}

Status make_in_turn(Line& line) {
  for (InitJob& job : line) TRY(make(job));
  return Status();
}

// On a thread of the line's owner, who is in progress meanwhile; its children are in progress until their turn is over.
Status make_in_background(Line& line) {
  Status status;
  for (InitJob& job : line) {
    if (status.ok()) status = make(job);
    if (job.comm == nullptr) continue;
    Communicator* const comm = job.wanted ? job.comm.release() : job.comm.get();
    if (job.parent != nullptr) comm->end_progress(status);
  }
  return status;
}

Status start_line(Line jobs) {
  auto line = std::make_shared<Line>(std::move(jobs));
  InitJob& first = line->front();
  Communicator& owner = first.parent == nullptr ? *first.comm : *first.parent;
  for (const InitJob& job : *line) {
    if (job.comm == nullptr) continue;
    *job.out = job.wanted ? job.comm.get() : nullptr;
    if (job.parent != nullptr) job.comm->begin_progress();
  }
  const Status started = owner.run_in_background("talaria-init", [line] { return make_in_background(*line); });
  if (started.code() == Code::kInProgress) return started;
  for (const InitJob& job : *line) {
    if (job.comm != nullptr) *job.out = nullptr;
  }
  return started;
}

// The first failure in time, with its text: the others may only have been ended by it.
class FirstFailure {
 public:
  // Is this the first?
  bool note(Status status) {
    const std::lock_guard lock(mutex_);
    if (!status_.ok()) return false;
    status_ = status;
    text_ = last_error_text();
    return true;
  }
  // Once nothing fails any more.
  Status status() {
    if (!status_.ok()) restore_error_text(std::move(text_));
    return status_;
  }

 private:
  std::mutex mutex_;
  Status status_;
  std::string text_;
};

}  // namespace

Status run_inits(std::vector<InitJob> jobs) {
  std::vector<Line> lines = in_lines(std::move(jobs));
  FirstFailure failure;
  const auto finish = [&](const Line& ended, Status status) {
    if (status.ok() || !failure.note(status)) return;
    for (const Line& line : lines) {
      if (&line == &ended) continue;
      for (const InitJob& job : line) job.subject().abort();
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < lines.size(); ++i) {
    Line& line = lines[i];
    Result<std::thread> thread = start_quiet_thread("talaria-init", [&] { finish(line, make_in_turn(line)); });
    if (!thread.ok()) {
      finish(line, thread.status());
      break;
    }
    threads.push_back(thread.value());
  }
  if (!lines.empty()) finish(lines.front(), make_in_turn(lines.front()));
  for (std::thread& thread : threads) thread.join();

  const Status status = failure.status();
  for (Line& line : lines) {
    for (InitJob& job : line) {
      if (job.comm != nullptr) *job.out = status.ok() && job.comm->ready() ? job.comm.release() : nullptr;
    }
  }
  return status;
}

Status start_inits(std::vector<InitJob> jobs) {
  if (jobs.empty()) return Status();
  Status status(Code::kInProgress);
  for (Line& line : in_lines(std::move(jobs))) {
    const Status started = start_line(std::move(line));
    if (status.code() == Code::kInProgress) status = started;
  }
  return status;
}

}  // namespace talaria
