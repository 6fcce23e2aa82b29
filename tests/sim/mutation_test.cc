// The simulator checked by mutation: every wait, signal, credit and order of every plan is broken, one at a time. Each
// mutant must be caught, or be one of kJustified, which says why it is no fault; each row of kJustified must be needed.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "sim/cases.h"
#include "sim/mutation.h"

namespace talaria::sim {
namespace {

struct Kind {
  const Algorithm* algorithm;
  Operation operation;
  Form form;
};

std::vector<Kind> all_kinds() {
  std::vector<Kind> kinds;
  for (const Algorithm& algorithm : algorithm_catalog()) {
    for (int operation = 0; operation < kOperations; ++operation) {
      for (Form form : {Form::kStaged, Form::kDirect}) {
        const Kind kind{&algorithm, static_cast<Operation>(operation), form};
        if (algorithm.serves(kind.operation, 2, form)) kinds.push_back(kind);
      }
    }
  }
  return kinds;
}

std::string kind_name(const Kind& kind) {
  return std::string(kind.algorithm->name) + "_" + name_of(kind.operation) +
         (kind.form == Form::kDirect ? "_direct" : "_staged");
}

// A survivor that is no fault. An absent field matches anything.
struct Justification {
  const char* kind;
  Change change;
  std::optional<Place> place;
  std::optional<uint32_t> steps_after;
  std::optional<uint32_t> nranks;
  const char* reason;
};

constexpr char kNothingStored[] =
    "done orders what its sender did to the peer's buffers; here it only read, so no store may be late";
constexpr char kOneWay[] =
    "the operation sends nothing to this peer (with two ranks: its slots are also credited at the start), so without "
    "the acknowledgement earlier messages just stay outstanding until the next operation acknowledges or credits them; "
    "these are at most half the FIFO";
constexpr char kHeardAround[] =
    "the last message received has depended, hop by hop, on the next rank's first one: it too has been heard";
constexpr char kCumulative[] =
    "the step after it waits for no slot and returns its own credit, and credits are cumulative";
constexpr char kAnswered[] =
    "between two ranks the message just received was sent after the peer had consumed all but the last message, and "
    "there are two slots";
constexpr char kHoldsNothing[] =
    "between two ranks no step of it holds a message while it waits for a slot, so implied acknowledgements would do";

const Justification kJustified[] = {
    {"two_shot_ReduceScatter_direct", Change::kWeakenSignal, Place::kDone, {}, {}, kNothingStored},
    {"two_shot_Broadcast_direct", Change::kWeakenSignal, Place::kDone, {}, {}, kNothingStored},
    {"pairwise_Scatter_direct", Change::kWeakenSignal, Place::kDone, {}, {}, kNothingStored},
    {"two_shot_Broadcast_staged", Change::kDropImpliedAck, {}, {}, {}, kOneWay},
    {"ring_Broadcast_staged", Change::kDropImpliedAck, {}, {}, {}, kOneWay},
    {"ring_Reduce_staged", Change::kDropImpliedAck, {}, {}, {}, kOneWay},
    {"tree_Broadcast_staged", Change::kDropImpliedAck, {}, {}, {}, kOneWay},
    {"tree_Reduce_staged", Change::kDropImpliedAck, {}, {}, {}, kOneWay},
    {"one_shot_Reduce_staged", Change::kDropImpliedAck, {}, {}, {}, kOneWay},
    {"pairwise_Gather_staged", Change::kDropImpliedAck, {}, {}, {}, kOneWay},
    {"pairwise_Scatter_staged", Change::kDropImpliedAck, {}, {}, {}, kOneWay},
    {"ring_AllReduce_staged", Change::kDropImpliedAck, {}, {}, {}, kOneWay},
    {"ring_AllGather_staged", Change::kDropImpliedAck, {}, {}, {}, kOneWay},
    {"ring_ReduceScatter_staged", Change::kDropImpliedAck, {}, {}, {}, kOneWay},
    {"ring_AllReduce_staged", Change::kAddImpliedAck, {}, {}, 3, kHeardAround},
    {"ring_AllReduce_staged", Change::kAddImpliedAck, {}, {}, 4, kHeardAround},
    {"ring_AllGather_staged", Change::kAddImpliedAck, {}, {}, 3, kHeardAround},
    {"ring_AllGather_staged", Change::kAddImpliedAck, {}, {}, 4, kHeardAround},
    {"ring_ReduceScatter_staged", Change::kAddImpliedAck, {}, {}, 3, kHeardAround},
    {"ring_ReduceScatter_staged", Change::kAddImpliedAck, {}, {}, 4, kHeardAround},
    {"ring_AllReduce_staged", Change::kDropSignal, Place::kInbox, 1, {}, kCumulative},
    {"ring_AllGather_staged", Change::kDropSignal, Place::kInbox, 1, {}, kCumulative},
    {"ring_ReduceScatter_staged", Change::kDropSignal, Place::kInbox, 1, {}, kCumulative},
    {"ring_AllReduce_staged", Change::kDropWait, Place::kInbox, 1, 2, kAnswered},
    {"ring_AllGather_staged", Change::kDropCreditAtStart, {}, {}, 2, kHoldsNothing},
    {"ring_ReduceScatter_staged", Change::kDropCreditAtStart, {}, {}, 2, kHoldsNothing},
};

// What every mutant of one kind and one number of ranks is tried on: sequences that repeat the call at sizes below and
// above half the FIFO, among other calls.
struct Trial {
  Scenario scenario;
  std::vector<uint32_t> mutated;  // operations that use the mutant
  uint64_t seed;
};

constexpr uint64_t kTrials = 96;
constexpr int32_t kRoot = 1;  // mutants of rooted operations: rank 0 is a leaf, rank 1 the root

uint64_t trial_count(DataType type, const Room& room, uint32_t nranks, Random& random) {
  const uint64_t slot = room.slot_bytes / bytes_of(type);
  switch (below(random, 4)) {
    case 0: return below(random, slot * nranks + 1);
    case 1: return slot * nranks * 5 + below(random, slot);
    default: return 1 + below(random, slot * 2 * nranks);
  }
}

Call trial_call(const Kind& kind, const Room& room, uint64_t trial, Random& random) {
  static constexpr DataType kTypes[] = {DataType::kFloat16, DataType::kInt8, DataType::kFloat32, DataType::kInt32};
  Call call{kind.algorithm, {}, kind.form, Channel::kCollectiveBulk, 1, random()};
  if (kind.form == Form::kStaged && trial % 2 == 1) call.channel = Channel::kCollectivePacket;
  const DataType type = kTypes[below(random, 4)];
  const uint64_t count = trial_count(type, room, call.form == Form::kDirect ? 1 : room.nranks, random);
  const ReduceOp reduce = random_reduction(kind.operation, random);
  call.collective = {kind.operation, type, reduce, kRoot, count};
  return call;
}

// A call between the mutated ones, on the same channel; mostly of one message, which leaves its slot uncredited.
Call other_call(const Room& room, uint64_t trial, Random& random) {
  Call call = random_call(room, random);
  if (below(random, 3) != 0) call.collective.count = below(random, 4);
  if (call.form == Form::kStaged) {
    call.channel = trial % 2 == 1 ? Channel::kCollectivePacket : Channel::kCollectiveBulk;
  }
  return call;
}

// Sends and receives: `kind.operation` is the side under test, rank 0 sends to rank 1.
void add_transfers(ScenarioBuilder& builder, const Room& room, Trial& trial, Random& random) {
  std::vector<Transfer> transfers = random_transfers(room, random);
  for (int i = 0; i < 3; ++i) transfers.push_back({0, 1, below(random, room.slot_bytes * 8), DataType::kUint8});
  const size_t before = builder.scenario().ops.size();
  builder.add_group(transfers);
  for (size_t op = before; op < builder.scenario().ops.size(); ++op) {
    const auto& plans = builder.scenario().ops[op].plans;
    if (plans[0] && plans[1]) trial.mutated.push_back(static_cast<uint32_t>(op));
  }
}

Trial make_trial(const Kind& kind, uint32_t nranks, uint64_t number) {
  const uint64_t seed = number * 1000 + nranks;
  Random random(seed);
  uint32_t depth = 1u << below(random, 3);
  const Call probe{kind.algorithm, {kind.operation, DataType::kInt8, ReduceOp::kNone, kRoot, 0}, kind.form};
  depth = std::max(depth, plans_for(probe, nranks)[0]->min_depth());
  const Room room{nranks, 1, depth, 32};
  ScenarioBuilder builder(room, random);
  Trial trial{{}, {}, seed};
  const uint64_t operations = 4 + below(random, 10);
  for (uint64_t i = 0; i < operations; ++i) {
    if (is_point_to_point(kind.operation)) add_transfers(builder, room, trial, random);
    else if (below(random, 5) < 2) builder.add(other_call(room, number, random));
    else trial.mutated.push_back(builder.add(trial_call(kind, room, number, random)));
  }
  trial.scenario = builder.finish();
  return trial;
}

// The mutants of one trial run: the plan of each rank that is replaced.
using Replacements = std::map<const Plan*, std::shared_ptr<const Plan>>;

bool is_caught(const Replacements& replacements, std::vector<Trial>& trials) {
  for (Trial& trial : trials) {
    std::vector<std::pair<uint32_t, std::vector<std::shared_ptr<const Plan>>>> kept;
    for (uint32_t op : trial.mutated) {
      auto& plans = trial.scenario.ops[op].plans;
      const auto before = plans;
      for (auto& plan : plans) {
        const auto replacement = replacements.find(plan.get());
        if (replacement != replacements.end()) plan = replacement->second;
      }
      if (plans != before) kept.emplace_back(op, before);
    }
    const bool caught = !kept.empty() && run_checked(trial.scenario, trial.seed).verdict != Verdict::kOk;
    for (auto& [op, before] : kept) trial.scenario.ops[op].plans = std::move(before);
    if (caught) return true;
  }
  return false;
}

// A mutant that survives on one rank, which the others may make up for, is tried on all ranks at once: the fault as it
// would be in an algorithm.
Replacements everywhere(const std::string& key, const std::vector<std::shared_ptr<const Plan>>& plans) {
  Replacements replacements;
  for (const auto& plan : plans) {
    for (const Mutant& mutant : mutants_of(*plan)) {
      if (mutant.key == key) replacements[plan.get()] = mutant.plan;
    }
  }
  return replacements;
}

const Justification* justification_of(const Kind& kind, uint32_t nranks, const Mutant& mutant) {
  for (const Justification& row : kJustified) {
    if (kind_name(kind) == row.kind && mutant.change == row.change &&
        row.place.value_or(mutant.place) == mutant.place &&
        row.steps_after.value_or(mutant.steps_after) == mutant.steps_after &&
        row.nranks.value_or(nranks) == nranks) {
      return &row;
    }
  }
  return nullptr;
}

class Mutation : public testing::TestWithParam<Kind> {
 protected:
  // Tries all mutants of one rank's plan.
  void try_rank(const Kind& kind, uint32_t nranks, uint32_t rank, std::vector<Trial>& trials);

  std::set<const Justification*> used_;
  uint32_t mutants_ = 0, caught_ = 0;
  std::map<std::string, std::string> survivors_;
};

void Mutation::try_rank(const Kind& kind, uint32_t nranks, uint32_t rank, std::vector<Trial>& trials) {
  int32_t root = kRoot;
  if (is_point_to_point(kind.operation)) {
    if (rank != (kind.operation == Operation::kSend ? 0u : 1u)) return;
    root = kind.operation == Operation::kSend ? 1 : 0;
  }
  const Call call{kind.algorithm, {kind.operation, DataType::kInt8, ReduceOp::kNone, root, 0}, kind.form};
  const auto& plans = plans_for(call, nranks);
  for (const Mutant& mutant : mutants_of(*plans[rank])) {
    ++mutants_;
    if (is_caught({{plans[rank].get(), mutant.plan}}, trials) || is_caught(everywhere(mutant.key, plans), trials)) {
      ++caught_;
    } else if (const Justification* row = justification_of(kind, nranks, mutant)) {
      used_.insert(row);
    } else {
      survivors_[fmt::format("{}, {}, {}", name_of(mutant.change), name_of(mutant.place),
                             mutant.source ? "source" : "sink")] +=
          fmt::format("\n    {} ranks, rank {}, {}", nranks, rank, mutant.where);
    }
  }
}

TEST_P(Mutation, EveryMutantIsCaughtOrJustified) {
  const Kind& kind = GetParam();
  for (uint32_t nranks = 2; nranks <= 4; ++nranks) {
    std::vector<Trial> trials;
    for (uint64_t number = 0; number < kTrials; ++number) {
      trials.push_back(make_trial(kind, nranks, number));
      const Report report = run_checked(trials.back().scenario, trials.back().seed);
      ASSERT_EQ(report.verdict, Verdict::kOk) << "unchanged, seed " << trials.back().seed << ": " << report.text;
    }
    for (uint32_t rank = 0; rank < nranks; ++rank) try_rank(kind, nranks, rank, trials);
  }
  for (const auto& [what, where] : survivors_) ADD_FAILURE() << kind_name(kind) << " survives: " << what << where;
  for (const Justification& row : kJustified) {
    if (kind_name(kind) != row.kind) continue;
    EXPECT_EQ(used_.count(&row), 1u) << "not needed: " << row.kind << ", " << name_of(row.change) << ": " << row.reason;
  }
  EXPECT_GT(mutants_, 5u);
  std::printf("%s: %u mutants, %u caught, the others justified\n", kind_name(kind).c_str(), mutants_, caught_);
}

// A row about a plan that no longer exists would never be looked at.
TEST(MutationTable, NamesOnlyPlansOfTheCatalogue) {
  for (const Justification& row : kJustified) {
    const auto kinds = all_kinds();
    EXPECT_TRUE(std::any_of(kinds.begin(), kinds.end(), [&](const Kind& kind) { return kind_name(kind) == row.kind; }))
        << row.kind;
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, Mutation, testing::ValuesIn(all_kinds()),
                         [](const auto& info) { return kind_name(info.param); });

}  // namespace
}  // namespace talaria::sim
