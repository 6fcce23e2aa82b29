#include "emulated/cuda.h"

#include <sched.h>
#include <setjmp.h>
#include <ucontext.h>

#include <map>
#include <memory>
#include <vector>

thread_local emulated::Index threadIdx, blockIdx, blockDim;

namespace emulated {
namespace {

constexpr size_t kStackBytes = 64 << 10;
constexpr uint32_t kWarp = 32, kFirstWarpBarrier = 64;

struct Barrier {
  uint32_t arrived = 0;
  uint64_t generation = 0;
  bool value = false;
  bool result = false;
};

// A context starts a fiber; after that _setjmp and _longjmp switch, which make no system call.
struct Fiber {
  ucontext_t context;
  jmp_buf where;
  bool started = false;
  std::unique_ptr<char[]> stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
  bool done = false;
};

// The block that this operating-system thread runs.
struct Block {
  jmp_buf scheduler;
  std::vector<Fiber> fibers;
  std::map<uint32_t, Barrier> barriers;
  const std::function<void()>* body;
  uint64_t random;
  uint32_t current = 0;

  uint64_t next_random() {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    return random;
  }
};
thread_local Block* block = nullptr;

void enter() {
  (*block->body)();
  block->fibers[block->current].done = true;
  _longjmp(block->scheduler, 1);
}

void resume(uint32_t index) {
  block->current = index;
  threadIdx.x = index;
  Fiber& fiber = block->fibers[index];
  if (_setjmp(block->scheduler) != 0) return;
  if (fiber.started) _longjmp(fiber.where, 1);
  fiber.started = true;
  setcontext(&fiber.context);
}

}  // namespace

bool run_block(uint32_t index, uint32_t threads, uint64_t seed, const std::atomic<bool>& stop,
               const std::function<void()>& body) {
  Block own;
  own.fibers.resize(threads);
  own.body = &body;
  own.random = seed * 2654435761u + index + 1;
  block = &own;
  blockIdx.x = index;
  blockDim.x = threads;
  for (Fiber& fiber : own.fibers) {
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, enter, 0);
  }
  uint32_t left = threads;
  while (left > 0 && !stop.load(std::memory_order_relaxed)) {
    const uint32_t first = static_cast<uint32_t>(own.next_random() % threads);
    for (uint32_t i = 0; i < threads; ++i) {
      const uint32_t fiber = (first + i) % threads;
      if (own.fibers[fiber].done) continue;
      resume(fiber);
      if (own.fibers[fiber].done) --left;
    }
    sched_yield();
  }
  block = nullptr;
  return left == 0;
}

void yield() {
  if (_setjmp(block->fibers[block->current].where) == 0) _longjmp(block->scheduler, 1);
}

void maybe_yield() {
  if (block->next_random() % 8 == 0) yield();
}

bool barrier(uint32_t id, uint32_t threads, bool value) {
  Barrier& here = block->barriers[id];
  here.value |= value;
  if (++here.arrived == threads) {
    here.result = here.value;
    here.value = false;
    here.arrived = 0;
    ++here.generation;
    return here.result;
  }
  for (const uint64_t generation = here.generation; here.generation == generation;) yield();
  return here.result;
}

bool warp_or(bool value) { return barrier(kFirstWarpBarrier + threadIdx.x / kWarp, kWarp, value); }

}  // namespace emulated
