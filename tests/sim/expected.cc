#include "sim/expected.h"

#include <fmt/core.h>

#include "sim/cases.h"
#include "sim/scale.h"

namespace talaria::sim {

Simulated simulate(const ExactCall& call, const std::vector<std::vector<std::byte>>& inputs) {
  const Algorithm* algorithm = find_algorithm(call.algorithm);
  if (algorithm == nullptr || is_point_to_point(call.collective.operation) ||
      !algorithm->serves(call.collective.operation, call.nranks, call.form)) {
    return {false, fmt::format("{} does not serve {}", call.algorithm, name_of(call.collective.operation)), {}};
  }
  ScaleCase scale;
  scale.collective = call.collective;
  scale.nranks = call.nranks;
  scale.depth = call.room.depth;
  scale.plans = plans_for(Call{algorithm, call.collective, call.form}, call.nranks);
  scale.chunking = chunking_for(call.collective, call.nranks, scale.plans[0]->blocks(), call.room.lanes,
                                call.room.slot_bytes);
  scale.direct.assign(call.nranks, call.form == Form::kDirect);
  for (uint32_t rank = 0; rank < call.nranks; ++rank) {
    const Extent extent = extent_of(call.collective, call.nranks, rank);
    if (inputs.size() != call.nranks || inputs[rank].size() < extent.input_elements * bytes_of(call.collective.type)) {
      return {false, fmt::format("input of rank {} is too short", rank), {}};
    }
  }
  scale.inputs = &inputs;
  scale.scalars = call.scalars;
  ScaleReport report = run_scaled(scale);
  return {report.verdict == Verdict::kOk, name_of(report.verdict) + (": " + report.text), std::move(report.outputs)};
}

}  // namespace talaria::sim
