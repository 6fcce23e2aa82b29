#include "operation.h"

using namespace talaria::bench;

namespace {

constexpr Operation kGather = {
    .name = "Gather",
    .program = "gather_perf",
    .reduces = false,
    .rooted = true,
    .in_place = true,
    .equal_outputs = false,
    .counts =
        [](uint64_t elements, int nranks) {
          const uint64_t share = elements / nranks;
          return Counts{share, share * nranks, share};
        },
    .input_offset = [](const Place& place) { return place.rank * place.counts.send; },
    .output_offset = no_offset,
    .expected =
        [](const Place& place) {
          std::vector<Segment> segments;
          if (place.rank != place.root) return segments;
          for (int rank = 0; rank < place.nranks; ++rank) segments.push_back({rank, 0, place.counts.send});
          return segments;
        },
    .bus_factor = [](int nranks) { return (nranks - 1.0) / nranks; },
    .call =
        [](const Call& call, const Place& place) {
          return ncclGather(call.input, call.output, place.counts.argument, call.type, place.root, call.communicator,
                            call.stream);
        },
};

}  // namespace

int main(int argc, char** argv) { return run_program(argc, argv, kGather); }
