// A rank is killed, or aborts, at a random moment: nobody hangs, and everybody learns who it was.
//
// TALARIA_TRIALS: how many trials of each kind, TALARIA_TRIAL_SEED: the first one's seed, to repeat it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "faults/trial.h"

namespace talaria::test {
namespace {

uint32_t number_from(const char* variable, uint32_t otherwise) {
  const char* text = getenv(variable);
  return text == nullptr ? otherwise : static_cast<uint32_t>(strtoul(text, nullptr, 10));
}

// The counts of one kind of trials, by what the victim was doing.
class Table {
 public:
  void add(const Outcome& outcome) {
    Row& row = rows_[outcome.phase];
    ++row.trials;
    row.named += outcome.named ? 1 : 0;
    row.with_step += outcome.with_step ? 1 : 0;
    row.shrunk += outcome.shrunk ? 1 : 0;
    row.usec.push_back(outcome.slowest_usec);
    trials_ += 1;
    with_step_ += outcome.with_step ? 1 : 0;
  }
  // Of all, half; of those that met an operation, nearly each.
  bool half_with_step() const { return 2 * with_step_ >= trials_; }
  bool operations_with_step() const {
    const auto row = rows_.find(Phase::kOperation);
    return row == rows_.end() || row->second.with_step >= row->second.trials - 1 - row->second.trials / 50;
  }
  void print(Kind kind) {
    printf("| kind | victim in | trials | named by all | with operation and step | shrunk | median ms | most ms |\n");
    for (auto& [phase, row] : rows_) {
      std::ranges::sort(row.usec);
      printf("| %s | %s | %d | %d | %d | %d | %.0f | %.0f |\n", name_of(kind), name_of(phase), row.trials, row.named,
             row.with_step, row.shrunk, row.usec[row.usec.size() / 2] / 1e3, row.usec.back() / 1e3);
    }
  }

 private:
  struct Row {
    int trials = 0, named = 0, with_step = 0, shrunk = 0;
    std::vector<double> usec;
  };
  std::map<Phase, Row> rows_;
  int trials_ = 0, with_step_ = 0;
};

void run_trials(Kind kind) {
  const uint32_t trials = number_from("TALARIA_TRIALS", 20);
  const uint32_t first = number_from("TALARIA_TRIAL_SEED", std::random_device{}() % 1000000000);
  const Abilities abilities = find_abilities();
  Table table;
  std::vector<pid_t> victims;
  int failed = 0;
  for (uint32_t i = 0; i < trials && failed < 10; ++i) {
    const TrialPlan plan = make_plan(first + i, kind, abilities);
    const Outcome outcome = run_trial(plan);
    table.add(outcome);
    std::string complaints;
    for (const std::string& complaint : outcome.complaints) complaints += "\n  " + complaint;
    EXPECT_TRUE(complaints.empty()) << describe(plan) << ", it was in " << name_of(outcome.phase) << complaints;
    failed += complaints.empty() ? 0 : 1;
    victims.push_back(outcome.victim);
  }
  // A process that is killed in init leaves its block to the next init on this machine.
  make_communicator();
  for (const pid_t victim : victims) EXPECT_FALSE(has_shared_memory(victim)) << "process " << victim;
  table.print(kind);
  EXPECT_TRUE(table.operations_with_step());
  EXPECT_TRUE(trials < 200 || table.half_with_step());  // few have too many inits among them by chance
}

TEST(Trials, AKilledRankIsNamedByAll) { run_trials(Kind::kKill); }
// B-41
TEST(Trials, ARankThatAbortsIsNamedByAll) { run_trials(Kind::kAbort); }

}  // namespace
}  // namespace talaria::test
