// Entry points about teams: regular subsets of a communicator's ranks, by which device code addresses peers.
//
// Until windows exist, no rank can load or store another's memory through the device API: the load/store (LSA) team
// of a rank is the rank itself, and the rail team, one rank of each LSA team, is the whole communicator.
#include "api/boundary.h"

namespace talaria::api {
namespace {

constexpr ncclTeam kNoTeam{0, 0, 0};
constexpr int kLsaSize = 1;

ncclTeam team_of(const char* function, ncclComm_t comm, ncclTeam (*build)(int nranks, int rank)) {
  return guarded_value(function, kNoTeam, [&]() -> Result<ncclTeam> {
    const Communicator* communicator = TRY(communicator_of(comm, function));
    return build(count_of(*communicator), rank_of(*communicator));
  });
}

// The rank that lies (rank − team.rank) strides from `self`, the caller's own rank in the wanted numbering.
constexpr int along(int self, const ncclTeam& team, int rank) { return self + (rank - team.rank) * team.stride; }

}  // namespace
}  // namespace talaria::api

using namespace talaria;
using namespace talaria::api;

extern "C" {

ncclTeam_t pncclTeamWorld(ncclComm_t comm) {
  return team_of("TeamWorld", comm, [](int nranks, int rank) { return ncclTeam{nranks, rank, 1}; });
}

ncclTeam_t pncclTeamLsa(ncclComm_t comm) {
  return team_of("TeamLsa", comm, [](int, int rank) { return ncclTeam{kLsaSize, rank % kLsaSize, 1}; });
}

ncclTeam_t pncclTeamRail(ncclComm_t comm) {
  return team_of("TeamRail", comm,
                 [](int nranks, int rank) { return ncclTeam{nranks / kLsaSize, rank / kLsaSize, kLsaSize}; });
}

int pncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank) {
  return guarded_value("TeamRankToWorld", -1, [&]() -> Result<int> {
    return along(rank_of(*TRY(communicator_of(comm, "TeamRankToWorld"))), team, rank);
  });
}

int pncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank) {
  return guarded_value("TeamRankToLsa", -1, [&]() -> Result<int> {
    return along(rank_of(*TRY(communicator_of(comm, "TeamRankToLsa"))) % kLsaSize, team, rank);
  });
}

int pncclLLA2ACalcSlots(int maxElts, int maxEltSize) {
  constexpr int kSlotDataBytes = 8;  // a 16-byte packet carries 8 bytes of data
  return maxElts * ((maxEltSize + kSlotDataBytes - 1) / kSlotDataBytes);
}

// Weak, so that a profiler can put its own in front (design §11).
decltype(pncclTeamWorld) ncclTeamWorld __attribute__((weak, alias("pncclTeamWorld")));
decltype(pncclTeamLsa) ncclTeamLsa __attribute__((weak, alias("pncclTeamLsa")));
decltype(pncclTeamRail) ncclTeamRail __attribute__((weak, alias("pncclTeamRail")));
decltype(pncclTeamRankToWorld) ncclTeamRankToWorld __attribute__((weak, alias("pncclTeamRankToWorld")));
decltype(pncclTeamRankToLsa) ncclTeamRankToLsa __attribute__((weak, alias("pncclTeamRankToLsa")));
decltype(pncclLLA2ACalcSlots) ncclLLA2ACalcSlots __attribute__((weak, alias("pncclLLA2ACalcSlots")));
}
