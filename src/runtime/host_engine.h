// HostEngine: a CPU rank. Works are run by the calling thread. Peers store to each other's mailboxes where they share
// memory, and are told over TCP where they do not.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/host/executor.h"
#include "runtime/engine.h"
#include "transport/shared_memory.h"
#include "transport/tcp_links.h"

namespace talaria {

class HostEngine final : public Engine {
 public:
  explicit HostEngine(const Config& config);
  EngineKind kind() const override { return EngineKind::kHost; }
  Result<RankCard> open(uint32_t rank, const MailboxLayout& layout) override;
  Status connect(std::span<const RankCard> cards, OutOfBand& oob) override;
  Form form() const override { return form_; }
  uint64_t direct_bytes() const override { return direct_bytes_; }
  Status run(std::span<Submission* const> submissions) override;
  void abort() override { aborted_.store(true, std::memory_order_release); }
  void revoke() override {
    revoked_.store(true, std::memory_order_relaxed);
    abort();
  }
  bool gone(uint32_t rank) const override;
  Status drain() override { return Status(); }
  Status give_back() override;
  Status take_back() override;
  Status health() override { return aborted_.load(std::memory_order_acquire) ? Status(Code::kRemote) : Status(); }

 private:
  class Working;
  static void leave_half_done(std::span<Submission* const> submissions);
  static Status check_peers(std::span<Submission* const> submissions);
  Status check_patience(std::span<Submission* const> submissions, double idle_since);
  // Why this rank's wait will never end, if so.
  std::optional<Departed> hopeless();
  Departure whereabouts(uint32_t peer);
  // The kernel has denied a peer's buffer for so long that it is not for the end of its process.
  bool is_denied();
  std::string describe_wait() const;
  const char* ending() const { return revoked_.load(std::memory_order_relaxed) ? "revoked" : "aborted"; }
  Status refuse() const;
  Result<SharedMemory> make_mailbox(size_t bytes) const;
  std::vector<std::span<std::byte>> idle_slots();
  Result<bool> map_peer(const RankCard& mine, const RankCard& peer, PeerHandle& handle);
  Status map_peers(std::span<const RankCard> cards, std::vector<bool>& opened);
  Status link_peers(const std::vector<bool>& mapped, OutOfBand& oob);
  bool done() const { return executor_.done() && (links_ == nullptr || links_->flushed()); }
  // Sends what the executor has put for proxied peers, takes what has come from them.
  bool exchange();
  void set_working(bool working);
  Departure linked_whereabouts(uint32_t peer, Departure heard);
  std::string describe_departed(const Departed& departed) const;
  // Direct if every rank can touch the user buffers of every other. Collective.
  Status agree_on_form(std::span<const RankCard> cards, bool all_mapped, OutOfBand& oob);
  // Can this rank touch the user buffers of every rank? Logs why not.
  bool reaches_buffers(std::span<const RankCard> cards);
  // The owner's decision: buffers that the kernel shows to no other process are staged.
  void stage_unreachable(Work& work);

  Config config_;
  HostRank rank_;
  HostExecutor executor_;
  SharedMemory mailbox_;
  std::vector<SharedMemory> opened_;
  std::unique_ptr<TcpLinks> links_;  // null: all peers are mapped
  OutOfBand* oob_ = nullptr;
  std::vector<int> processes_;  // of each rank in another process of this PID namespace, else 0
  std::vector<bool> missed_;    // departed peers waited for at an earlier look
  std::vector<double> ended_since_;  // per rank: when its process was first seen to have ended
  double denied_since_ = 0;
  Form form_ = Form::kStaged;
  uint64_t direct_bytes_ = 0;
  uint64_t nonce_ = 0;
  bool crowded_ = false;  // more ranks of this communicator on this host than cores for them
  std::atomic<bool> aborted_{false};
  std::atomic<bool> revoked_{false};  // written before aborted_
};

}  // namespace talaria
