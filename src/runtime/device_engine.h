// DeviceEngine: carries out the works of one rank on a GPU.
//
// One thread at a time, except abort() and health().
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "base/config.h"
#include "runtime/engine.h"
#include "runtime/launcher.h"
#include "service/nvml.h"

namespace talaria {

class DeviceEngine final : public Engine {
 public:
  static Result<std::unique_ptr<Engine>> create(const Config& config, int device);
  DeviceEngine(const Config& config, std::string bus_id, std::shared_ptr<DeviceState> state);
  ~DeviceEngine() override;

  EngineKind kind() const override { return EngineKind::kDevice; }
  std::string bus_id() const override { return bus_id_; }
  uint32_t multiprocessors() const override { return multiprocessors_; }
  Result<RankCard> open(uint32_t rank, const MailboxLayout& layout) override;
  Status connect(std::span<const RankCard> cards, OutOfBand& oob) override;
  Form form() const override { return Form::kStaged; }
  Status run(std::span<Submission* const> submissions) override;
  void abort() override;
  bool idle() override;
  Status drain() override;
  Status health() override;
  uint64_t device_bytes() const override { return map_.bytes + state_->plans.bytes(); }
  int nvml_index() const override { return nvml_index_of(bus_id_); }

 private:
  // Offsets of the parts of DeviceState::memory.
  struct MemoryMap {
    uint64_t fifos[kMailboxChannels];
    uint64_t peers;
    uint64_t comm;
    uint64_t bytes;
  };
  static MemoryMap map_memory(const MailboxLayout& layout);
  Status map_peers(std::span<const RankCard> cards);
  Status write_comm();

  Config config_;
  std::string bus_id_;
  uint32_t multiprocessors_ = 0;
  std::shared_ptr<DeviceState> state_;
  Launcher launcher_;
  MailboxLayout layout_{};
  MemoryMap map_{};
  bool opened_ = false;
  std::atomic<bool> fault_reported_{false};
};

}  // namespace talaria
