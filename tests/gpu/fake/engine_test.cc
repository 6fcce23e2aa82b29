// The host side of the device engine, against a driver without a GPU: what is launched, allocated, ordered, given back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/config.h"
#include "engine/device/batch.h"
#include "engine/device/kernels.h"
#include "gpu/fake/fake_cuda.h"
#include "runtime/engine.h"
#include "schedule/algorithm.h"
#include "service/cuda_context.h"
#include "service/launch_gate.h"

namespace talaria {
namespace {

using fake_cuda::Book;

// All ranks succeed: what the others would say is zero, which is success.
class AgreeingPeers final : public OutOfBand {
 public:
  AgreeingPeers(uint32_t rank, uint32_t nranks) : rank_(rank), nranks_(nranks) {}
  uint32_t rank() const override { return rank_; }
  uint32_t nranks() const override { return nranks_; }
  Status all_gather(std::span<std::byte>) override { return Status(); }
  Status barrier() override { return Status(); }

 private:
  uint32_t rank_, nranks_;
};

Config test_config() {
  Config config = read_config();
  config.multi_rank_gpu_enable = 1;
  config.graph_mixing_support = 1;
  return config;
}

// Entry points of the fake that tests call themselves.
template <typename Signature>
DriverCall<Signature> driver_call(const char* name) {
  return DriverCall<Signature>((*cuda_driver())->library_, name, 10000);
}

class TestStream {
 public:
  explicit TestStream(int device) : context_(*PrimaryContext::retain(device)) {
    ContextGuard guard(*context_);
    context_->driver().stream_create.raw(&stream_, 0);
  }
  ~TestStream() { context_->driver().stream_destroy.raw(stream_); }
  CUstream get() const { return stream_; }
  void begin_capture() {
    const auto begin = driver_call<CUresult(CUstream, CUstreamCaptureMode)>("cuStreamBeginCapture");
    ASSERT_EQ(begin.raw(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  }
  void end_capture() {
    CUgraph graph = nullptr;
    const auto end = driver_call<CUresult(CUstream, CUgraph*)>("cuStreamEndCapture");
    ASSERT_EQ(end.raw(stream_, &graph), CUDA_SUCCESS);
  }

 private:
  std::shared_ptr<PrimaryContext> context_;
  CUstream stream_ = nullptr;
};

// Connected engines of one communicator, and plans for them.
class Fleet {
 public:
  explicit Fleet(std::vector<int> devices, uint64_t other_process_from = UINT64_MAX) {
    const auto nranks = static_cast<uint32_t>(devices.size());
    const ChannelSize sizes[kMailboxChannels] = {{4, 4, 1024}, {4, 4, 4096}, {2, 4, 4096}};
    const MailboxLayout layout = make_mailbox_layout(nranks, sizes);
    std::vector<RankCard> cards;
    for (uint32_t rank = 0; rank < nranks; ++rank) {
      auto engine = make_device_engine(test_config(), devices[rank]);
      EXPECT_TRUE(engine.ok()) << last_error_text();
      engines_.push_back(std::move(*engine));
      auto card = engines_.back()->open(rank, layout);
      EXPECT_TRUE(card.ok()) << last_error_text();
      cards.push_back(*card);
      if (rank >= other_process_from) cards.back().process_hash ^= 1;
    }
    for (uint32_t rank = 0; rank < std::min<uint64_t>(nranks, other_process_from); ++rank) {
      AgreeingPeers peers(rank, nranks);
      EXPECT_TRUE(engines_[rank]->connect(cards, peers).ok()) << last_error_text();
    }
    for (uint32_t rank = 0; rank < nranks; ++rank) {
      const Shape shape{Operation::kAllReduce, 0, rank, nranks, Form::kStaged};
      plans_.push_back(std::make_unique<Plan>(find_algorithm("two_shot")->build(shape)));
      EXPECT_TRUE(plans_.back()->seal().ok());
    }
  }

  Engine& engine(uint32_t rank) { return *engines_[rank]; }
  Work work(uint32_t rank, DataType type = DataType::kFloat32, uint64_t count = 5000) {
    Work work{};
    const Collective collective{Operation::kAllReduce, type, ReduceOp::kSum, 0, count};
    work.plan = plans_[rank]->view();
    work.chunking = chunking_for(collective, static_cast<uint32_t>(engines_.size()), plans_[rank]->blocks(), 4, 4096);
    work.type = static_cast<uint8_t>(type);
    work.reduce = static_cast<uint8_t>(ReduceOp::kSum);
    work.channel = static_cast<uint8_t>(Channel::kCollectiveBulk);
    work.join = 1;
    return work;
  }
  Submission submission(uint32_t rank, CUstream stream, std::vector<Work> works) {
    return Submission{engines_[rank].get(), stream, std::move(works)};
  }
  Status run(std::vector<Submission> submissions) {
    std::vector<Submission*> pointers;
    for (Submission& submission : submissions) pointers.push_back(&submission);
    return submissions.front().engine->run(pointers);
  }
  Status run_one(uint32_t rank, CUstream stream) { return run({submission(rank, stream, {work(rank)})}); }
  void drop(uint32_t rank) { engines_[rank].reset(); }

 private:
  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<std::unique_ptr<Plan>> plans_;
};

class DeviceEngineHost : public testing::Test {
 protected:
  void SetUp() override {
    LaunchGate::instance().collect();
    book() = Book{.launches = {}, .live_allocations = book().live_allocations, .refused = {}};
  }
  void TearDown() override {
    EXPECT_EQ(book().context_depth, 0) << "a call left another context current";
    EXPECT_EQ(book().refused, std::vector<std::string>());
  }
  static Book& book() { return *fake_cuda_book(); }
  static Batch batch(size_t launch) {
    Batch batch;
    static_assert(sizeof batch <= 3 * 1024);
    std::memcpy(static_cast<void*>(&batch), book().launches.at(launch).parameter.data(), sizeof batch);
    return batch;
  }
};

TEST_F(DeviceEngineHost, RanksOfOneGpuAndStreamShareALaunch) {
  Fleet fleet({0, 0});
  TestStream stream(0);
  ASSERT_TRUE(fleet.run({fleet.submission(0, stream.get(), {fleet.work(0)}),
                         fleet.submission(1, stream.get(), {fleet.work(1)})}).ok());
  ASSERT_EQ(book().launches.size(), 1u);
  const Batch got = batch(0);
  ASSERT_EQ(got.entries, 2u);
  EXPECT_NE(got.entry[0].comm, got.entry[1].comm);
  EXPECT_EQ(got.entry[0].first_work, 0u);
  EXPECT_EQ(got.entry[1].first_work, 1u);
  EXPECT_EQ(got.entry[0].lanes, fleet.work(0).chunking.lanes);
  EXPECT_EQ(got.entry[1].first_block, got.entry[0].lanes);
  EXPECT_EQ(book().launches[0].grid, got.entry[0].lanes + got.entry[1].lanes);
  EXPECT_EQ(book().launches[0].block % (32 * got.streams), 0u);
  EXPECT_EQ(got.spilled_works, nullptr);
}

TEST_F(DeviceEngineHost, RanksOfTwoGpusGetALaunchEach) {
  Fleet fleet({0, 1});
  TestStream first(0), second(1);
  ASSERT_TRUE(fleet.run({fleet.submission(0, first.get(), {fleet.work(0)}),
                         fleet.submission(1, second.get(), {fleet.work(1)})}).ok());
  ASSERT_EQ(book().launches.size(), 2u);
  EXPECT_EQ(book().launches[0].stream, first.get());
  EXPECT_EQ(book().launches[1].stream, second.get());
}

TEST_F(DeviceEngineHost, AnotherKernelMeansAnotherLaunchInOrder) {
  Fleet fleet({0, 0});
  TestStream stream(0);
  const auto works = [&](uint32_t rank) {
    return std::vector<Work>{fleet.work(rank), fleet.work(rank), fleet.work(rank, DataType::kInt8), fleet.work(rank)};
  };
  const Status status =
      fleet.run({fleet.submission(0, stream.get(), works(0)), fleet.submission(1, stream.get(), works(1))});
  ASSERT_TRUE(status.ok());
  ASSERT_EQ(book().launches.size(), 3u);
  EXPECT_EQ(batch(0).entry[1].works, 2u);
  EXPECT_EQ(batch(1).entry[1].works, 1u);
  EXPECT_EQ(batch(2).entry[1].works, 1u);
  EXPECT_EQ(book().launches[0].kernel, book().launches[2].kernel);
  EXPECT_EQ(book().launches[1].kernel, kernel_name(key_of(fleet.work(0, DataType::kInt8))));
}

TEST_F(DeviceEngineHost, WorksBeyondTheParametersGoThroughPinnedMemory) {
  Fleet fleet({0});
  TestStream stream(0);
  std::vector<Work> works(kInlineWorks + 6, fleet.work(0));
  for (size_t i = 0; i < works.size(); ++i) works[i].sequence = i;
  for (int round = 0; round < 3; ++round) ASSERT_TRUE(fleet.run({fleet.submission(0, stream.get(), works)}).ok());
  ASSERT_EQ(book().launches.size(), 3u);
  const Batch got = batch(0);
  ASSERT_NE(got.spilled_works, nullptr);
  for (size_t i = 0; i < works.size(); ++i) EXPECT_EQ(got.spilled_works[i].sequence, i);
  EXPECT_EQ(batch(1).spilled_works, got.spilled_works) << "the slot was free again";
}

TEST_F(DeviceEngineHost, SlotsInUseAreNotOverwritten) {
  Fleet fleet({0});
  TestStream stream(0);
  const std::vector<Work> works(kInlineWorks + 1, fleet.work(0));
  fake_cuda_hold_work(1);
  for (int round = 0; round < 2; ++round) ASSERT_TRUE(fleet.run({fleet.submission(0, stream.get(), works)}).ok());
  fake_cuda_hold_work(0);
  EXPECT_NE(batch(0).spilled_works, batch(1).spilled_works);
}

TEST_F(DeviceEngineHost, PlansReachTheDeviceOnceAndRepeatedCallsAllocateNothing) {
  Fleet fleet({0});
  TestStream stream(0);
  ASSERT_TRUE(fleet.run_one(0, stream.get()).ok());
  const int allocations = book().allocations;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(fleet.run_one(0, stream.get()).ok());
  EXPECT_EQ(book().allocations, allocations);
  const Work first = batch(0).works[0];
  const PlanView host = fleet.work(0).plan;
  EXPECT_NE(first.plan.steps, host.steps);
  const size_t steps = host.streams[0].prologue + host.streams[0].body;
  EXPECT_EQ(std::memcmp(first.plan.steps, host.steps, sizeof(Step) * steps), 0);
  EXPECT_EQ(std::memcmp(first.plan.refs, host.refs, sizeof(Ref) * host.steps[0].sources), 0);
  EXPECT_EQ(batch(5).works[0].plan.steps, first.plan.steps);
}

TEST_F(DeviceEngineHost, WaitsOnlyWhenTheStreamChanges) {
  Fleet fleet({0});
  TestStream first(0), second(0);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(fleet.run_one(0, first.get()).ok());
  EXPECT_EQ(book().stream_waits, 0);
  ASSERT_TRUE(fleet.run_one(0, second.get()).ok());
  EXPECT_EQ(book().stream_waits, 1);
}

TEST_F(DeviceEngineHost, OneEnginesStreamsKeepTheirOrderWithinAGroup) {
  Fleet fleet({0});
  TestStream first(0), second(0);
  ASSERT_TRUE(fleet.run({fleet.submission(0, first.get(), {fleet.work(0)}),
                         fleet.submission(0, second.get(), {fleet.work(0)}),
                         fleet.submission(0, first.get(), {fleet.work(0)})}).ok());
  ASSERT_EQ(book().launches.size(), 3u);
  EXPECT_EQ(book().launches[1].stream, second.get());
  EXPECT_EQ(book().stream_waits, 2);
}

TEST_F(DeviceEngineHost, FirstCallInsideAGlobalCaptureDisturbsNothing) {
  Fleet fleet({0});
  TestStream stream(0);
  stream.begin_capture();
  const std::vector<Work> works(kInlineWorks + 1, fleet.work(0));
  EXPECT_TRUE(fleet.run({fleet.submission(0, stream.get(), works)}).ok());
  EXPECT_TRUE(fleet.run_one(0, stream.get()).ok());
  EXPECT_TRUE(fleet.run_one(0, stream.get()).ok());
  EXPECT_TRUE(fleet.engine(0).health().ok());
  EXPECT_TRUE(fleet.engine(0).drain().ok());
  stream.end_capture();
  EXPECT_EQ(book().external_waits, 1) << "one per graph";
  EXPECT_EQ(book().record_nodes, 1);
  EXPECT_EQ(book().record_edges, 1) << "behind the last operation only";
}

TEST_F(DeviceEngineHost, EagerCallsWaitForReplays) {
  Fleet fleet({0});
  TestStream stream(0);
  ASSERT_TRUE(fleet.run_one(0, stream.get()).ok());
  stream.begin_capture();
  ASSERT_TRUE(fleet.run_one(0, stream.get()).ok());
  stream.end_capture();
  ASSERT_TRUE(fleet.run_one(0, stream.get()).ok());
  EXPECT_EQ(book().stream_waits, 1);
}

TEST_F(DeviceEngineHost, TwoRanksOneAfterTheOtherOnOneStreamAreRefused) {
  Fleet fleet({0, 0});
  TestStream stream(0), other(0);
  EXPECT_TRUE(fleet.run_one(0, stream.get()).ok());
  EXPECT_EQ(fleet.run_one(1, stream.get()).code(), Code::kInvalidUsage);
  EXPECT_NE(std::string(last_error_text()).find("rank 0 and rank 1"), std::string::npos) << last_error_text();
  EXPECT_TRUE(fleet.run_one(1, other.get()).ok()) << "a stream each is fine";
  EXPECT_EQ(book().launches.size(), 2u);
}

TEST_F(DeviceEngineHost, PeersInOtherProcessesAreImportedAndGivenBack) {
  {
    Fleet fleet({0, 1}, 1);
    EXPECT_EQ(book().ipc_opens, 1);
    fake_cuda_hold_work(1);
    fleet.drop(0);
    EXPECT_EQ(book().ipc_closes, 0) << "closing waits for the whole GPU: not while work is in flight";
    fake_cuda_hold_work(0);
  }
  LaunchGate::instance().collect();
  EXPECT_EQ(book().ipc_closes, 1);
  EXPECT_EQ(LaunchGate::instance().retired(), 0u);
  EXPECT_EQ(book().live_allocations, 0);
}

TEST_F(DeviceEngineHost, FaultsAreReportedByName) {
  Fleet fleet({0});
  TestStream stream(0);
  EXPECT_TRUE(fleet.engine(0).health().ok());
  ASSERT_TRUE(fleet.run_one(0, stream.get()).ok());
  const DeviceComm* comm = batch(0).entry[0].comm;  // memory of the fake is host memory
  EXPECT_EQ(*comm->abort_word, 0u);
  fleet.engine(0).abort();
  EXPECT_NE(*comm->abort_word, 0u);
  *comm->fault = FaultRecord{1, 1, 7, 0, 2, 3, 42};
  EXPECT_EQ(fleet.engine(0).health().code(), Code::kRemote);
  EXPECT_NE(std::string(last_error_text()).find("rank 7"), std::string::npos) << last_error_text();
}

TEST_F(DeviceEngineHost, RanksOfOneGpuNeedTheVariable) {
  Config config = test_config();
  config.multi_rank_gpu_enable = 0;
  auto engine = make_device_engine(config, 0);
  ASSERT_TRUE(engine.ok());
  const ChannelSize sizes[kMailboxChannels] = {{1, 4, 1024}, {1, 4, 1024}, {1, 4, 1024}};
  auto card = (*engine)->open(0, make_mailbox_layout(2, sizes));
  ASSERT_TRUE(card.ok());
  EXPECT_EQ((*engine)->bus_id(), "0000:1b:00.0") << "lower case, as in sysfs";
  RankCard cards[2] = {*card, *card};
  AgreeingPeers peers(0, 2);
  EXPECT_EQ((*engine)->connect(cards, peers).code(), Code::kInvalidUsage);
  EXPECT_NE(std::string(last_error_text()).find("Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1b000"),
            std::string::npos)
      << last_error_text();
}

TEST_F(DeviceEngineHost, CurrentDeviceFollowsTheCallersContext) {
  EXPECT_EQ(*current_device(), 0) << "no context: the CUDA runtime's default";
  auto context = PrimaryContext::retain(1);
  ContextGuard guard(**context);
  EXPECT_EQ(*current_device(), 1);
  Config config = test_config();
  EXPECT_EQ(visible_devices(config), 2);
  config.device = "host";
  EXPECT_EQ(visible_devices(config), 0);
}

}  // namespace
}  // namespace talaria
