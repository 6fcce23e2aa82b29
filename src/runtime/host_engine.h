// HostEngine: a CPU rank. Mailbox in shared memory, works run by the calling thread.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/host/executor.h"
#include "runtime/engine.h"
#include "transport/shared_memory.h"

namespace talaria {

class HostEngine final : public Engine {
 public:
  explicit HostEngine(const Config& config);
  EngineKind kind() const override { return EngineKind::kHost; }
  Result<RankCard> open(uint32_t rank, const MailboxLayout& layout) override;
  Status connect(std::span<const RankCard> cards, OutOfBand& oob) override;
  Form form() const override { return form_; }
  Status run(std::span<Submission* const> submissions) override;
  void abort() override { aborted_.store(true, std::memory_order_release); }
  Status drain() override { return Status(); }
  Status health() override { return aborted_.load(std::memory_order_acquire) ? Status(Code::kRemote) : Status(); }

 private:
  static void leave_half_done(std::span<Submission* const> submissions);
  static Status check_peers(std::span<Submission* const> submissions);
  Status check_patience(std::span<Submission* const> submissions, double idle_since);
  // Why this rank's wait will never end, if so.
  std::optional<Departed> hopeless();
  Departure whereabouts(uint32_t peer);
  std::string describe_wait() const;
  Status connect_peer(const RankCard& mine, const RankCard& peer, PeerHandle& handle);

  Config config_;
  HostRank rank_;
  HostExecutor executor_;
  SharedMemory mailbox_;
  std::vector<SharedMemory> opened_;
  OutOfBand* oob_ = nullptr;
  std::vector<int> processes_;  // of each rank in another process of this PID namespace, else 0
  std::vector<bool> missed_;    // departed peers waited for at an earlier look
  std::vector<double> ended_since_;  // per rank: when its process was first seen to have ended
  Form form_ = Form::kStaged;
  bool crowded_ = false;  // more ranks of this communicator on this host than cores for them
  std::atomic<bool> aborted_{false};
};

}  // namespace talaria
