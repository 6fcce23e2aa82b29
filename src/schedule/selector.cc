#include "schedule/selector.h"

namespace talaria {
namespace {

const Algorithm* default_algorithm(const Collective& collective, const ChoiceLimits& limits) {
  const Operation operation = collective.operation;
  if (is_point_to_point(operation) || operation == Operation::kAlltoAll || operation == Operation::kGather ||
      operation == Operation::kScatter) {
    return find_algorithm("pairwise");
  }
  const uint64_t bytes = collective.count * bytes_of(collective.type);
  const bool one_shot = (operation == Operation::kAllReduce || operation == Operation::kReduce) &&
                        bytes * (limits.nranks - 1) <= limits.one_shot_bytes;
  return find_algorithm(one_shot ? "one_shot" : "two_shot");
}

// The forced algorithm where it serves the operation, else the default one.
Result<const Algorithm*> choose_algorithm(const Collective& collective, const ChoiceLimits& limits) {
  const Algorithm* chosen = default_algorithm(collective, limits);
  if (limits.algorithm.empty()) return chosen;
  const Algorithm* forced = find_algorithm(limits.algorithm.c_str());
  if (forced == nullptr) {
    std::string known;
    for (const Algorithm& row : algorithm_catalog()) known += std::string(" ") + row.name;
    return fail(Code::kInvalidUsage, "TALARIA_ALGO={} names no algorithm; known:{}", limits.algorithm, known);
  }
  const bool serves = forced->serves(collective.operation, limits.nranks, Form::kStaged) ||
                      forced->serves(collective.operation, limits.nranks, limits.form);
  return serves ? forced : chosen;
}

Result<bool> choose_packet(const Collective& collective, const ChoiceLimits& limits, const Algorithm& algorithm) {
  if (!limits.protocol.empty() && limits.protocol != "packet" && limits.protocol != "bulk") {
    return fail(Code::kInvalidUsage, "TALARIA_PROTO={} is neither packet nor bulk", limits.protocol);
  }
  if (!limits.packets || is_point_to_point(collective.operation)) return false;
  if (!limits.protocol.empty()) return limits.protocol == "packet";
  const uint64_t bytes = collective.count * bytes_of(collective.type);
  if (&algorithm == find_algorithm("one_shot")) return bytes * (limits.nranks - 1) <= limits.one_shot_packet_bytes;
  return bytes <= limits.packet_bytes;
}

}  // namespace

Result<Choice> select(const Collective& collective, const ChoiceLimits& limits) {
  const Algorithm* algorithm = TRY(choose_algorithm(collective, limits));
  const bool packet = TRY(choose_packet(collective, limits, *algorithm));
  Choice choice{algorithm, Form::kStaged, packet ? Channel::kCollectivePacket : Channel::kCollectiveBulk};
  if (is_point_to_point(collective.operation)) choice.channel = Channel::kPointBulk;
  if (!packet && limits.form == Form::kDirect && algorithm->serves(collective.operation, limits.nranks, limits.form)) {
    choice.form = Form::kDirect;
  }
  return choice;
}

}  // namespace talaria
