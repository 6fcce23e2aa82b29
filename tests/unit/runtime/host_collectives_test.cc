// CPU ranks against the simulator, bit for bit: every operation, type, reduction and algorithm.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "host_ranks.h"
#include "runtime/agreement.h"
#include "sim/expected.h"

namespace talaria {
namespace {

using Bytes = std::vector<std::byte>;

struct Trial {
  Collective collective;
  const char* algorithm;
  Form form;
  uint32_t nranks;
  uint64_t seed;
  bool in_place;
  size_t misalignment;  // bytes added to every buffer's address, a multiple of the element
};

// Random bits that are finite numbers of moderate size in every type, so that NaN payloads do not matter.
Bytes random_input(DataType type, uint64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(count * bytes_of(type));
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t bits = random();
    if (type == DataType::kFloat16) bits = (bits & 0x83ffu) | (12 + bits % 6) << 10;
    if (type == DataType::kBfloat16) bits = (bits & 0x807fu) | (124 + bits % 6) << 7;
    if (type == DataType::kFloat8e4m3) bits = (bits & 0x87u) | (5 + bits % 4) << 3;
    if (type == DataType::kFloat8e5m2) bits = (bits & 0x83u) | (12 + bits % 6) << 2;
    if (type == DataType::kFloat32) bits = (bits & 0x807fffffu) | (120 + bits % 12) << 23;
    if (type == DataType::kFloat64) bits = (bits & 0x800fffffffffffffu) | (1015 + bits % 12) << 52;
    std::memcpy(&bytes[i * bytes_of(type)], &bits, bytes_of(type));
  }
  return bytes;
}

// Of each rank; where nothing reads them, too.
std::vector<uint64_t> random_scalars(const Trial& trial) {
  std::vector<uint64_t> scalars(trial.nranks);
  for (uint32_t r = 0; r < trial.nranks; ++r) {
    const Bytes element = random_input(trial.collective.type, 1, trial.seed + 1000 + r);
    std::memcpy(&scalars[r], element.data(), element.size());
  }
  return scalars;
}

uint64_t input_count(const Collective& c, uint32_t n) {
  const bool all = c.operation == Operation::kReduceScatter || c.operation == Operation::kScatter ||
                   c.operation == Operation::kAlltoAll;
  return all ? c.count * n : c.count;
}
uint64_t output_count(const Collective& c, uint32_t n) {
  const bool all = c.operation == Operation::kAllGather || c.operation == Operation::kGather ||
                   c.operation == Operation::kAlltoAll;
  return all ? c.count * n : c.count;
}
// Where the send buffer of an in-place call lies inside the receive buffer, or the other way round.
uint64_t own_block(const Collective& c, uint32_t rank) {
  return counts_per_rank(c.operation) ? c.count * rank : 0;
}

ChannelRoom host_room(uint32_t nranks) {
  std::vector<ChoiceInputs> inputs(nranks);
  return agree(inputs)->rooms[static_cast<int>(Channel::kCollectiveBulk)];
}

bool is_root(const Collective& c, uint32_t rank) { return static_cast<uint32_t>(c.root) == rank; }
bool has_input(const Collective& c, uint32_t rank) { return reads_input(c.operation, is_root(c, rank)); }
bool has_output(const Collective& c, uint32_t rank) { return writes_output(c.operation, is_root(c, rank)); }
bool is_in_place(const Trial& trial, uint32_t rank) {
  const Collective& c = trial.collective;
  if (!trial.in_place || c.operation == Operation::kAlltoAll) return false;
  return c.operation == Operation::kBroadcast || (has_input(c, rank) && has_output(c, rank));
}

// Runs one rank's call between guard bytes; the receive buffer is poisoned.
bool run_trial(Communicator& comm, uint32_t rank, const Trial& trial, const Bytes& input, const Bytes& expected) {
  constexpr size_t kGuard = 64;
  const Collective& c = trial.collective;
  const size_t element = bytes_of(c.type);
  const size_t in_bytes = input_count(c, trial.nranks) * element, out_bytes = output_count(c, trial.nranks) * element;
  const size_t area = std::max(in_bytes, out_bytes);
  Bytes in(area + 2 * kGuard + 16, std::byte{0x5a}), out(area + 2 * kGuard + 16, std::byte{0xa5});
  std::byte* send = in.data() + kGuard + trial.misalignment;
  std::byte* receive = out.data() + kGuard + trial.misalignment;
  const bool in_place = is_in_place(trial, rank);
  if (in_place) {
    const size_t offset = own_block(c, rank) * element;
    const bool scatters = c.operation == Operation::kReduceScatter || c.operation == Operation::kScatter;
    send = scatters ? receive : receive + offset;
    if (scatters) receive += offset;
  }
  if (has_input(c, rank)) std::memcpy(send, input.data(), input.size());
  const Bytes before = out;
  // A buffer that this rank does not use may be null, and stays as it was otherwise.
  const bool null = trial.seed % 2 == 0;
  const uint64_t scalar = random_scalars(trial)[rank];
  const Call call{c, has_input(c, rank) || !null ? send : nullptr, has_output(c, rank) || !null ? receive : nullptr,
                  nullptr, trial.seed % 3 == 0 ? Scalar{0, &scalar} : Scalar{scalar, nullptr}};
  if (!submit(comm, call).ok()) return false;
  if (!std::equal(expected.begin(), expected.end(), receive)) return false;
  const size_t touched = in_place ? area : expected.size();
  const size_t begin = kGuard + trial.misalignment;
  return std::memcmp(out.data(), before.data(), begin) == 0 &&
         std::memcmp(&out[begin + touched], &before[begin + touched], out.size() - begin - touched) == 0;
}

// Sanitizers make trials slow; a part of them still meets every algorithm and form.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kOneOf = 12;
#else
constexpr uint64_t kOneOf = 1;
#endif

std::vector<Trial> trials_for(uint32_t nranks, const char* algorithm, Form form, uint64_t seed) {
  std::vector<Trial> trials;
  std::mt19937_64 random(seed);
  for (int o = 0; o < kCollectives; ++o) {
    const auto operation = static_cast<Operation>(o);
    if (!find_algorithm(algorithm)->serves(operation, nranks, form)) continue;
    for (int t = 0; t < kDataTypes; ++t) {
      for (int r = 0; r < kReduceOps; ++r) {
        const auto type = static_cast<DataType>(t);
        const auto op = static_cast<ReduceOp>(r);
        if (!reduces(operation) && op != ReduceOp::kSum) continue;
        const uint64_t counts[] = {1, 1 + random() % 40, 1 + random() % 3000, 40000 + random() % 9000};
        for (uint64_t count : counts) {
          if (count >= 40000 && (op == ReduceOp::kProd || op == ReduceOp::kMin)) continue;  // their loops are Max's
          if (random() % kOneOf != 0) continue;
          trials.push_back(Trial{{operation, type, op, static_cast<int32_t>(random() % nranks), count},
                                 algorithm,
                                 form,
                                 nranks,
                                 random(),
                                 random() % 2 == 0,
                                 random() % 4 * bytes_of(type)});
        }
      }
    }
  }
  return trials;
}

// A trial with everybody's inputs and the bits that the simulator says everybody must get.
struct Expectation {
  Trial trial;
  std::vector<Bytes> inputs;
  std::vector<Bytes> outputs;
};

std::vector<Expectation> simulate_all(const std::vector<Trial>& trials) {
  std::vector<Expectation> expectations;
  for (const Trial& trial : trials) {
    const Collective& c = trial.collective;
    std::vector<Bytes> inputs(trial.nranks);
    for (uint32_t r = 0; r < trial.nranks; ++r) {
      if (has_input(c, r)) inputs[r] = random_input(c.type, input_count(c, trial.nranks), trial.seed + r);
    }
    sim::Simulated simulated =
        sim::simulate({trial.algorithm, c, trial.nranks, trial.form, host_room(trial.nranks), random_scalars(trial)},
                      inputs);
    EXPECT_TRUE(simulated.ok) << simulated.text;
    expectations.push_back({trial, std::move(inputs), std::move(simulated.outputs)});
  }
  EXPECT_FALSE(expectations.empty());
  return expectations;
}

// All ranks walk the same list; each compares its own results.
test::Body comparison(const std::vector<Expectation>& expectations) {
  return [&expectations](Communicator& comm, int rank) {
    const auto me = static_cast<size_t>(rank);
    for (const auto& [trial, inputs, outputs] : expectations) {
      if (run_trial(comm, static_cast<uint32_t>(rank), trial, inputs[me], outputs[me])) continue;
      fprintf(stderr, "rank %d: %s %s by %s on %u ranks, count %lu, seed %lu, in place %d: %s\n", rank,
              name_of(trial.collective.operation), traits_of(trial.collective.type).name, trial.algorithm, trial.nranks,
              trial.collective.count, trial.seed, trial.in_place, last_error_text());
      return false;
    }
    return true;
  };
}

struct Setting {
  const char* algorithm;
  Form form;
  const char* fault;  // TALARIA_FAULT
};

void PrintTo(const Setting& setting, std::ostream* out) {
  *out << setting.algorithm << (setting.form == Form::kDirect ? " direct" : " staged") << " " << setting.fault;
}

class HostThreads : public testing::TestWithParam<Setting> {};
class HostProcesses : public testing::TestWithParam<Setting> {};

TEST_P(HostThreads, EqualTheSimulatorBitForBit) {
  const test::ScopedVariable algorithm("NCCL_ALGO", GetParam().algorithm), fault("TALARIA_FAULT", GetParam().fault);
  for (uint32_t nranks : {2u, 3u, 5u}) {
    const auto expectations = simulate_all(trials_for(nranks, GetParam().algorithm, GetParam().form, 100 + nranks));
    test::run_thread_ranks(static_cast<int>(nranks), comparison(expectations));
  }
}

TEST_P(HostProcesses, EqualTheSimulatorBitForBit) {
  const test::ScopedVariable algorithm("NCCL_ALGO", GetParam().algorithm), fault("TALARIA_FAULT", GetParam().fault);
  const test::ScopedVariable cross("TALARIA_CROSS_MEMORY", GetParam().form == Form::kDirect ? "1" : "0");
  for (uint32_t nranks : {2u, 3u, 8u}) {
    const auto expectations = simulate_all(trials_for(nranks, GetParam().algorithm, GetParam().form, 200 + nranks));
    test::run_process_ranks(static_cast<int>(nranks), comparison(expectations));
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, HostThreads,
                         testing::Values(Setting{"one_shot", Form::kStaged, ""}, Setting{"ring", Form::kStaged, ""},
                                         Setting{"tree", Form::kStaged, ""},
                                         Setting{"pairwise", Form::kDirect, ""},
                                         Setting{"pairwise", Form::kDirect, "stage"},
                                         Setting{"two_shot", Form::kDirect, ""},
                                         Setting{"two_shot", Form::kDirect, "stage"}));
INSTANTIATE_TEST_SUITE_P(Algorithms, HostProcesses,
                         testing::Values(Setting{"one_shot", Form::kStaged, ""}, Setting{"ring", Form::kStaged, ""},
                                         Setting{"tree", Form::kStaged, ""},
                                         Setting{"pairwise", Form::kStaged, ""},
                                         Setting{"pairwise", Form::kDirect, ""},
                                         Setting{"pairwise", Form::kDirect, "stage"},
                                         Setting{"two_shot", Form::kStaged, ""},
                                         Setting{"two_shot", Form::kDirect, ""},
                                         Setting{"two_shot", Form::kDirect, "stage"}));

}  // namespace
}  // namespace talaria
