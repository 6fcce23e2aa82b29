#include "runtime/reunion.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/os.h"

namespace talaria {
namespace {

// Ranks come to such a meeting from one call of the application; one that died just before can be seen only on this
// machine. TALARIA_INIT_TIMEOUT gives another bound.
constexpr int64_t kPatienceSec = 120;

template <typename T>
void append(std::string& text, const T& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

UniqueId Reunion::id_for(const std::vector<uint32_t>& members) const {
  UniqueId id{};
  id.magic = UniqueId::kMagic;
  id.version = UniqueId::kVersion;
  id.flags = UniqueId::kStanding;
  id.keeper = members.front();
  id.address = doors_.addresses[id.keeper];
  std::string purpose = doors_.secret;
  for (uint32_t member : members) append(purpose, member);
  for (size_t i = 0; i < sizeof(id.secret); i += sizeof(uint64_t)) {
    append(purpose, i);
    const uint64_t word = text_hash(purpose);
    memcpy(id.secret + i, &word, sizeof(word));
  }
  return id;
}

Result<Seat> Reunion::seat_among(const std::vector<uint32_t>& members, const Gone& gone) {
  Seat seat;
  seat.rank = static_cast<uint32_t>(std::ranges::find(members, own_.rank()) - members.begin());
  seat.nranks = static_cast<uint32_t>(members.size());
  seat.ids = {id_for(members)};
  seat.patience_sec = kPatienceSec;
  // The root tells its own rank.
  if (seat.rank != 0) seat.meanwhile = [gone, members] { return std::ranges::none_of(members, gone); };
  if (seat.rank != 0 || seat.nranks == 1) return seat;
  root_.reset();  // two at once would take each other's guests
  UniqueFd door = own_.door();
  if (!door.valid()) {
    return fail(Code::kSystem, "rank {} of {}: no descriptor for the meeting with other ranks: {}", own_.rank(),
                own_.nranks(), strerror(errno));
  }
  RootLimits limits;
  limits.lobby.lent = true;
  limits.linger_usec = 0;  // who comes late may come in time for the others' next try
  limits.expected.names = members;
  limits.expected.gone = [gone, members](uint32_t rank) { return gone(members[rank]); };
  root_ = TRY(OwnedRoot::start(std::move(door), Secret(seat.ids[0]), limits));
  return seat;
}

}  // namespace talaria
