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
  std::optional<bool> source;
  std::optional<uint32_t> nranks;
  const char* reason;
};

const Justification kJustified[] = {
    {"", Change::kDropWait, {}, {}, {}, "placeholder"},
};

// What every mutant of one kind and one number of ranks is tried on: sequences that repeat the call at sizes below and
// above half the FIFO, among other calls.
struct Trial {
  Scenario scenario;
  std::vector<uint32_t> mutated;  // operations that use the mutant
  uint64_t seed;
};

constexpr uint64_t kTrials = 48;
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
  static constexpr ReduceOp kReductions[] = {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMax};
  Call call{kind.algorithm, {}, kind.form, Channel::kCollectiveBulk, 1, random()};
  if (kind.form == Form::kStaged && trial % 2 == 1) call.channel = Channel::kCollectivePacket;
  const DataType type = kTypes[below(random, 4)];
  const uint64_t count = trial_count(type, room, call.form == Form::kDirect ? 1 : room.nranks, random);
  const ReduceOp reduce = reduces(kind.operation) ? kReductions[below(random, 3)] : ReduceOp::kNone;
  call.collective = {kind.operation, type, reduce, kRoot, count};
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
    else if (below(random, 4) == 0) builder.add(random_call(room, random));
    else trial.mutated.push_back(builder.add(trial_call(kind, room, number, random)));
  }
  trial.scenario = builder.finish();
  return trial;
}

bool is_caught(const Mutant& mutant, uint32_t rank, const Plan* original, std::vector<Trial>& trials) {
  bool caught = false;
  for (size_t t = 0; t < trials.size() && !caught; ++t) {
    std::vector<std::shared_ptr<const Plan>*> changed;
    std::shared_ptr<const Plan> kept;
    for (uint32_t op : trials[t].mutated) {
      std::shared_ptr<const Plan>& plan = trials[t].scenario.ops[op].plans[rank];
      if (plan.get() != original) continue;
      kept = plan;
      plan = mutant.plan;
      changed.push_back(&plan);
    }
    caught = !changed.empty() && run_checked(trials[t].scenario, trials[t].seed).verdict != Verdict::kOk;
    for (auto* plan : changed) *plan = kept;
  }
  return caught;
}

const Justification* justification_of(const Kind& kind, uint32_t nranks, const Mutant& mutant) {
  for (const Justification& row : kJustified) {
    if (kind_name(kind) == row.kind && mutant.change == row.change &&
        row.place.value_or(mutant.place) == mutant.place && row.source.value_or(mutant.source) == mutant.source &&
        row.nranks.value_or(nranks) == nranks) {
      return &row;
    }
  }
  return nullptr;
}

class Mutation : public testing::TestWithParam<Kind> {};

TEST_P(Mutation, EveryMutantIsCaughtOrJustified) {
  const Kind& kind = GetParam();
  std::set<const Justification*> used;
  uint32_t mutants = 0, caught = 0;
  std::map<std::string, std::string> survivors;
  for (uint32_t nranks = 2; nranks <= 4; ++nranks) {
    std::vector<Trial> trials;
    for (uint64_t number = 0; number < kTrials; ++number) {
      trials.push_back(make_trial(kind, nranks, number));
      const Report report = run_checked(trials.back().scenario, trials.back().seed);
      ASSERT_EQ(report.verdict, Verdict::kOk) << "unchanged, seed " << trials.back().seed << ": " << report.text;
    }
    const bool point = is_point_to_point(kind.operation);
    for (uint32_t rank = 0; rank < nranks; ++rank) {
      if (point && rank != (kind.operation == Operation::kSend ? 0u : 1u)) continue;
      const int32_t root = point ? (kind.operation == Operation::kSend ? 1 : 0) : kRoot;
      const Call call{kind.algorithm, {kind.operation, DataType::kInt8, ReduceOp::kNone, root, 0}, kind.form};
      const Plan* original = plans_for(call, nranks)[rank].get();
      for (const Mutant& mutant : mutants_of(*original)) {
        ++mutants;
        if (is_caught(mutant, rank, original, trials)) {
          ++caught;
        } else if (const Justification* row = justification_of(kind, nranks, mutant)) {
          used.insert(row);
        } else {
          survivors[fmt::format("{}, {}, {}", name_of(mutant.change), name_of(mutant.place),
                                mutant.source ? "source" : "sink")] +=
              fmt::format("\n    {} ranks, rank {}, {}", nranks, rank, mutant.where);
        }
      }
    }
  }
  for (const auto& [what, where] : survivors) ADD_FAILURE() << kind_name(kind) << " survives: " << what << where;
  for (const Justification& row : kJustified) {
    if (kind_name(kind) != row.kind) continue;
    EXPECT_TRUE(used.count(&row) == 1) << "not needed: " << row.kind << ", " << name_of(row.change) << ": "
                                       << row.reason;
  }
  EXPECT_GT(mutants, 5u);
  std::printf("%s: %u mutants, %u caught\n", kind_name(kind).c_str(), mutants, caught);
}

INSTANTIATE_TEST_SUITE_P(Plans, Mutation, testing::ValuesIn(all_kinds()),
                         [](const auto& info) { return kind_name(info.param); });

}  // namespace
}  // namespace talaria::sim
