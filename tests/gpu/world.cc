#include "gpu/world.h"

#include <gtest/gtest.h>

#include <exception>
#include <map>
#include <thread>

namespace talaria::gpu_test {
namespace {

// Worlds kept between tests, by number of ranks.
std::map<uint32_t, std::unique_ptr<World>>& kept() {
  static std::map<uint32_t, std::unique_ptr<World>> worlds;
  return worlds;
}

void guarded(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
}

}  // namespace

bool succeeded(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return true;
  ADD_FAILURE() << what << ": " << ncclGetErrorString(result) << ": " << ncclGetLastError(nullptr);
  return false;
}

bool Rank::finish() const {
  if (wait_for(stream->get(), kPatienceSeconds)) return true;
  ncclResult_t async = ncclSuccess;
  ncclCommGetAsyncError(comm, &async);
  ADD_FAILURE() << "rank " << rank << " of " << nranks << " did not finish within " << kPatienceSeconds
                << " s; its state is " << ncclGetErrorString(async);
  return false;
}

std::unique_ptr<World> World::create(uint32_t nranks) {
  if (static_cast<int>(nranks) > gpu_count()) setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  ncclUniqueId id;
  if (!succeeded(ncclGetUniqueId(&id), "ncclGetUniqueId")) return nullptr;
  auto world = std::make_unique<World>();
  for (int device = 0; device < gpu_count(); ++device) {
    auto context = PrimaryContext::retain(device);
    if (!context.ok()) return nullptr;
    world->contexts_.push_back(*context);
  }
  for (uint32_t r = 0; r < nranks; ++r) {
    world->ranks_.push_back(Rank{r, nranks, nullptr, static_cast<int>(r) % gpu_count(), nullptr});
  }
  world->run([&](Rank& rank) {
    rank.stream = std::make_unique<Stream>();
    const ncclResult_t result = ncclCommInitRank(&rank.comm, static_cast<int>(nranks), id, static_cast<int>(rank.rank));
    if (!succeeded(result, "ncclCommInitRank")) world->broken_ = true;
  });
  if (world->broken_) return nullptr;
  return world;
}

World* World::shared(uint32_t nranks) {
  std::unique_ptr<World>& world = kept()[nranks];
  if (world != nullptr && world->broken()) world = nullptr;
  if (world == nullptr) world = create(nranks);
  return world.get();
}

void World::drop_shared() { kept().clear(); }

World::~World() {
  // Destroying is collective, so one thread per rank; memory goes after all of them.
  run([&](Rank& rank) {
    if (rank.comm != nullptr) succeeded(ncclCommDestroy(rank.comm), "ncclCommDestroy");
    rank.send.reset();
    rank.receive.reset();
    rank.stream.reset();
  });
}

void World::reserve(size_t bytes) {
  guarded([&] {
    for (Rank& rank : ranks_) {
      if (rank.send != nullptr && rank.send->bytes() >= bytes) continue;
      Device device(rank.device);
      rank.send = std::make_unique<Buffer>(bytes);
      rank.receive = std::make_unique<Buffer>(bytes);
    }
  });
}

void World::run(const std::function<void(Rank&)>& body) {
  std::vector<std::thread> threads;
  for (Rank& rank : ranks_) {
    threads.emplace_back([&body, &rank] {
      guarded([&] {
        Device device(rank.device);
        body(rank);
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void World::run_in_group(const std::function<void(Rank&)>& body) {
  guarded([&] {
    succeeded(ncclGroupStart(), "ncclGroupStart");
    for (Rank& rank : ranks_) {
      Device device(rank.device);
      body(rank);
    }
    succeeded(ncclGroupEnd(), "ncclGroupEnd");
  });
}

void World::break_up() {
  broken_ = true;
  for (Rank& rank : ranks_) {
    if (rank.comm != nullptr) ncclCommAbort(std::exchange(rank.comm, nullptr));
  }
}

}  // namespace talaria::gpu_test
