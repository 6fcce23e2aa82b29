#include "runtime/device_engine.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/os.h"
#include "engine/device/kernels.h"
#include "runtime/rank_cards.h"
#include "service/cuda_driver.h"

namespace talaria {
namespace {

constexpr uint64_t kAlignment = 256;
constexpr uint64_t kIpcUnit = 2 << 20;  // the driver shares whole units of this size

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

Result<std::shared_ptr<const DeviceKernels>> load_kernels(ContextPtr context) {
  std::vector<KernelName> names;
  for (const KernelInfo& kernel : kernel_table()) names.push_back(KernelName{kernel.name, kernel.image});
  return DeviceKernels::load(KernelSource{device_images(), names}, std::move(context));
}

Status copy_now(const DeviceState& state, CUdeviceptr to, const void* from, size_t bytes) {
  ContextGuard guard(*state.context);
  TRY(guard.status());
  RelaxedCapture relaxed(state.context->driver());
  TRY(state.context->driver().copy_to_device_async(to, from, bytes, state.upload.get()));
  return state.context->driver().stream_synchronize(state.upload.get());
}

Result<std::string> read_bus_id(const PrimaryContext& context) {
  char text[32] = {};
  TRY(context.driver().device_get_pci_bus_id(text, sizeof text, context.device()));
  std::string id = text;
  for (char& c : id) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return id;
}

// Every rank learns every rank's verdict, so that one failure ends the set-up of all instead of leaving them waiting.
Status agree(Status mine, OutOfBand& oob) {
  const std::vector<int32_t> codes = TRY(oob.all_gather_value(static_cast<int32_t>(mine.code())));
  if (!mine.ok()) return mine;
  for (size_t rank = 0; rank < codes.size(); ++rank) {
    if (codes[rank] == 0) continue;
    return fail(Code::kRemote, "rank {} could not set up its device: {}", rank, error_string(codes[rank]));
  }
  return Status();
}

}  // namespace

Result<std::unique_ptr<Engine>> DeviceEngine::create(const Config& config, int device) {
  auto state = std::make_shared<DeviceState>();
  state->context = TRY(PrimaryContext::retain(device));
  state->kernels = TRY(load_kernels(state->context));
  state->upload = TRY(CudaStream::create(state->context));
  state->control = TRY(PinnedBlock::allocate(state->context, sizeof(ControlWords)));
  state->order = TRY(StreamOrder::create(state->context, config.graph_mixing_support != 0));
  state->plans = DevicePlans(state->context);
  state->spill = SpillPool(state->context);
  state->fused = config.fused != 0;
  std::string bus_id = TRY(read_bus_id(*state->context));
  int multiprocessors = 0;
  TRY(state->context->driver().device_get_attribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                                    state->context->device()));
  auto engine = std::make_unique<DeviceEngine>(config, std::move(bus_id), std::move(state));
  engine->multiprocessors_ = static_cast<uint32_t>(multiprocessors);
  return std::unique_ptr<Engine>(std::move(engine));
}

DeviceEngine::DeviceEngine(const Config& config, std::string bus_id, std::shared_ptr<DeviceState> state)
    : config_(config), bus_id_(std::move(bus_id)), state_(std::move(state)) {
  LaunchGate::instance().enter(state_);
}

DeviceEngine::~DeviceEngine() { LaunchGate::instance().retire(std::move(state_)); }

DeviceEngine::MemoryMap DeviceEngine::map_memory(const MailboxLayout& layout) {
  MemoryMap map{};
  uint64_t offset = round_up(layout.bytes, kAlignment);
  const auto reserve = [&offset](uint64_t bytes) {
    const uint64_t start = offset;
    offset = round_up(offset + bytes, kAlignment);
    return start;
  };
  for (uint32_t c = 0; c < kMailboxChannels; ++c) {
    map.fifos[c] = reserve(layout.fifo_index(c, layout.nranks, 0, 0) * sizeof(FifoState));
  }
  map.peers = reserve(layout.nranks * sizeof(std::byte*));
  map.comm = reserve(sizeof(DeviceComm));
  map.bytes = round_up(offset, kIpcUnit);
  return map;
}

Result<RankCard> DeviceEngine::open(uint32_t rank, const MailboxLayout& layout) {
  layout_ = layout;
  map_ = map_memory(layout);
  state_->rank = rank;
  state_->memory = TRY(DeviceBlock::allocate(state_->context, map_.bytes, state_->upload.get()));
  state_->comm = state_->memory.address() + map_.comm;
  log_info(kLogAlloc, "rank {}: {} bytes of device memory", rank, map_.bytes);

  RankCard card{};
  card.host_hash = host_hash(config_.host_id);
  card.process_hash = process_hash();
  card.kind = EngineKind::kDevice;
  card.device = state_->context->ordinal();
  std::memcpy(card.bus_id, bus_id_.data(), std::min(bus_id_.size(), sizeof card.bus_id - 1));
  card.mailbox_address = state_->memory.address();
  card.mailbox_bytes = layout.bytes;
  export_mailbox(*state_->context, state_->memory.address(), card.mailbox_handle);
  return card;
}

Status DeviceEngine::map_peers(std::span<const RankCard> cards) {
  const RankCard& own = cards[state_->rank];
  state_->peers.resize(cards.size());
  uint32_t here = 0;
  for (uint32_t rank = 0; rank < cards.size(); ++rank) {
    const RankCard& card = cards[rank];
    if (card.host_hash != own.host_hash) {
      return fail(Code::kInvalidUsage, "rank {} runs on another host than rank {}: not supported yet", rank,
                  state_->rank);
    }
    const bool same_process = card.process_hash == own.process_hash;
    const MailboxLocation location{rank, same_process, card.device, card.mailbox_address, card.mailbox_handle};
    state_->peers[rank] = TRY(PeerMapping::open(state_->context, location));
    if (same_process && card.device == own.device) ++here;
  }
  if (here > 1) state_->shared = SharedGpu::of(communicator_identity(cards), own.device);
  return Status();
}

Status DeviceEngine::write_comm() {
  const CUdeviceptr memory = state_->memory.address();
  std::vector<CUdeviceptr> peers;
  for (const PeerMapping& peer : state_->peers) peers.push_back(peer.address());
  TRY(copy_now(*state_, memory + map_.peers, peers.data(), peers.size() * sizeof(CUdeviceptr)));

  DeviceComm comm{};
  comm.rank = state_->rank;
  comm.nranks = layout_.nranks;
  comm.layout = layout_;
  comm.mailbox = reinterpret_cast<std::byte*>(memory);
  comm.peers = reinterpret_cast<std::byte* const*>(memory + map_.peers);
  for (uint32_t c = 0; c < kMailboxChannels; ++c) {
    comm.fifos[c] = reinterpret_cast<FifoState*>(memory + map_.fifos[c]);
  }
  const CUdeviceptr control = state_->control.device();
  comm.abort_word = reinterpret_cast<const uint32_t*>(control + offsetof(ControlWords, abort));
  comm.fault = reinterpret_cast<FaultRecord*>(control + offsetof(ControlWords, fault));
  return copy_now(*state_, state_->comm, &comm, sizeof comm);
}

Status DeviceEngine::connect(std::span<const RankCard> cards, OutOfBand& oob) {
  TRY(check_duplicate_gpus(cards, config_));
  Status status = map_peers(cards);
  if (status.ok()) status = write_comm();
  TRY(agree(status, oob));
  opened_ = true;
  return Status();
}

Status DeviceEngine::run(std::span<Submission* const> submissions) {
  launcher_.begin();
  for (const Submission* submission : submissions) {
    auto& engine = static_cast<DeviceEngine&>(*submission->engine);
    if (!engine.opened_) return fail(Code::kInternal, "rank {} is not connected", engine.state_->rank);
    TRY(launcher_.add(*engine.state_, static_cast<CUstream>(submission->stream), submission->works));
  }
  return launcher_.launch_all();
}

void DeviceEngine::abort() {
  std::atomic_ref<uint32_t>(state_->words().abort).store(1, std::memory_order_release);
}

bool DeviceEngine::idle() { return state_->order.reached(); }

Status DeviceEngine::drain() { return state_->order.drain(); }

Status DeviceEngine::health() {
  FaultRecord& fault = state_->words().fault;
  if (std::atomic_ref<uint32_t>(fault.valid).load(std::memory_order_acquire) != kFaultWritten) return Status();
  if (fault_reported_.exchange(true)) return Status(Code::kRemote);
  return fail(Code::kRemote, "rank {} gave up waiting for rank {}: operation {}, step {}, lane {}, place {} ({})",
              state_->rank, fault.peer, fault.sequence, fault.step, fault.lane, fault.place,
              fault.reason == static_cast<uint32_t>(FaultReason::kAborted) ? "aborted" : "a step this engine lacks");
}

// --- the seam of runtime/engine.h

int visible_devices(const Config& config) {
  if (config.device == "host") return 0;
  const CudaDriver* driver = find_cuda_driver();
  int count = 0;
  return driver != nullptr && driver->device_get_count.raw(&count) == CUDA_SUCCESS ? count : 0;
}

Result<int> current_device() {
  const CudaDriver* driver = TRY(cuda_driver());
  CUcontext context = nullptr;
  TRY(driver->context_get(&context));
  if (context == nullptr) return 0;  // as the CUDA runtime sees a thread that has chosen no device
  CUdevice device = 0;
  TRY(driver->context_get_device(&device));
  return static_cast<int>(device);
}

Result<std::unique_ptr<Engine>> make_device_engine(const Config& config, int device) {
  return DeviceEngine::create(config, device);
}

}  // namespace talaria
