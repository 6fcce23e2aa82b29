#include "sim/cases.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <tuple>

#include "sim/arith.h"

namespace talaria::sim {
namespace {

constexpr uint64_t kGranuleBytes = 16;

uint64_t divide_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit; }

bool rooted(Operation operation) { return is_rooted(operation) || is_point_to_point(operation); }

std::shared_ptr<const Plan> build_plan(const Algorithm& algorithm, const Shape& shape) {
  auto plan = std::make_shared<Plan>(algorithm.build(shape));
  if (!plan->seal().ok()) std::abort();  // a catalogued plan that does not seal: no test can go on
  return plan;
}

float random_float(bool signed_zeros, Random& random) {
  if (signed_zeros) return below(random, 8) == 0 ? 1.0f : below(random, 2) == 0 ? 0.0f : -0.0f;
  const float magnitude = static_cast<float>(below(random, 4096)) / 64.0f;
  return below(random, 2) == 0 ? magnitude : -magnitude * (below(random, 16) == 0 ? 8.0f : 1.0f);
}

template <typename T, typename Make>
void fill(Bytes& bytes, Make make) {
  for (size_t i = 0; i < bytes.size(); i += sizeof(T)) {
    const T value = make();
    std::memcpy(&bytes[i], &value, sizeof(T));
  }
}

}  // namespace

const std::vector<std::shared_ptr<const Plan>>& plans_for(const Call& call, uint32_t nranks) {
  using Key = std::tuple<const Algorithm*, Operation, int32_t, Form, uint32_t>;
  static std::map<Key, std::vector<std::shared_ptr<const Plan>>> cache;
  const Operation operation = call.collective.operation;
  const int32_t root = rooted(operation) ? call.collective.root : 0;
  auto& plans = cache[Key{call.algorithm, operation, root, call.form, nranks}];
  for (uint32_t rank = static_cast<uint32_t>(plans.size()); rank < nranks; ++rank) {
    plans.push_back(build_plan(*call.algorithm, Shape{operation, root, rank, nranks, call.form}));
  }
  return plans;
}

Chunking small_chunking(const Collective& collective, const Room& room, uint32_t blocks, uint32_t lanes) {
  Chunking chunking = chunking_for(collective, room.nranks, blocks, 1, room.slot_bytes);
  const uint64_t element = bytes_of(collective.type), granule = kGranuleBytes / element;
  const uint64_t block = std::max<uint64_t>(chunking.block_elements, 1);
  chunking.lanes = lanes;
  chunking.rounds = static_cast<uint32_t>(divide_up(block, room.slot_bytes / element * lanes));
  chunking.piece = divide_up(divide_up(block, uint64_t{lanes} * chunking.rounds), granule) * granule;
  return chunking;
}

Bytes random_data(DataType type, uint64_t count, bool signed_zeros, Random& random) {
  Bytes bytes(count * bytes_of(type));
  const auto number = [&] { return random_float(signed_zeros, random); };
  switch (type) {
    case DataType::kFloat16: fill<uint16_t>(bytes, [&] { return half_from_float(number()); }); break;
    case DataType::kBfloat16: fill<uint16_t>(bytes, [&] { return bfloat_from_float(number()); }); break;
    case DataType::kFloat8e4m3: fill<uint8_t>(bytes, [&] { return float8_from_float(number(), 3); }); break;
    case DataType::kFloat8e5m2: fill<uint8_t>(bytes, [&] { return float8_from_float(number(), 2); }); break;
    case DataType::kFloat32: fill<float>(bytes, [&] { return number() * (signed_zeros ? 1.0f : 1.1f); }); break;
    case DataType::kFloat64: fill<double>(bytes, [&] { return number() * (signed_zeros ? 1.0 : 1.1); }); break;
    default:
      for (size_t i = 0; i < bytes.size(); i += 8) {
        const uint64_t value = random();
        std::memcpy(&bytes[i], &value, std::min<size_t>(8, bytes.size() - i));
      }
  }
  return bytes;
}

std::string describe(const Call& call) {
  const Collective& c = call.collective;
  return fmt::format("{} {} {} {} {} count {} root {} {} {} lanes {} in place {:x}", call.algorithm->name,
                     name_of(c.operation), traits_of(c.type).name,
                     c.reduce == ReduceOp::kNone ? "none" : traits_of(c.reduce).name,
                     is_packet(call.channel) ? "packet" : "bulk", c.count, c.root,
                     call.form == Form::kDirect ? "direct" : "staged", "", call.lanes, call.in_place);
}

ScenarioBuilder::ScenarioBuilder(const Room& room, Random& random) : room_(room), random_(random) {
  scenario_.nranks = room.nranks;
  scenario_.lanes = room.lanes;
  scenario_.depth = room.depth;
  scenario_.slot_bytes = room.slot_bytes;
}

uint32_t ScenarioBuilder::add(const Call& call) {
  const Collective& collective = call.collective;
  Op op;
  op.type = collective.type;
  op.reduce = reduces(collective.operation) ? collective.reduce : ReduceOp::kNone;
  op.channel = call.channel;
  op.plans = plans_for(call, room_.nranks);
  op.chunking = small_chunking(collective, room_, op.plans[0]->blocks(), call.lanes);
  op.text = describe(call);
  const bool extremes = collective.reduce == ReduceOp::kMax || collective.reduce == ReduceOp::kMin;
  for (uint32_t rank = 0; rank < room_.nranks; ++rank) {
    const Extent extent = extent_of(collective, room_.nranks, rank);
    op.extents.push_back(extent);
    op.in_place.push_back(extent.may_be_in_place && (call.in_place >> rank & 1) != 0);
    op.inputs.push_back(random_data(op.type, extent.input_elements, extremes, random_));
  }
  op.scalars = random_scalars(op.reduce, op.type, room_.nranks, random_);
  op.expected = expected_outputs(
      collective, op.inputs, OracleRules{addition_order(call.algorithm->name), op.chunking.block_elements, op.scalars});
  scenario_.ops.push_back(std::move(op));
  const uint32_t index = static_cast<uint32_t>(scenario_.ops.size()) - 1;
  if (episodes_.empty() || !episodes_.back().collective) episodes_.push_back(Episode{true, {}});
  episodes_.back().ops.push_back(index);
  return index;
}

uint32_t ScenarioBuilder::add_transfer(const Transfer& transfer) {
  const Algorithm* pairwise = find_algorithm("pairwise");
  const uint32_t n = room_.nranks;
  const auto collective = [&](Operation operation, uint32_t peer) {
    return Collective{operation, transfer.type, ReduceOp::kNone, static_cast<int32_t>(peer), transfer.count};
  };
  Op op;
  op.type = transfer.type;
  op.channel = Channel::kPointBulk;
  // Lanes depend on the transfer alone, so both sides agree.
  const uint32_t lanes = 1 + static_cast<uint32_t>(transfer.count % room_.lanes);
  op.chunking = small_chunking(collective(Operation::kSend, 0), room_, 1, lanes);
  op.text = fmt::format("transfer {} to {} of {}", transfer.source, transfer.destination, transfer.count);
  op.plans.resize(n);
  op.extents.resize(n);
  op.in_place.resize(n);
  op.inputs.resize(n);
  op.expected.resize(n);
  const auto take_part = [&](Operation operation, uint32_t rank, uint32_t peer) {
    const Call call{pairwise, collective(operation, peer), Form::kStaged, Channel::kPointBulk};
    op.plans[rank] = plans_for(call, n)[rank];
    op.extents[rank] = extent_of(call.collective, n, rank);
  };
  take_part(Operation::kSend, transfer.source, transfer.destination);
  if (transfer.source != transfer.destination) take_part(Operation::kRecv, transfer.destination, transfer.source);
  op.inputs[transfer.source] = random_data(op.type, transfer.count, false, random_);
  op.expected[transfer.destination] = op.inputs[transfer.source];
  scenario_.ops.push_back(std::move(op));
  return static_cast<uint32_t>(scenario_.ops.size()) - 1;
}

void ScenarioBuilder::add_group(std::vector<Transfer> transfers) {
  // The order in which every rank walks its transfers: by distance, so that no cycle of waits can form.
  const auto distance = [&](const Transfer& t) { return (t.destination + room_.nranks - t.source) % room_.nranks; };
  std::stable_sort(transfers.begin(), transfers.end(),
                   [&](const Transfer& a, const Transfer& b) { return distance(a) < distance(b); });
  Episode episode{false, {}};
  for (const Transfer& transfer : transfers) episode.ops.push_back(add_transfer(transfer));
  episodes_.push_back(std::move(episode));
}

Scenario ScenarioBuilder::finish() {
  scenario_.programs.assign(room_.nranks, {});
  for (uint32_t rank = 0; rank < room_.nranks; ++rank) {
    std::vector<Launch>& program = scenario_.programs[rank];
    for (const Episode& episode : episodes_) {
      Launch launch{episode.collective, {}};
      for (uint32_t op : episode.ops) {
        if (!scenario_.ops[op].plans[rank]) continue;
        launch.ops.push_back(op);
        if (!episode.collective || below(random_, 2) == 0) continue;
        program.push_back(std::exchange(launch, Launch{true, {}}));
      }
      if (!launch.ops.empty()) program.push_back(std::move(launch));
    }
  }
  return std::move(scenario_);
}

ReduceOp random_reduction(Operation operation, Random& random) {
  return reduces(operation) ? static_cast<ReduceOp>(below(random, kReduceOps)) : ReduceOp::kNone;
}

std::vector<uint64_t> random_scalars(ReduceOp reduce, DataType type, uint32_t nranks, Random& random) {
  std::vector<uint64_t> scalars(reduce == ReduceOp::kPreMulSum ? nranks : 0);
  for (uint64_t& scalar : scalars) std::memcpy(&scalar, random_data(type, 1, false, random).data(), bytes_of(type));
  return scalars;
}

Call random_call(const Room& room, Random& random) {
  for (;;) {
    const auto catalog = algorithm_catalog();
    Call call{&catalog[below(random, catalog.size())], {}, Form::kStaged, Channel::kCollectiveBulk, 1, random()};
    call.collective.operation = static_cast<Operation>(below(random, kCollectives));
    call.form = below(random, 2) == 0 ? Form::kStaged : Form::kDirect;
    if (!call.algorithm->serves(call.collective.operation, room.nranks, call.form)) continue;
    if (call.form == Form::kStaged && below(random, 2) == 0) call.channel = Channel::kCollectivePacket;
    call.collective.type = static_cast<DataType>(below(random, kDataTypes));
    call.collective.reduce = random_reduction(call.collective.operation, random);
    call.collective.root = static_cast<int32_t>(below(random, room.nranks));
    call.lanes = 1 + static_cast<uint32_t>(below(random, room.lanes));
    const uint64_t most = room.slot_bytes / bytes_of(call.collective.type) * (below(random, 4) == 0 ? 6 : 2);
    call.collective.count = below(random, most + 1);
    if (plans_for(call, room.nranks)[0]->min_depth() <= room.depth) return call;
  }
}

std::vector<Transfer> random_transfers(const Room& room, Random& random) {
  std::vector<Transfer> transfers(1 + below(random, 2 * room.nranks));
  for (Transfer& transfer : transfers) {
    transfer = {static_cast<uint32_t>(below(random, room.nranks)), static_cast<uint32_t>(below(random, room.nranks)),
                below(random, room.slot_bytes * 3), DataType::kUint8};
  }
  return transfers;
}

}  // namespace talaria::sim
