// Root: the meeting point of a communicator's ranks, a state machine over poll().
//
// It seats every rank of its share (and one visitor, see root_share.h) that has proven the secret, and once all are
// there tells each where its ring successor listens. Nothing that connects can block it. A conflict between invited
// ranks (two claim one rank, they disagree about the number of ranks, one leaves again) is told to the one who comes
// second; if the others are still not complete after a grace time, the rendezvous has failed and every rank is told
// why. The same when the first rank runs out of patience, or one is known to come no more.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/unique.h"
#include "bootstrap/lobby.h"
#include "bootstrap/root_share.h"

namespace talaria {

// The root's answer to a seated rank, after the welcome. Before it may come one that only says whose process this is.
struct Reply {
  static constexpr uint32_t kNobody = UINT32_MAX;
  int32_t code;             // Code: success, or why there is no communicator; kInProgress: the answer is yet to come
  SocketAddress successor;  // where rank + 1 listens; unset for the visitor
  uint32_t whom;            // kInProgress: the rank of the root's process; else one that did not come, or kNobody
  char text[476];           // the reason, NUL-terminated
};
static_assert(sizeof(Reply) == 512);

// What the root of a standing id knows of its ranks before they come. Some may have come and left before it began: that
// is no conflict.
struct Expectation {
  std::vector<uint32_t> names;               // by rank: what messages call it, its rank in the parent communicator
  std::function<bool(uint32_t rank)> gone;   // Can it come no more? Asked ten times a second, by the root's thread.
};

struct RootLimits {
  double grace_usec = 1e6;    // between a conflict and giving up
  double linger_usec = 60e6;  // how long a failed rendezvous explains itself to late ranks
  size_t seats = 0;           // connections it may hold; 0: as many as the process may have descriptors
  LobbyLimits lobby;
  Expectation expected;
};

class Root {
 public:
  Root(UniqueFd listener, const Secret& secret, const RootLimits& limits = {});
  // Runs until the ranks have met, the rendezvous has failed, or `stop` (a descriptor; -1 for none) becomes readable.
  void run(int stop);

 private:
  void admit(Guest guest);
  // Why a guest has no seat here, whatever other ranks say; empty: it may have one.
  Reply refuse_nonsense(const Greeting& greeting) const;
  bool refuse_conflict(Guest& guest);
  void seat(Guest guest);
  void introduce_host(const Guest& guest);
  void drop_if_left(uint32_t rank);
  void complain(Code code, std::string text);
  void settle();
  void look_for_gone();
  void give_up_on(const std::vector<uint32_t>& absent, const std::string& why);
  void introduce_all();
  void fail_all();
  std::vector<uint32_t> missing() const;
  std::string describe_guest(Greeting greeting) const;
  std::string list(std::vector<uint32_t> ranks) const;
  int timeout_msec() const;
  bool finished() const;

  Lobby lobby_;
  const RootLimits limits_;
  std::map<uint32_t, Guest> seats_;
  uint32_t nranks_ = 0;  // 0 until the first rank has come
  uint32_t root_ = 0, nroots_ = 1;
  RootShare share_{};
  Code code_ = Code::kSuccess;  // of the complaint
  std::string complaint_;       // empty: none
  uint32_t absent_ = Reply::kNobody;
  uint32_t host_ = Reply::kNobody;  // the first rank of this process
  double deadline_usec_ = 0;    // end of the grace; once failed, end of the lingering
  double patience_until_usec_ = std::numeric_limits<double>::infinity();
  double patience_sec_ = 0;     // of the rank that sets the former
  double asked_usec_ = 0;       // when it was last asked who is gone
  bool introduced_ = false, failed_ = false;
  uint32_t told_ = 0;  // ranks that no longer wait: they left, or know that the rendezvous has failed
};

// "3, 5-7", shortened to at most about `most` characters.
std::string list_ranks(const std::vector<uint32_t>& ranks, size_t most);

}  // namespace talaria
