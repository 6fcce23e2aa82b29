// Scenario: what the simulator is asked to run, and what it answers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedule/algorithm.h"
#include "schedule/plan.h"
#include "sim/geometry.h"
#include "sim/oracle.h"

namespace talaria::sim {

enum class Verdict : uint8_t {
  kOk,
  kWrongAnswer,      // a result differs from the oracle's, or bytes outside the result changed
  kDeadlock,         // nothing can move, nobody is dead
  kLeftOver,         // everyone is done, a message is not consumed
  kOutOfBounds,      // an access outside a buffer or slot, or a peer or FIFO that does not exist
  kRace,             // bytes read that have not arrived, or accesses that no flag orders
  kSlotOverwritten,  // a slot stored to before its message was consumed
  kBlockedOnDead,    // a rank was killed, and everyone not done waits for it
};
const char* name_of(Verdict verdict);

// Set in Ref::reserved by the mutation tests: this signal is sent without ordering the stores before it.
inline constexpr uint8_t kWeakSignal = 1;
// Packet and ready tags wrap after this many uses, so that every test meets it. Like the real modulus a multiple of the
// depth, so that a stale tag lies where it can be mistaken for a new one.
inline constexpr uint64_t kTagModulus = 16;

// One operation: buffers of every rank that takes part, geometry and expected results. A point-to-point transfer is
// also one: its sender and its receiver take part.
struct Op {
  DataType type = DataType::kInt32;
  ReduceOp reduce = ReduceOp::kNone;
  Channel channel = Channel::kCollectiveBulk;
  Chunking chunking{};
  // Per rank. A null plan: the rank takes no part.
  std::vector<std::shared_ptr<const Plan>> plans;
  std::vector<Extent> extents;
  std::vector<bool> in_place;
  std::vector<Bytes> inputs;
  std::vector<uint64_t> scalars;  // per rank, of PreMulSum: an element in the lowest bytes; else empty
  std::vector<Bytes> expected;
  std::string text;  // for messages
};

// Operations one rank starts together: one kernel launch. Its lanes meet when it ends, and only then may the user touch
// the buffers. `join`: the streams of a lane meet after each operation (collectives); otherwise each stream walks the
// list on its own (point-to-point).
struct Launch {
  bool join = true;
  std::vector<uint32_t> ops;
};

// Rules of the executor that can be broken on purpose, to see that the simulator notices.
struct Sabotage {
  bool keep_old_tags = false;        // the packets before the wrap of the tags are not zeroed
  bool ignore_credit_rule = false;   // credits are never returned per slot
  bool tear_ready = false;           // only one half of a ready word is compared
};

struct Scenario {
  uint32_t nranks = 1;
  uint32_t lanes = 1;  // of every channel
  uint32_t depth = 4;
  uint64_t slot_bytes = 64;
  std::vector<Op> ops;
  std::vector<std::vector<Launch>> programs;  // per rank: the same operations in the same order, grouped as it likes
  std::optional<uint32_t> killed;             // this rank stops after a random number of actions
  Sabotage sabotage;
};

struct Report {
  Verdict verdict = Verdict::kOk;
  std::string text;
  uint64_t actions = 0;
};

// Check mode: runs the scenario under one random interleaving. Ends at the first fault.
Report run_checked(const Scenario& scenario, uint64_t seed);

}  // namespace talaria::sim
