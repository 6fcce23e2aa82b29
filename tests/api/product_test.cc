// Every operation x type x reduction x number of ranks x transport, by the C API, against plain loops over small
// integers, which every order of reducing gets exactly. Between guard bytes, at odd addresses and counts.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "api/host_ranks.h"
#include "api/variable.h"
#include "support/ids.h"
#include "support/processes.h"
#include "support/threads.h"

namespace talaria::test {
namespace {

enum class Op { kAllReduce, kReduceScatter, kReduce, kAllGather, kBroadcast, kAlltoAll, kGather, kScatter, kSendRecv };
constexpr std::array<const char*, 9> kOpNames{"AllReduce", "ReduceScatter", "Reduce",  "AllGather", "Broadcast",
                                              "AlltoAll",  "Gather",        "Scatter", "SendRecv"};
constexpr int kPreMulSum = ncclNumOps;  // stands for the operator that ncclRedOpCreatePreMulSum makes
constexpr size_t kGuard = 64;
constexpr unsigned kHangSeconds = 100;  // a process that hangs is ended by SIGALRM and so reported
constexpr auto kPoison = std::byte{0xA5};

struct Case {
  Op op;
  ncclDataType_t type;
  int reduction;
  size_t count;
  bool in_place;
  int root, nranks;
  uint64_t seed;

  bool reduces() const { return op <= Op::kReduce; }
  bool has_root() const {
    return op == Op::kReduce || op == Op::kBroadcast || op == Op::kGather || op == Op::kScatter;
  }
};

// Layout of the types that are no integers: bits of the exponent and of the fraction.
struct Format {
  size_t bytes;
  int exponent, fraction;  // 0: an integer
};
constexpr std::array<Format, ncclNumTypes> kFormats{{{1, 0, 0}, {1, 0, 0}, {4, 0, 0}, {4, 0, 0}, {8, 0, 0}, {8, 0, 0},
    {2, 5, 10}, {4, 8, 23}, {8, 11, 52}, {2, 8, 7}, {1, 4, 3}, {1, 5, 2}}};

// A small integer that the type holds exactly, as bits.
uint64_t encode(ncclDataType_t type, uint64_t value) {
  const Format& f = kFormats[type];
  if (f.exponent == 0 || value == 0) return value;
  const int power = std::bit_width(value) - 1;
  const uint64_t rest = value - (uint64_t{1} << power);
  const uint64_t fraction = f.fraction >= power ? rest << (f.fraction - power) : rest >> (power - f.fraction);
  const uint64_t bias = (uint64_t{1} << (f.exponent - 1)) - 1;
  return (static_cast<uint64_t>(power) + bias) << f.fraction | fraction;
}

uint64_t hash(uint64_t a, uint64_t b, uint64_t c) {
  uint64_t x = a * 0x9e3779b97f4a7c15u + b * 0xbf58476d1ce4e5b9u + c * 0x94d049bb133111ebu;
  x = (x ^ x >> 31) * 0xd6e8feb86659fd93u;
  return x ^ x >> 29;
}

// What `rank` contributes at `index`, so small that sums of 8 ranks are exact with 2 bits of fraction.
uint64_t contribution(const Case& c, int rank, size_t index) {
  const uint64_t random = hash(c.seed, static_cast<uint64_t>(rank), index);
  const auto n = static_cast<size_t>(c.nranks), r = static_cast<size_t>(rank);
  switch (c.reduction) {
    case ncclProd: return 1 + random % 2;
    case ncclMax:
    case ncclMin: return random % 5;
    case ncclAvg: return index % n == r ? n * (hash(c.seed, 0, index) % 2) : 0;
    case kPreMulSum: return (index + r) % 4 == 0 ? 1 : 0;
    default: return random % 2;
  }
}
uint64_t scalar_of(int rank) { return 1 + static_cast<uint64_t>(rank % 2); }

uint64_t reduced(const Case& c, size_t index) {
  uint64_t result = contribution(c, 0, index) * (c.reduction == kPreMulSum ? scalar_of(0) : 1);
  for (int rank = 1; rank < c.nranks; ++rank) {
    const uint64_t value = contribution(c, rank, index);
    if (c.reduction == ncclProd) result *= value;
    else if (c.reduction == ncclMax) result = std::max(result, value);
    else if (c.reduction == ncclMin) result = std::min(result, value);
    else result += value * (c.reduction == kPreMulSum ? scalar_of(rank) : 1);
  }
  return c.reduction == ncclAvg ? result / static_cast<uint64_t>(c.nranks) : result;
}

// Bits of an input element: any at all where nothing is computed.
uint64_t input_bits(const Case& c, int rank, size_t index) {
  return c.reduces() ? encode(c.type, contribution(c, rank, index))
                     : hash(c.seed, static_cast<uint64_t>(rank), index);
}

uint64_t expected_bits(const Case& c, int rank, size_t index) {
  const size_t mine = static_cast<size_t>(rank) * c.count;
  const auto block = [&] { return static_cast<int>(index / c.count); };
  switch (c.op) {
    case Op::kAllReduce:
    case Op::kReduce: return encode(c.type, reduced(c, index));
    case Op::kReduceScatter: return encode(c.type, reduced(c, mine + index));
    case Op::kAllGather:
    case Op::kGather: return input_bits(c, block(), index % c.count);
    case Op::kBroadcast: return input_bits(c, c.root, index);
    case Op::kAlltoAll: return input_bits(c, block(), mine + index % c.count);
    case Op::kScatter: return input_bits(c, c.root, mine + index);
    case Op::kSendRecv: return input_bits(c, (rank + c.nranks - 1) % c.nranks, index);
  }
  return 0;
}

// Memory for n bytes at an odd address (of the element's alignment at least) between guards.
class Area {
 public:
  Area(size_t n, size_t shift) : bytes_(kGuard + shift + n + kGuard, kPoison), begin_(kGuard + shift), size_(n) {}
  std::byte* data() { return bytes_.data() + begin_; }
  size_t size() const { return size_; }
  bool guards_hold() const {
    const auto is_poison = [](std::byte b) { return b == kPoison; };
    return std::all_of(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(begin_), is_poison) &&
           std::all_of(bytes_.end() - static_cast<ptrdiff_t>(kGuard), bytes_.end(), is_poison);
  }

 private:
  std::vector<std::byte> bytes_;
  size_t begin_, size_;
};

struct Member {
  ncclComm_t comm;
  int rank;
};

ncclResult_t call(const Case& c, const void* in, void* out, ncclRedOp_t op, const Member& member) {
  const auto [comm, rank] = member;
  switch (c.op) {
    case Op::kAllReduce: return ncclAllReduce(in, out, c.count, c.type, op, comm, nullptr);
    case Op::kReduceScatter: return ncclReduceScatter(in, out, c.count, c.type, op, comm, nullptr);
    case Op::kReduce: return ncclReduce(in, out, c.count, c.type, op, c.root, comm, nullptr);
    case Op::kAllGather: return ncclAllGather(in, out, c.count, c.type, comm, nullptr);
    case Op::kBroadcast: return ncclBroadcast(in, out, c.count, c.type, c.root, comm, nullptr);
    case Op::kAlltoAll: return ncclAlltoAll(in, out, c.count, c.type, comm, nullptr);
    case Op::kGather: return ncclGather(in, out, c.count, c.type, c.root, comm, nullptr);
    case Op::kScatter: return ncclScatter(in, out, c.count, c.type, c.root, comm, nullptr);
    case Op::kSendRecv: break;
  }
  (void)ncclGroupStart();
  (void)ncclSend(in, c.count, c.type, (rank + 1) % c.nranks, comm, nullptr);
  (void)ncclRecv(out, c.count, c.type, (rank + c.nranks - 1) % c.nranks, comm, nullptr);
  return ncclGroupEnd();
}

// Runs one case on one rank; the empty text if all is well.
std::string run_case(const Case& c, int rank, ncclComm_t comm, ncclRedOp_t op) {
  const size_t element = kFormats[c.type].bytes, n = static_cast<size_t>(c.nranks), block = c.count * element;
  const bool many_in = c.op == Op::kReduceScatter || c.op == Op::kScatter || c.op == Op::kAlltoAll;
  const bool many_out = c.op == Op::kAllGather || c.op == Op::kGather || c.op == Op::kAlltoAll;
  const bool at_root = rank == c.root;
  const bool reads = at_root || (c.op != Op::kBroadcast && c.op != Op::kScatter);
  const bool writes = at_root || (c.op != Op::kReduce && c.op != Op::kGather);
  const bool in_place = c.in_place && reads && writes && c.op != Op::kAlltoAll && c.op != Op::kSendRecv;
  const size_t shift = element * (1 + c.seed % 7);
  Area in(many_in || in_place ? block * n : block, shift), out(many_out ? block * n : block, shift + element);
  const size_t own = (many_in || many_out) ? block * static_cast<size_t>(rank) : 0;
  std::byte* from = in.data() + (in_place && many_out ? own : 0);
  std::byte* to = !in_place ? out.data() : in.data() + (many_in ? own : 0);
  for (size_t i = 0; i < (many_in ? n : 1) * c.count; ++i) {
    const uint64_t bits = input_bits(c, rank, i);
    std::memcpy(from + i * element, &bits, element);
  }
  const std::vector<std::byte> before(in.data(), in.data() + in.size());
  if (const ncclResult_t result = call(c, from, to, op, {comm, rank}); result != ncclSuccess) {
    return std::string(ncclGetErrorString(result)) + ": " + ncclGetLastError(comm);
  }
  if (!in.guards_hold() || !out.guards_hold()) return "guard bytes were overwritten";
  if (!in_place && !std::equal(before.begin(), before.end(), in.data())) return "the input was overwritten";
  for (size_t i = 0; i < (many_out ? n : 1) * c.count; ++i) {
    uint64_t bits = expected_bits(c, rank, i);
    if (!writes) std::memset(&bits, static_cast<int>(kPoison), sizeof(bits));
    if (std::memcmp(to + i * element, &bits, element) != 0) return "wrong element " + std::to_string(i);
  }
  return {};
}

std::string describe(const Case& c, int rank) {
  return std::string(kOpNames[static_cast<size_t>(c.op)]) + " type " + std::to_string(c.type) + " reduction " +
         std::to_string(c.reduction) + " count " + std::to_string(c.count) + (c.in_place ? " in place" : "") +
         " root " + std::to_string(c.root) + " rank " + std::to_string(rank) + " seed " + std::to_string(c.seed);
}

// The cases, the same on every rank: each operation, type and reduction with every small count, and some large ones.
std::vector<Case> all_cases(int nranks, uint64_t seed) {
  std::vector<Case> cases;
  for (size_t op = 0; op < kOpNames.size(); ++op) {
    for (int type = 0; type < ncclNumTypes; ++type) {
      for (int reduction = 0; reduction <= (op <= static_cast<size_t>(Op::kReduce) ? kPreMulSum : 0); ++reduction) {
        for (const size_t count : {size_t{0}, size_t{1}, size_t{13}, size_t{1031}, size_t{40009}}) {
          const uint64_t random = hash(seed, cases.size(), count);
          if (count > 10000 && random % 6 != 0) continue;
          const int root = static_cast<int>(random / 8 % static_cast<uint64_t>(nranks));
          for (const bool in_place : {false, true}) {
            cases.push_back({static_cast<Op>(op), static_cast<ncclDataType_t>(type), reduction, count, in_place, root,
                             nranks, random});
          }
        }
      }
    }
  }
  return cases;
}

// All cases on one rank of a communicator; the first failure.
std::string run_rank(int rank, int nranks, const ncclUniqueId& id, const std::vector<Case>& cases) {
  ncclComm_t comm = nullptr;
  if (ncclCommInitRank(&comm, nranks, id, rank) != ncclSuccess) return ncclGetLastError(nullptr);
  std::array<ncclRedOp_t, ncclNumTypes> scaled{};
  for (int type = 0; type < ncclNumTypes; ++type) {
    uint64_t scalar = encode(static_cast<ncclDataType_t>(type), scalar_of(rank));
    if (ncclRedOpCreatePreMulSum(&scaled[static_cast<size_t>(type)], &scalar, static_cast<ncclDataType_t>(type),
                                 ncclScalarHostImmediate, comm) != ncclSuccess) return ncclGetLastError(comm);
  }
  for (const Case& c : cases) {
    const ncclRedOp_t op = c.reduction == kPreMulSum ? scaled[c.type] : static_cast<ncclRedOp_t>(c.reduction);
    const std::string wrong = run_case(c, rank, comm, op);
    if (wrong.empty()) continue;
    (void)ncclCommAbort(comm);  // the others must not wait
    return describe(c, rank) + ": " + wrong;
  }
  return ncclCommDestroy(comm) == ncclSuccess ? "" : ncclGetLastError(nullptr);
}

enum class Ranks { kThreads, kProcesses, kTcp };

class Product : public testing::TestWithParam<std::tuple<int, Ranks>> {
 protected:
  void SetUp() override { setenv("TALARIA_DEVICE", "host", 1); }
};

void run_as_threads(int nranks, const std::vector<Case>& cases) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess) << ncclGetLastError(nullptr);
  std::vector<std::string> wrong(static_cast<size_t>(nranks));
  run_ranks(nranks, [&](int rank) { wrong[static_cast<size_t>(rank)] = run_rank(rank, nranks, id, cases); });
  for (const std::string& text : wrong) EXPECT_EQ(text, "");
}

void run_as_processes(int nranks, const std::vector<Case>& cases) {
  Handover<ncclUniqueId> id;
  const std::vector<int> exits = run_processes(nranks, [&](int rank) {
    alarm(kHangSeconds);
    if (rank == 0) {
      ncclUniqueId made;
      if (ncclGetUniqueId(&made) != ncclSuccess) return 2;
      id.give(made);
    }
    const std::string wrong = run_rank(rank, nranks, id.take(), cases);
    if (!wrong.empty()) fprintf(stderr, "%s\n", wrong.c_str());
    return wrong.empty() ? 0 : 1;
  });
  EXPECT_EQ(exits, std::vector<int>(static_cast<size_t>(nranks), 0));
}

TEST_P(Product, EveryOperationTypeAndReductionIsExact) {
  const auto [nranks, ranks] = GetParam();
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Variable no_memory("NCCL_SHM_DISABLE", ranks == Ranks::kTcp ? "1" : nullptr);
  const std::vector<Case> cases = all_cases(nranks, seed);
  if (ranks == Ranks::kThreads) run_as_threads(nranks, cases);
  else run_as_processes(nranks, cases);
}

// What no default chooses yet.
TEST_P(Product, TreesAreExact) {
  const auto [nranks, ranks] = GetParam();
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Variable no_memory("NCCL_SHM_DISABLE", ranks == Ranks::kTcp ? "1" : nullptr);
  const Variable tree("NCCL_ALGO", "allreduce:tree;reduce:tree;broadcast:tree");
  std::vector<Case> cases = all_cases(nranks, seed);
  std::erase_if(cases, [](const Case& c) {
    return c.op != Op::kAllReduce && c.op != Op::kReduce && c.op != Op::kBroadcast;
  });
  if (ranks == Ranks::kThreads) run_as_threads(nranks, cases);
  else run_as_processes(nranks, cases);
}

std::string name_of(const testing::TestParamInfo<std::tuple<int, Ranks>>& info) {
  constexpr std::array<const char*, 3> kNames{"Threads", "Processes", "TcpProcesses"};
  return std::to_string(std::get<0>(info.param)) + kNames[static_cast<size_t>(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(Ranks, Product,
                         testing::Combine(testing::Values(2, 3, 5, 8),
                                          testing::Values(Ranks::kThreads, Ranks::kProcesses, Ranks::kTcp)),
                         name_of);

}  // namespace
}  // namespace talaria::test
