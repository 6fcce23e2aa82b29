#include "runtime/communicator.h"

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/os.h"
#include "base/version.h"
#include "runtime/agreement.h"
#include "runtime/rank_cards.h"

namespace talaria {
namespace {

int wish(int configured, int64_t variable) {
  if (variable > 0) return static_cast<int>(variable);
  return configured == InitOptions::kUnset ? 0 : configured;
}

Reunion::Doors doors_of(std::span<const RankCard> cards, const UniqueId& id) {
  Reunion::Doors doors;
  for (const RankCard& card : cards) doors.addresses.push_back(card.door);
  doors.secret.assign(reinterpret_cast<const char*>(id.secret), sizeof(id.secret));
  doors.secret += std::to_string(communicator_identity(cards));
  return doors;
}

}  // namespace

Config with_patience(Config config, const Seat& seat) {
  if (config.init_timeout_sec <= 0) config.init_timeout_sec = seat.patience_sec;
  return config;
}

bool blocking_of(const InitOptions& options, const Config& config) {
  return config.comm_blocking < 0 ? options.blocking != 0 : config.comm_blocking != 0;
}

std::unique_ptr<Communicator> Communicator::conceive(const std::optional<InitOptions>& options) const {
  const Use use(*this);
  const bool blocking = options && !released() ? blocking_of(*options, resources_->config) : blocking_;
  return std::make_unique<Communicator>(device_, blocking);
}

Status Communicator::refuse_while_suspended() const {
  if (!suspended()) return Status();
  return fail(Code::kInvalidUsage, "comm {} rank {} is suspended: call ncclCommResume first",
              static_cast<const void*>(this), rank_);
}

Status Communicator::init(const Seat& seat, const InitOptions& options, Config config) {
  rank_ = seat.rank;
  nranks_ = seat.nranks;
  resources_ = std::make_unique<Resources>(this);
  resources_->options = options;
  resources_->config = std::move(config);
  log_set_device(device_);
  if (rank_ == 0) log_once(LogLevel::kVersion, kLogAll, fmt::format("NCCL version {}", kVersionText));
  const Status status = part_if_failed(connect(seat));
  if (!status.ok()) {
    set_async_error(status.code());
    resources_.reset();  // who waits for this rank hears that it is gone, whenever the caller looks
    return status;
  }
  log_info(kLogInit, "comm {} rank {} nranks {} device {} - Init COMPLETE", static_cast<const void*>(this), rank_,
           nranks_, device_);
  ready_.store(true, std::memory_order_release);
  return Status();
}

// The ranks that still take part shall hear who is gone, rather than see this one go; and so shall our user. Not where
// the status comes of no loss: all ranks may come to the same verdict, and the news that some have left by it would
// overtake it at the others.
Status Communicator::part_if_failed(Status status) {
  OutOfBand* oob = resources_->oob.get();
  if (status.code() != Code::kRemote || oob == nullptr) return status;
  constexpr double kNewsUsec = 2e5;
  const std::string text = last_error_text();
  const double until = now_usec() + kNewsUsec;
  for (oob->listen(); !oob->fault() && now_usec() < until && !stop_init_.stopped(); oob->listen()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const auto fault = oob->fault();
  if (!fault || fault->rank == rank_ || text.find(describe(*fault)) != std::string::npos) return status;
  return fail(status.code(), "{}: {}", text, describe(*fault));
}

Status Communicator::connect(const Seat& seat) {
  Resources& mine = *resources_;
  const Config& config = mine.config;
  const InitOptions& options = mine.options;
  mine.oob = TRY(rendezvous(seat.ids, rank_, nranks_, with_patience(config, seat),
                              {stop_init_, seat.meanwhile}));
  mine.engine = kind() == EngineKind::kHost ? make_host_engine(config) : TRY(make_device_engine(config, device_));
  // A rank that fails still takes part, saying so or with an empty card: the others learn of it instead of waiting.
  Result<SelectionFilter> filter = parse_selection(config.algorithms, config.protocols);
  ChoiceInputs inputs = choice_inputs_of(config, *mine.engine, wish(options.min_ctas, config.min_ctas),
                                         wish(options.max_ctas, config.max_ctas));
  inputs.failed = !filter.ok();
  const auto all_inputs = TRY(mine.oob->all_gather_value(inputs));
  const SelectionFilter what_remains = TRY(filter);
  Agreement agreement = TRY(agree(all_inputs, config.enable_version_check != 0));
  agreement.limits.filter = what_remains;

  Result<RankCard> card = mine.engine->open(rank_, agreement.layout);
  if (card.ok()) card->door = mine.oob->address();
  const auto cards = TRY(mine.oob->all_gather_value(card.ok() ? *card : RankCard{}));
  TRY(card.status());
  for (uint32_t r = 0; r < nranks_; ++r) {
    if (cards[r].mailbox_bytes == 0) return fail(Code::kRemote, "rank {} could not set itself up; see its log", r);
  }
  TRY(check_duplicate_gpus(cards, config));
  TRY(mine.engine->connect(cards, *mine.oob));
  agreement.limits.form = mine.engine->form();
  compares_calls_ = kind() == EngineKind::kHost && nranks_ > 1 && config.check_mode == "DEBUG_GLOBAL";
  agreement.limits.direct_bytes = mine.engine->direct_bytes();
  mine.planner = std::make_unique<Planner>(rank_, TRY(agree_on_selection(agreement.limits, config, *mine.oob)),
                                           agreement.rooms);
  mine.reunion = std::make_unique<Reunion>(doors_of(cards, seat.ids[0]), *mine.oob);
  mine.oob->set_patience(patience_usec(config));
  return Status();
}

void Communicator::end_progress(Status status) {
  if (!status.ok()) set_async_error(status.code());
  if (progress_.end()) let_go();
}

Status Communicator::run_in_background(const char* thread_name, std::function<Status()> body) {
  TRY(progress_.run(thread_name, [this, body = std::move(body)] { end_progress(body()); }));
  return Status(Code::kInProgress);
}

// After the barrier no rank is in an operation, nor will be before the last one has resumed.
Status Communicator::suspend() {
  const Use use(*this);
  TRY(refuse_channel());
  TRY(resources_->oob->barrier());
  TRY(resources_->engine->give_back());
  suspended_ = true;
  return Status();
}

Status Communicator::resume() {
  const Use use(*this);
  if (released()) return fail(Code::kInvalidArgument, "comm {} has been aborted", static_cast<const void*>(this));
  const Status mine = resources_->engine->take_back();
  const auto all = TRY(resources_->oob->all_gather_value(mine.code()));
  TRY(mine);
  for (uint32_t r = 0; r < nranks_; ++r) {
    if (all[r] != Code::kSuccess) return fail(Code::kRemote, "rank {} could not resume; see its log", r);
  }
  suspended_ = false;
  return Status();
}

uint64_t Communicator::device_bytes() const {
  const Use use(*this);
  return released() ? 0 : resources_->engine->device_bytes();
}

int Communicator::nvml_index() const {
  const Use use(*this);
  return released() ? -1 : resources_->engine->nvml_index();
}

Status Communicator::finalize() {
  if (released()) return fail(Code::kInvalidArgument, "comm {} has been aborted", static_cast<const void*>(this));
  if (revoked_) {
    return fail(Code::kInvalidArgument, "comm {} has been revoked: destroy it without finalizing",
                static_cast<const void*>(this));
  }
  if (finalized_)
    return fail(Code::kInvalidArgument, "comm {} has already been finalized", static_cast<const void*>(this));
  finalized_ = true;
  return blocking_ ? drain() : run_in_background("talaria-drain", [this] { return drain(); });
}

Status Communicator::settle() {
  progress_.wait();
  if (finalized_) return Status();
  finalized_ = true;
  return drain();
}

Status Communicator::drain() {
  const Use use(*this);  // an abort from another thread must not free the engine that is being drained
  if (released() || resources_ == nullptr || resources_->engine == nullptr) return Status();
  // A kernel may wait for a rank that is gone: looking for that ends its wait.
  while (!resources_->engine->idle()) {
    (void)look_for_fault();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return resources_->engine->drain();
}

void Communicator::release() {
  static std::atomic<Communicator*> released_shells{nullptr};
  if (released_.exchange(true)) return;
  next_released_ = released_shells.load();
  while (!released_shells.compare_exchange_weak(next_released_, this)) {
  }
  if (progress_.abandon()) return;
  let_go();
}

void Communicator::let_go() {
  progress_.close();
  // An abort or a revoke may come while another thread is inside a call: that call notices and leaves. Pairs with
  // QuickUse.
  if (quick_ && (aborted_.load() || revoked_.load())) remote_fence();
  while (uses_.load() > 0 || in_call_.load()) std::this_thread::yield();
  if (resources_ != nullptr && resources_->oob != nullptr) resources_->oob->say_goodbye(Departure::kLeft);
  resources_.reset();
}

void Communicator::abort() {
  aborted_.store(true);
  stop_init_.stop();
  set_async_error(Code::kInternal);
  {
    const std::lock_guard lock(child_mutex_);
    if (child_ != nullptr) child_->abort();
  }
  if (!ready() || resources_ == nullptr) return;
  resources_->oob->say_goodbye(Departure::kAborted);
  resources_->engine->abort();
}

Status Communicator::revoke() {
  const Use use(*this);
  const auto* self = static_cast<const void*>(this);
  if (released() || !ready()) return fail(Code::kInvalidArgument, "CommRevoke : comm {} is not usable", self);
  if (finalized_) return fail(Code::kInvalidArgument, "CommRevoke : comm {} has been finalized", self);
  if (revoked_) return fail(Code::kInvalidArgument, "CommRevoke : comm {} has already been revoked", self);
  end_operations();
  return Status();
}

void Communicator::end_operations() {
  if (revoked_.exchange(true)) return;
  resources_->engine->revoke();
  resources_->oob->say_goodbye(Departure::kRevoked);
}

void Communicator::fault(Code code) {
  faulted_.store(true, std::memory_order_release);
  set_async_error(code);
  if (resources_ == nullptr || resources_->engine == nullptr) return;
  resources_->engine->abort();
  resources_->oob->say_goodbye(Departure::kFailed);
}

void Communicator::fault_unless_refused(Status status) {
  // A refused call has started nothing. Otherwise part of the operations may be under way: the ranks no longer count
  // alike, so none of them may go on.
  const bool refused = status.code() == Code::kInvalidUsage || status.code() == Code::kInvalidArgument;
  if (!status.ok() && !refused && !revoked_) fault(status.code());
}

Status Communicator::refuse_after_fault() const {
  if (released()) return Status();
  const auto fault = resources_->oob->fault();
  if (!fault) return Status();
  set_async_error(Code::kRemote);
  return fail(Code::kRemote, "comm {} rank {} takes no more operations: {}", static_cast<const void*>(this), rank_,
              describe(*fault));
}

Code Communicator::look_for_fault() const {
  const Use use(*this);
  const Code stored = async_error_.load(std::memory_order_acquire);
  if (stored != Code::kSuccess || !ready() || released() || revoked_) return stored;
  const Status health = resources_->engine->health();
  if (!health.ok()) return health.code();
  resources_->oob->listen();
  const auto fault = resources_->oob->settled_fault();
  // To revoke is not to fail: this rank may be about to do it as well.
  if (!fault || fault->how == Departure::kRevoked) return Code::kSuccess;
  // Kernels may be waiting for that rank; a CPU rank's own loop ends its waits, with more to say.
  if (kind() == EngineKind::kDevice) resources_->engine->abort();
  const Status status = fail(Code::kRemote, "comm {} rank {}: {}", static_cast<const void*>(this), rank_,
                             describe(*fault));
  set_async_error(status.code());
  return status.code();
}

std::optional<Departed> Communicator::hear_fault(bool settled) const {
  const Use use(*this);
  if (released() || !ready()) return std::nullopt;
  resources_->oob->listen();
  return settled ? resources_->oob->settled_fault() : resources_->oob->fault();
}

void Communicator::set_async_error(Code code) const {
  Code none = Code::kSuccess;
  async_error_.compare_exchange_strong(none, code);
}

}  // namespace talaria
